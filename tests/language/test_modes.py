"""Standard and launch mode: what the host goes through, and what it sends to the parties."""

from __future__ import annotations

import numpy as np
import pytest
import toy

import mplang_core as mp
from mplang_core.ir import Level, OpDef, op_defs

CLUSTER = mp.ClusterSpec.simple(2)


@mp.builtin_function
def double(x):
    return mp.invoke(toy.add, x, x)


class Seen:
    """Listens to an interpreter."""

    def __init__(self):
        self.ops = []

    def op_started(self, op, index, total):
        self.ops.append(op.opcode)

    def op_finished(self, op, index, total):
        pass


def submissions(sim, monkeypatch):
    """Note which programs go to the parties."""
    sent, submit = [], sim.submit
    note = lambda program, *rest: (sent.append(program), submit(program, *rest))[1]  # noqa: E731
    monkeypatch.setattr(sim, "submit", note)
    return sent


op_defs.add(
    "modetest.mean",
    OpDef("modetest.mean", lambda op, world: [op.inputs[0].type], Level.PARTY),
    provider="tests",
)


@mp.kernel("modetest.mean", role="host")
def _mean_at_the_host(ctx, x):
    """Work of the coordinator: it has references, and fetches what it needs."""
    here = [value for value in ctx.interpreter.fetch(x) if value is not None]
    return ctx.interpreter.lift(np.mean(here))


def test_an_op_with_a_host_kernel_runs_at_the_host(simulate, monkeypatch):
    def program(x):
        moved = mp.pshfl_s(x, [0, 1], [1, 0])
        (mean,) = mp.cur_ctx().emit("modetest.mean", [moved])
        return mp.invoke(toy.less, moved, mean)

    sim = simulate(2)
    sent = submissions(sim, monkeypatch)
    with mp.with_ctx(sim):
        x = mp.pconv([mp.constant(1.0, parties=0), mp.constant(4.0, parties=1)])
        at_once = program(x)
    assert mp.fetch(sim, at_once) == [False, True]
    seen, sent[:] = Seen(), []
    found = mp.evaluate(sim, program, x, listener=seen)
    assert mp.fetch(sim, found) == [False, True]
    assert seen.ops[-3:] == ["simp.shuffle_static", "modetest.mean", "simp.pcall_static"]
    assert [program.name for program in sent] == ["simp.shuffle_static", "simp.pcall_static"]


def test_standard_mode_goes_through_functions_op_by_op(simulate, monkeypatch):
    sim = simulate(2)
    sent, seen = submissions(sim, monkeypatch), Seen()
    found = mp.evaluate(sim, lambda x: double(double(x)), 3, listener=seen)
    assert mp.fetch(sim, found) == [12, 12]
    assert seen.ops == ["func.call", "simp.pcall_static"] * 2
    assert [program.name for program in sent] == ["simp.pcall_static"] * 2


def test_launch_mode_sends_the_graph_whole_and_once(simulate, monkeypatch):
    sim = simulate(2, mode="launch")
    sent, seen = submissions(sim, monkeypatch), Seen()
    found = mp.evaluate(sim, lambda x: double(double(x)), 3, listener=seen)
    assert mp.fetch(sim, found) == [12, 12]
    assert seen.ops == []  # the host has nothing to go through
    (program,) = sent
    assert [op.opcode for op in program.graph.ops] == ["func.call", "func.call"]


@pytest.mark.once
def test_a_mode_is_chosen_per_evaluation(simulate, monkeypatch):
    sim = simulate(2)
    sent = submissions(sim, monkeypatch)
    program = lambda x: double(double(x))  # noqa: E731
    found = [mp.evaluate(sim, program, 3, mode=mode) for mode in ("launch", "standard", "launch")]
    assert mp.fetch(sim, found) == [[12, 12]] * 3
    assert len(sent) == 1 + 2 + 1


def test_a_compiled_program_is_evaluated_and_fetched(simulate, mode):
    sim = simulate(2)
    program = mp.compile(lambda x: double(x), 1, cluster_spec=sim.cluster_spec)
    assert mp.fetch(sim, mp.evaluate(sim, program, 21, mode=mode)) == [42, 42]
