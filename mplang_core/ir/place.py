"""Where an op of a projection stands in the whole program.

Keys of messages name the op's place in the program. An op of a projection has other
neighbours at each party, so it says its place, and both ends of a message agree on its key.
"""

from __future__ import annotations

from mplang_core.ir.graph import Graph, Operation
from mplang_core.ir.opdef import OPTIONAL, Attr, op_defs

__all__ = ["PLACE", "check_places", "place_of"]

PLACE = Attr(int, OPTIONAL, "in a projection: where the op stands in the whole program's graph")
"""The attribute ``place`` of an op that parties do together."""


def place_of(op: Operation) -> int | None:
    """Return the place that an op of a projection says; ``None`` for all other ops."""
    if "place" not in op.attrs:
        return None
    op_def = op_defs.get(op.opcode)
    if op_def is None or op_def.attrs.get("place") is not PLACE:
        return None  # a plugin's own attribute of that name
    place: int = op.attrs["place"]
    return place


def check_places(graph: Graph) -> None:
    """Check that places ascend, so that no two messages have one key.

    The sending and the receiving of one shuffle share its place.

    Raises:
        ValueError: they do not.
    """
    last, opcode = -1, ""
    for op in graph.ops:
        place = place_of(op)
        if place is not None:
            one_shuffle = (opcode, op.opcode) == ("simp.send", "simp.recv")
            if place < last + (not one_shuffle):
                raise ValueError(f"{op.opcode} stands at place {place}, after one at {last}")
            last, opcode = place, op.opcode
