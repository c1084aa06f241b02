"""Origin index: the position of a projected op in the program it came from.

Keys of messages contain the position of an op in its graph. Positions differ between
projections, so each projected op carries its position in the whole program, and both ends of a
message compute the same key.
"""

from __future__ import annotations

from mplang_core.ir.graph import Graph, Operation
from mplang_core.ir.opdef import ORIGIN, op_defs
from mplang_core.mask import Mask


def origin_of(op: Operation) -> int | None:
    """Return the origin index of a projected op; ``None`` for all other ops.

    Example:
        >>> print(origin_of(Operation("demo.op", ())))
        None
    """
    if "place" not in op.attrs:
        return None
    op_def = op_defs.get(op.opcode)
    if op_def is None or op_def.attrs.get("place") is not ORIGIN:
        return None  # a local op may declare this attribute
    origin: int = op.attrs["place"]
    return origin


def is_projected(op: Operation) -> bool:
    """Return whether an op is part of a projection."""
    if origin_of(op) is not None:
        return True
    op_def = op_defs.get(op.opcode)
    return op_def is not None and op_def.projected


def check_origins(graph: Graph, world: Mask) -> None:
    """Check that projected ops are in projections and that their origin indices ascend.

    This makes keys of messages unique: in a whole program they contain positions of ops, and
    in a projection only the two halves of one exchange share an index: first the sending op,
    which has no results, then the receiving op.

    Args:
        graph: a graph of the program.
        world: the parties of the program; a projection has one.

    Raises:
        ValueError: a projected op is in a program of several parties, or indices do not ascend.
    """
    last, gave = -1, False
    for op in graph.ops:
        if is_projected(op) and len(world) != 1:
            raise ValueError(
                f"{op.opcode} at {op.location} is part of a projection, which is for one party; "
                f"this program is for {world}"
            )
        origin = origin_of(op)
        if origin is not None:
            other_half = gave and bool(op.outputs) and not op.inputs
            if origin < last + (not other_half):
                raise ValueError(
                    f"{op.opcode} stands at place {origin}, after one at {last}; places ascend"
                )
            last, gave = origin, not op.outputs
