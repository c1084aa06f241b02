"""Workers that are killed while they store: each has what was before or what is new, whole."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import threading
import time

import numpy as np
import pytest
from mplang_http import LocalCluster
from mplang_testing.waiting import DEADLINE, pause

import mplang_core as mp
from mplang_core.errors import AdmissionError, MPLangError, PartyError

KILLS = int(os.environ.get("MPLANG_KILLS", "2"))
NAMES = ["alice", "bob", "carol"]
SIZE = 200_000
VECTOR = mp.TensorType("f64", (SIZE,))


def store(number):
    """Return a program that stores a number, many times, in shares and at one party."""

    def program(x):
        mp.store({"w": mp.seal(x), "b": mp.seal(x)}, "model")
        mp.store(x, "plain")

    return mp.compile(program), np.full(SIZE, float(number))


def load(host):
    def program():
        model = mp.load("SP0", "model", type={"w": VECTOR, "b": VECTOR})
        return mp.reveal(model, to="P1"), mp.load("P0", "plain", type=VECTOR)

    model, plain = mp.fetch(host, mp.evaluate(host, program))
    found = []
    for values in (np.stack([model["w"], model["b"]]), plain):
        rounded = np.round(values)
        assert (rounded == rounded.flat[0]).all()
        found.append(int(rounded.flat[0]))
    return found


def killed(workers, ranks, after, number):
    """Store a number, and kill workers meanwhile."""

    def run():
        program, data = store(number)
        with contextlib.suppress(MPLangError), mp.connect("http", workers.spec) as host:
            with mp.with_ctx(host):
                x = mp.put("P0", data)
            begun.set()
            mp.evaluate(host, program, x)

    begun = threading.Event()
    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(DEADLINE)
    pause(after, "a kill at a random moment")
    for rank in ranks:
        workers.signal(rank, signal.SIGKILL)
    thread.join(DEADLINE)
    assert not thread.is_alive()
    for rank in ranks:
        workers.restart(rank)


@pytest.mark.timeout(60 + 30 * KILLS)
def test_kills_at_random_moments_while_storing(tmp_path):
    chance, seen, before = random.Random(KILLS), set(), [0, 0]
    with LocalCluster(NAMES, sink=tmp_path, mode="production") as workers:
        with mp.connect("http", workers.spec) as host:
            program, data = store(0)
            with mp.with_ctx(host):
                x = mp.put("P0", data)
            mp.evaluate(host, program, x)
            begin = time.perf_counter()
            mp.evaluate(host, program, x)
            duration = time.perf_counter() - begin
        for number in range(1, KILLS + 1):
            ranks = chance.choice([[0], [1], [2], [0, 1, 2]])
            killed(workers, ranks, chance.random() * 1.2 * duration, number)
            with mp.connect("http", workers.spec) as host:
                found = load(host)
            for now, then in zip(found, before, strict=True):
                assert now in (then, number), (ranks, found, before)
                seen.add(now == number)
            before = found
        assert KILLS < 20 or seen == {True, False}


def test_members_with_different_runs_are_told_at_load(tmp_path):
    """One of them was restored from a backup."""
    with (
        LocalCluster(NAMES, sink=tmp_path, mode="production") as workers,
        mp.connect("http", workers.spec) as host,
    ):
        folder = tmp_path / "sinks" / "bob" / "local" / "model"
        for number in (1, 2):
            program, data = store(number)
            with mp.with_ctx(host):
                x = mp.put("P0", data)
            mp.evaluate(host, program, x)
            if number == 1:
                shutil.copytree(folder, tmp_path / "backup", symlinks=True)
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "backup", folder, symlinks=True)
        told = "'model' comes from different runs at its members: alice has run .*; bob has run"
        with pytest.raises((AdmissionError, PartyError), match=told):
            load(host)
