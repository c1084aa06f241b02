"""Where an op of a projection stands in the whole program.

Keys of messages name the op's place in the program. An op of a projection has other
neighbours at each party, so it says its place, and both ends of a message agree on its key.
"""

from __future__ import annotations

from mplang_core.ir.graph import Graph, Operation
from mplang_core.ir.opdef import OPTIONAL, Attr, op_defs
from mplang_core.mask import Mask

__all__ = ["PLACE", "check_places", "is_projected", "place_of"]

PLACE = Attr(int, OPTIONAL, "in a projection: where the op stands in the whole program's graph")
"""The attribute ``place`` of an op that parties do together."""


PROJECTED = frozenset({"simp.send", "simp.recv", "simp.nothing"})
"""Ops that exist after projection only."""


def place_of(op: Operation) -> int | None:
    """Return the place that an op of a projection says; ``None`` for all other ops."""
    if "place" not in op.attrs:
        return None
    op_def = op_defs.get(op.opcode)
    if op_def is None or op_def.attrs.get("place") is not PLACE:
        return None  # a plugin's own attribute of that name
    place: int = op.attrs["place"]
    return place


def is_projected(op: Operation) -> bool:
    """Tell whether an op stands in projections only."""
    return place_of(op) is not None or op.opcode in PROJECTED


def check_places(graph: Graph, world: Mask) -> None:
    """Check that ops of projections stand in projections, and that their places ascend.

    So no two messages have one key: in a whole program keys are made of the positions of ops,
    and in a projection the sending and the receiving of one shuffle share its place.

    Args:
        graph: a graph of the program.
        world: the parties of the program; a projection is for one.

    Raises:
        ValueError: an op of projections stands in a program of several parties, or places do
            not ascend.
    """
    last, opcode = -1, ""
    for op in graph.ops:
        if is_projected(op) and len(world) != 1:
            raise ValueError(
                f"{op.opcode} at {op.location} is part of a projection, which is for one party; "
                f"this program is for {world}"
            )
        place = place_of(op)
        if place is not None:
            one_shuffle = (opcode, op.opcode) == ("simp.send", "simp.recv")
            if place < last + (not one_shuffle):
                raise ValueError(
                    f"{op.opcode} stands at place {place}, after one at {last}; places ascend"
                )
            last, opcode = place, op.opcode
