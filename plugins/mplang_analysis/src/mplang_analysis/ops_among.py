"""Ops of a program with the parties that run them."""

from __future__ import annotations

from collections.abc import Iterator

from mplang_core import Mask
from mplang_core.ext import Graph, Operation, PartyCall, control_of


def ops_among(graph: Graph, parties: Mask) -> Iterator[tuple[Operation, Mask]]:
    """Yield the ops of a graph and its regions, each with the parties that run it.

    An op that stands where its parties are known only at run time counts as run by all.
    """
    for op in graph.ops:
        yield op, parties
        if op.regions:
            control = control_of(op)
            inner = control.parties if isinstance(control, PartyCall) else None
            for region in op.regions.values():
                yield from ops_among(region, parties if inner is None else inner)
