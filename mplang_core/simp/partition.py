"""Partition of a program: per party its projection, and which inputs and outputs it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mplang_core.ir import Program
from mplang_core.simp.projection import held, project


@dataclass(frozen=True, slots=True)
class Part:
    """A party's part of a program.

    Attributes:
        program: its projection.
        ins: which of the inputs of the whole program it takes.
        outs: which of the outputs it gives.
        size: how many outputs the whole program has.
    """

    program: Program
    ins: list[int]
    outs: list[int]
    size: int

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing for the party to do."""
        return not self.program.graph.ops

    def select_inputs(self, inputs: Sequence[Any]) -> list[Any]:
        """Choose the party's inputs among those of the whole program."""
        return [inputs[i] for i in self.ins]

    def scatter_outputs(self, results: Sequence[Any]) -> list[Any]:
        """Place the party's results among those of the whole program, ``None`` for the others."""
        outs: list[Any] = [None] * self.size
        for i, value in zip(self.outs, results, strict=True):
            outs[i] = value
        return outs

    def forward(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the results of a party that has nothing to do: inputs, as they are."""
        graph = self.program.graph
        given = dict(zip(graph.inputs, self.select_inputs(inputs), strict=True))
        return self.scatter_outputs([given[value] for value in graph.outputs])


def part_of(program: Program, rank: int) -> Part:
    """Cut out the part of a program that one party runs.

    Example:
        >>> import mplang_core as mp
        >>> context = mp.TraceContext(mp.ClusterSpec.simple(2))
        >>> whole = mp.trace(context, lambda x: (x, mp.constant(7, parties=[1])), 1).program
        >>> part = part_of(whole, 0)
        >>> part.is_idle, part.forward(["x"])
        (True, ['x', None])
    """
    graph = program.graph
    return Part(
        project(program, rank),
        held(graph.inputs, rank),
        held(graph.outputs, rank),
        len(graph.outputs),
    )
