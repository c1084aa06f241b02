"""Ways to run programs as data: each party what it takes part in, or some parties all of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from mplang_cli.text import parse
from mplang_simulator import Simulator
from mplang_testing import programs
from mplang_testing.waiting import DEADLINE

import mplang_core as mp
from mplang_core import TableType, TensorType
from mplang_core.ext import QueriesSources
from mplang_core.ir import Effects, Program, from_bytes, print_program, to_bytes
from mplang_core.runtime import KernelContext
from mplang_core.runtime.plan import Plan, make_plan
from mplang_core.simp.passes import prepared

# -- a dialect of ops with effects


@mp.simple_op("parts.fresh", effects=Effects.FRESH)
def fresh() -> TensorType:
    """Gives another number each time."""
    return TensorType("f64")


@mp.simple_op("parts.note")
def note(x: TensorType) -> TensorType:
    """Does something that nobody knows of."""
    return x


@mp.simple_op("parts.table", effects=Effects.NONE)
def table() -> TableType:
    """Reads a table of its party."""
    return TableType((("n", "int64"),))


@mp.simple_op("parts.query", effects=Effects.NONE, interfaces=[QueriesSources()])
def query(x: TableType) -> TableType:
    """Queries a table, at its source if it is there."""
    return x


@mp.simple_op("parts.join", effects=Effects.NONE, interfaces=[QueriesSources()])
def join(x: TableType, y: TableType) -> TableType:
    """Queries two tables, at their source if both are there."""
    return x


@mp.simple_op("parts.neighbour")
def neighbour(x: TensorType) -> TensorType:
    """Gives the next party's operand, by a message whose key is the op's."""
    return x


@mp.kernel("parts.fresh")
def _fresh(ctx: KernelContext) -> Any:
    return np.asarray(np.random.default_rng().random())


@mp.kernel("parts.note")
def _note(ctx: KernelContext, x: Any) -> Any:
    return x


@mp.kernel("parts.neighbour")
def _neighbour(ctx: KernelContext, x: Any) -> Any:
    me, comm, parties = ctx.interpreter.rank, ctx.interpreter.communicator, list(ctx.parties)
    at = parties.index(me)
    comm.send(parties[at - 1], ctx.key, x)
    return comm.recv(parties[(at + 1) % len(parties)], ctx.key)


# -- running


class DiligentHost(Simulator):
    """Has some parties run every op, also those that they take no part in.

    Attributes:
        diligent: their ranks.
    """

    def __init__(
        self, cluster: mp.ClusterSpec, *, diligent: Sequence[int] = (), **options: Any
    ) -> None:
        self.diligent = diligent
        super().__init__(cluster, **options)

    def _start(self) -> Any:
        parties = super()._start()
        for worker in (parties.workers[rank] for rank in self.diligent):
            worker.make_plan = partial(_whole_plan, worker)
        return parties


def _whole_plan(worker: Any, program: Program) -> Plan:
    return make_plan(prepared(program).graph, worker.kernels)


@cache
def host(parties: int, kind: type[Simulator] = Simulator, **options: Any) -> Simulator:
    """One host per kind serves all examples: nothing may stray in it."""
    return kind(mp.ClusterSpec.simple(parties), timeout=DEADLINE, **options)


def run(on: Simulator, program: Program, mode: str = "launch") -> list[Any]:
    """Run a program without inputs; per result a list of one entry per party."""
    with on.options(mode=mode):
        return [on.fetch(value) for value in on.evaluate(program, [])]


def traced(program: programs.Program, *, wide: bool = True) -> Program:
    """Trace a random program; a wide one gives all values of its outermost graph as well."""
    context = mp.TraceContext(mp.ClusterSpec.simple(program.parties))
    whole = mp.trace(context, programs.build(program)).program
    if wide:
        whole.graph.outputs += [value for op in whole.graph.ops for value in op.outputs]
    return whole


def trace(fn: Any, *args: Any, parties: int = 3) -> Program:
    """Trace a function."""
    return mp.trace(mp.TraceContext(mp.ClusterSpec.simple(parties)), fn, *args).program


def agrees(found: Sequence[Any], expected: Sequence[Any]) -> None:
    """Compare one entry per party."""
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            np.testing.assert_array_equal(mine, theirs)


def same_results(found: Sequence[Any], expected: Sequence[Any]) -> None:
    """Compare the results of two runs."""
    for mine, theirs in zip(found, expected, strict=True):
        agrees(mine, theirs)


def survives(program: Program) -> None:
    """A program verifies, and comes back from text and bytes as it is."""
    mp.verify(program)
    for again in (parse(print_program(program)), from_bytes(to_bytes(program))):
        mp.verify(again)
        assert again.digest == program.digest
        assert print_program(again) == print_program(program)


def size(program: Program) -> int:
    """Return the number of its ops, those of regions included."""
    return sum(1 for _ in program.graph.walk())
