"""How far long ops are, whose costs can be told."""

from __future__ import annotations

import io
import threading

import pytest
from mplang_analysis import CostRule, OpCosts, StepCost
from mplang_testing.waiting import wait_until
from mplang_trace import live_table, long_ops
from mplang_trace.long_ops import LongOps
from rich.console import Console

import mplang_core as mp
from mplang_core.ext import PartyState

go, begun = threading.Event(), threading.Event()


def hundred_seconds(op, network):
    return OpCosts([StepCost("sort", bytes=1000, seconds=100)])


@mp.simple_op(
    "trace.long",
    execution_model="multi_party",
    reads=(),
    total=True,
    interfaces=[CostRule(hundred_seconds)],
)
def long_op(x: mp.TensorType) -> mp.TensorType:
    """Stand for an op of a protocol that takes long."""
    return x


@mp.kernel("trace.long")
def run_long_op(ctx, x):
    begun.set()
    assert go.wait(60)
    return x


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(long_ops, "LONG", 0.0)
    monkeypatch.setattr(live_table, "LONG", 0.0)
    monkeypatch.setattr(live_table, "AFTER", 0.0)
    go.clear()
    begun.clear()


def program():
    return mp.simp.pcall_static((0, 1), long_op, mp.constant(1))


@pytest.mark.parametrize("mode", ["standard", "launch"])
def test_a_table_says_how_far_a_long_op_is(at_once, simulate, mode):
    out = io.StringIO()
    sim = simulate(2)
    with mp.watch(sim, Console(file=out, force_terminal=True, width=140)):
        run = threading.Thread(target=mp.evaluate, args=(sim, program), kwargs={"mode": mode})
        run.start()
        try:
            wait_until(lambda: "s left" in out.getvalue())
        finally:
            go.set()
            run.join()
    assert "trace.long" in out.getvalue()


def test_an_op_that_is_not_among_those_of_the_host_has_no_progress(at_once, simulate):
    ops, state = LongOps(), PartyState("running", "trace.other", "demo.py:1")
    assert ops.progress(simulate(2), state, 60, 0) == ""


def test_how_far_an_op_is_by_time_and_by_bytes(at_once):
    ops = LongOps()
    op = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), program).program.graph.ops[-1]

    class Host:
        def at(self):
            return op

    (inner,) = op.regions["do"].ops
    state = PartyState("running", "trace.long", str(inner.location or ""))
    wait_until(lambda: ops.progress(Host(), state, 25, 0))
    assert ops.progress(Host(), state, 25, 0) == "25 %, about 75 s left"
    assert ops.progress(Host(), state, 10, 500) == "50 %, about 10 s left"
    assert ops.progress(Host(), state, 10, 2000) == "nearly done"
    assert ops.progress(Host(), state, 200, 0) == "longer than the 100 s that were told"
