"""Partition of a program: per party its projection, inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mplang_core.ir import Program
from mplang_core.simp.projection import held, project


@dataclass(frozen=True, slots=True)
class Part:
    """Part of a program for one party.

    Attributes:
        program: the projection.
        ins: the positions of its inputs among those of the whole program.
        outs: the positions of its outputs among those of the whole program.
        size: the number of outputs of the whole program.
    """

    program: Program
    ins: list[int]
    outs: list[int]
    size: int

    @property
    def is_idle(self) -> bool:
        """Whether the projection has no ops."""
        return not self.program.graph.ops

    def select_inputs(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the party's inputs among those of the whole program."""
        return [inputs[i] for i in self.ins]

    def scatter_outputs(self, results: Sequence[Any]) -> list[Any]:
        """Return the outputs of the whole program with the party's results; ``None`` for others."""
        outs: list[Any] = [None] * self.size
        for i, value in zip(self.outs, results, strict=True):
            outs[i] = value
        return outs

    def forward(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the results of an idle party, which are some of its inputs."""
        graph = self.program.graph
        given = dict(zip(graph.inputs, self.select_inputs(inputs), strict=True))
        return self.scatter_outputs([given[value] for value in graph.outputs])


def part_of(program: Program, rank: int) -> Part:
    """Return the part of a program for one party.

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
