"""Progress of a host: turns of loops, and what it does before anything runs."""

from __future__ import annotations

import re
import threading

import pytest
from mplang_analysis.ext import turn_of
from mplang_testing import dialect
from mplang_testing.waiting import DEADLINE, wait_until
from mplang_trace.host_work import busy_with
from mplang_trace.live_table import _table

import mplang_core as mp


class Noted:
    """Listener that notes where a host is at each op of a name."""

    def __init__(self, host, opcode):
        self.host, self.opcode, self.turns, self.tables = host, opcode, [], []

    def op_started(self, op, index, total):
        if op.opcode == self.opcode:
            self.turns.append(turn_of(self.host))
            self.tables.append(_table(self.host, 2.0).text())

    def op_finished(self, op, index, total):
        """Note nothing."""


@pytest.mark.needs("jax")
@pytest.mark.parametrize("mode", ["standard", "launch"])
def test_a_loop_that_runs_tells_its_turn(simulate, monkeypatch, mode):
    sim, tables = simulate(2), []
    monkeypatch.setattr(dialect, "pause", lambda *_: tables.append(_table(sim, 2.0).text()))

    def program(x):
        return mp.while_loop(
            lambda s: s[0] < 3,
            lambda s: (s[0] + 1, mp.invoke(dialect.late, s[1], party=0, seconds=0.0)),
            (0, x),
        )

    mp.evaluate(sim, program, 1, mode=mode)
    told = [re.findall(r"test_progress\.py:\d+ \((turn \d)", each) for each in tables]
    assert {turn for each in told for turn in each} == {"turn 1", "turn 2", "turn 3"}


def test_an_unrolled_loop_tells_which_of_how_many(simulate):
    sim = simulate(2)
    noted = Noted(sim, "simp.shuffle_static")

    def program(x):
        for i in range(4):
            x = mp.put(f"P{1 - i % 2}", x)
        return x

    mp.evaluate(sim, program, mp.evaluate(sim, lambda: mp.put("P0", 1)), listener=noted)
    assert noted.turns == ["1 of 4", "2 of 4", "3 of 4", "4 of 4"]


@pytest.mark.parametrize("does", ["compiling", "fetching"])
def test_what_the_host_does_before_anything_runs_is_told_with_the_line(simulate, monkeypatch, does):
    sim = simulate(1)
    go = threading.Event()

    def program():
        assert does == "fetching" or go.wait(DEADLINE)
        return mp.constant(1)

    def work():
        done = mp.evaluate(sim, program)
        if does == "fetching":
            monkeypatch.setattr(sim, "fetch", lambda var: [go.wait(DEADLINE)])
            mp.fetch(sim, done)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        wait_until(lambda: busy_with(thread.ident)[0] == does)
        assert busy_with(thread.ident)[1].startswith("test_progress.py:")
        assert f"host   {does}" in _table(sim, 2.0, None, thread.ident).text()
    finally:
        go.set()
        thread.join()
    assert busy_with(thread.ident) == ("", "")
