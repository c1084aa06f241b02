"""Sinks: whole versions whatever happens, one at all members, for nobody else."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import stat

import numpy as np
import pytest
from mplang_analysis import PUBLIC
from mplang_data.stored import Entry, Held, NotStoredError, Sink, SinkConfig, StoreError, agree
from mplang_data.stored import values
from mplang_data.stored.sink import MAX_VERSIONS, read_sink

import mplang_core as mp
from mplang_core.errors import ConfigError

PARTIES = ("alice", "bob", "carol")
VECTOR = mp.TensorType("f64", (1000,))
KEYED = "crypto.symmetric_key<>"


def entry(number, previous=None, members=(0, 1), kind=VECTOR, nest="0", **fields):
    return Entry(
        **{
            "name": "model", "version": f"{number:064x}", "run": f"s-{number}",
            "previous": None if previous is None else f"{previous:064x}", "program": "0" * 64,
            "time": 1e9, "parties": PARTIES, "members": members, "kinds": (str(kind),),
            "nest": nest, "labels": (PUBLIC.encode(),) * len(members), **fields,
        }
    )  # fmt: skip


def write(sink, made, content, owner="host", by="session"):
    file = values.write(VECTOR, np.full(1000, float(content)))
    try:
        sink.stage(owner, by, made, [file])
    finally:
        os.close(file)


def read(sink, version, owner="host"):
    _, files = sink.open(owner, "model", version)
    (found,) = (values.read(VECTOR, file) for file in files)
    for file in files:
        os.close(file)
    assert (found == found[0]).all()
    return int(found[0])


def new_sink(folder, **fields):
    key = folder.parent / "key"
    key.write_bytes(bytes(range(32)))
    return Sink(SinkConfig(folder=str(folder), key_file=str(key), **fields))


@pytest.fixture
def sink(tmp_path):
    with contextlib.closing(new_sink(tmp_path / "sink")) as made:
        yield made


# -- members that agree


def states(*, members=2, stores=2):
    """Yield what members may hold after stores that were interrupted anywhere, one after another."""

    def after(state, number):
        """Yield each way in which members of a state may end up, and what was committed."""
        for steps in itertools.product(range(4), repeat=members):  # none, staged, current, alone
            if max(steps) > 1 and min(steps) < 1 or max(steps) > 2 and min(steps) < 2:
                continue  # it waits for the others
            made = []
            for (held, current), step in zip(state, steps, strict=True):
                held = dict(held)
                if step:
                    held[number] = current
                made.append(
                    ({number: held[number]} if step == 3 else held, number if step > 1 else current)
                )
            yield tuple(made), max(steps) > 1

    def all_of(state, number, committed):
        yield state, committed
        if number <= stores:
            for made, is_committed in after(state, number):
                yield from all_of(made, number + 1, number if is_committed else committed)

    yield from all_of((({0: None}, 0),) * members, 1, 0)


@pytest.mark.parametrize("members", [2, 3])
def test_members_agree_on_what_was_committed_last_wherever_they_were_killed(members):
    count = 0
    for state, committed in states(members=members):
        ranks = tuple(range(members))
        held = {
            rank: [
                Held(entry(version, previous, ranks), version == current)
                for version, previous in versions.items()
            ]
            for rank, (versions, current) in zip(ranks, state, strict=True)
        }
        assert agree("model", ranks, PARTIES, held) == f"{committed:064x}", state
        count += 1
    assert count > 100


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ({0: [(2, 1, True)], 1: [(1, 0, True)]}, "alice has run 00000000 of .*; bob has run 0000"),
        ({0: [(1, 0, False), (2, 1, True)], 1: [(1, 0, True)]}, "not of one run"),  # a backup
        ({0: [(1, 0, True)], 1: []}, "bob has none"),  # removed at one
        ({0: [(1, 0, True)], 1: [(1, None, False), (5, None, True)]}, "not of one run"),
    ],
)
def test_members_with_different_runs_are_told(held, told):
    found = {r: [Held(entry(v, p), c) for v, p, c in each] for r, each in held.items()}
    with pytest.raises(StoreError, match=told):
        agree("model", (0, 1), PARTIES, found)


def test_members_of_another_session_are_told():
    held = {rank: [Held(entry(1), True)] for rank in (0, 1)}
    with pytest.raises(StoreError, match="in a session of alice, bob, carol, in this order"):
        agree("model", (0, 1), ("bob", "alice"), held)
    with pytest.raises(NotStoredError, match="nothing is stored as 'model' at carol"):
        agree("model", (2,), PARTIES, held)


# -- a sink that is killed


def test_whoever_is_killed_has_what_was_before_or_what_is_new(tmp_path):
    chance, folders = random.Random(0), [tmp_path / "a", tmp_path / "b"]
    before, seen = 0, set()
    for folder in folders:
        with contextlib.closing(new_sink(folder)) as sink:
            write(sink, entry(0), 0)
            sink.commit("host", "model", f"{0:064x}")
    for number in range(1, 61):
        child = os.fork()
        if not child:
            try:
                sinks = [new_sink(folder) for folder in folders]
                made = entry(number, before)
                for sink in sinks:
                    write(sink, made, number)
                for sink in sinks:
                    sink.commit("host", "model", made.version)
                for sink in sinks:
                    sink.settle("host", "session", "model", made.version)
            finally:
                os._exit(0)
        signal.sigtimedwait([signal.SIGCHLD], chance.random() * 0.03)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        sinks = [new_sink(folder) for folder in folders]
        held = {rank: sink.held("host", "model") for rank, sink in enumerate(sinks)}
        version = agree("model", (0, 1), PARTIES, held)
        for sink in sinks:
            assert read(sink, version) == int(version, 16)
            sink.commit("host", "model", version)
            sink.settle("host", "session", "model", version)
            assert [each.entry.version for each in sink.held("host", "model")] == [version]
            sink.close()
        assert int(version, 16) in (before, number)
        seen.add(int(version, 16) == number)
        before = int(version, 16)
    assert seen == {True, False}


def test_what_an_interrupted_write_left_is_removed(sink, tmp_path):
    write(sink, entry(1), 1)
    folder = tmp_path / "sink" / "host" / "model"
    (folder / ".new-dead").mkdir()
    (folder / ".new-link").symlink_to("nowhere")
    write(sink, entry(2), 2)
    assert sorted(each.name for each in folder.iterdir()) == [f"{1:064x}", f"{2:064x}"]


def test_versions_of_interrupted_runs_are_few(sink):
    for number in range(MAX_VERSIONS):
        write(sink, entry(number), number)
    with pytest.raises(StoreError, match="8 versions of runs that were interrupted"):
        write(sink, entry(99), 99)
    sink.remove("host", "session", "model")
    write(sink, entry(99), 99)


# -- who stores what


def test_coordinators_have_values_of_their_own(sink):
    for number, owner in enumerate(["host", "other", "..", "a/b", ".", "%2E", ""]):
        write(sink, entry(number), number, owner=owner, by=owner)
        sink.commit(owner, "model", f"{number:064x}")
    assert read(sink, f"{0:064x}") == 0
    for owner in ("other", "..", "a/b"):
        with pytest.raises(StoreError):
            sink.open(owner, "model", f"{0:064x}")
        sink.remove(owner, owner, "model")
    assert [each.entry.version for each in sink.held("host", "model")] == [f"{0:064x}"]


@pytest.mark.parametrize("version", ["../../other/model/current", "current", "0" * 63, "", None])
def test_a_version_is_no_path(sink, version):
    for owner in ("host", "other"):
        write(sink, entry(1), 1, owner=owner)
        sink.commit(owner, "model", f"{1:064x}")
    for use in (sink.open, sink.commit):
        with pytest.raises(StoreError):
            use("host", "model", version)


def test_a_session_stores_a_name_at_a_time(sink):
    write(sink, entry(1), 1, by="one")
    with pytest.raises(StoreError, match="another session stores 'model' now"):
        write(sink, entry(2), 2, by="two")
    with pytest.raises(StoreError, match="another session stores"):
        sink.remove("host", "two", "model")
    sink.release("host", "one")
    write(sink, entry(2), 2, by="two")
    sink.commit("host", "model", f"{2:064x}")
    sink.settle("host", "two", "model", f"{2:064x}")
    write(sink, entry(3), 3, by="one")


def test_a_coordinator_stores_as_much_as_it_may(tmp_path):
    with contextlib.closing(new_sink(tmp_path / "sink", size=20_000)) as sink:
        write(sink, entry(1), 1)
        write(sink, entry(2), 2)
        with pytest.raises(StoreError, match="stores 20000 bytes at this party at most"):
            write(sink, entry(3), 3)


def test_a_full_disk_is_told_and_leaves_what_was(sink, tmp_path, monkeypatch):
    write(sink, entry(1), 1)
    sink.commit("host", "model", f"{1:064x}")

    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="cannot be written: No space left on device"):
        write(sink, entry(2), 2)
    monkeypatch.undo()
    assert read(sink, f"{1:064x}") == 1
    assert not list((tmp_path / "sink" / "host" / "model").glob(".new-*"))
    write(sink, entry(3), 3)  # it is not locked


# -- what is encrypted


def store_key(sink, secret=b"k" * 32):
    from mplang_crypto.types import SymmetricKey, SymmetricKeyType

    file = values.write(SymmetricKeyType(), SymmetricKey(secret))
    made = entry(1, members=(0,), kind=SymmetricKeyType())
    sink.stage("host", "session", made, [file])
    os.close(file)
    return made


def test_keys_are_encrypted_and_authenticated(sink, tmp_path):
    made = store_key(sink)
    folder = tmp_path / "sink" / "host" / "model" / made.version
    sealed = folder / "value.sealed"
    assert b"k" * 8 not in sealed.read_bytes()
    _, (file,) = sink.open("host", "model", made.version)
    assert b"k" * 32 in os.pread(file, 1000, 0)
    assert stat.S_ISREG(os.fstat(file).st_mode)
    os.close(file)
    kept = (folder / "entry.json").read_text()
    # an entry that says something else, with the right sums
    found = json.loads(kept)
    found["entry"]["program"] = "1" * 64
    (folder / "entry.json").write_text(json.dumps(found))
    with pytest.raises(StoreError, match="damaged, or the sink has another key"):
        sink.open("host", "model", made.version)
    (folder / "entry.json").write_text(kept)
    sealed.write_bytes(sealed.read_bytes()[:-1])
    with pytest.raises(StoreError, match="was changed since it was stored"):
        sink.open("host", "model", made.version)


def test_a_sink_with_another_key_or_none_says_so(sink, tmp_path):
    made = store_key(sink)
    sink.close()
    (tmp_path / "other").write_bytes(bytes(32))
    folder = str(tmp_path / "sink")
    for fields in ({"key_file": str(tmp_path / "other")}, {}):
        with contextlib.closing(Sink(SinkConfig(folder=folder, **fields))) as again:
            with pytest.raises(StoreError, match="has no key|has another key"):
                again.open("host", "model", made.version)
    sink._lock_file = os.open(os.devnull, os.O_RDONLY)


def test_without_a_key_shares_and_keys_are_not_stored(tmp_path):
    with contextlib.closing(Sink(SinkConfig(folder=str(tmp_path / "sink")))) as sink:
        with pytest.raises(StoreError, match="this party's sink has no key"):
            store_key(sink)
        write(sink, entry(1), 1)  # it is not locked


# -- configurations


def test_a_key_may_be_printed_by_a_command(tmp_path):
    config = read_sink({"folder": "sink", "key_command": ["printf", "%032d", "7"]}, str(tmp_path))
    assert config.key() == b"0" * 31 + b"7"
    assert config.folder == str(tmp_path / "sink")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"folder": "s", "key_file": "k", "key_command": ["x"]}, "not both"),
        ({"folder": "s", "key_file": "s/key"}, "lies in the folder"),
        ({"folder": "s", "key_file": "missing"}, "sink.key_file.*No such file"),
        ({"folder": "s", "key_file": "short"}, "has 5 bytes, of 32 or more"),
        ({"folder": "s", "key_command": ["false"]}, "does not print a key"),
        ({"folder": "s", "key_command": ["no-such-program"]}, "does not print a key"),
        ({"folder": "short/x"}, "sink.folder.*Not a directory"),
        ({"folder": 7}, "folder"),
        ({}, "folder"),
        ({"folder": "s", "colour": "red"}, "colour"),
        (7, "expected a folder"),
    ],
)
def test_wrong_sinks_are_told(tmp_path, fields, told):
    (tmp_path / "short").write_bytes(b"12345")
    with pytest.raises(ConfigError, match=f"(?s){told}"):
        Sink(read_sink(fields, str(tmp_path)))


def test_a_folder_has_one_worker(sink, tmp_path):
    with pytest.raises(ConfigError, match="another process stores in"):
        new_sink(tmp_path / "sink")
