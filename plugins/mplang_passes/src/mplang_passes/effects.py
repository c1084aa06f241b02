"""Effects of an op beyond its results, regions included."""

from __future__ import annotations

from mplang_core.ext import Effects, Operation, op_defs, origin_of

_ORDER = tuple(Effects)


def effects_of(op: Operation) -> Effects:
    """Return the strongest effect of an op and of those in its regions.

    What parties do together has none as long as they all leave it out, or all do it. In a
    projection one party cannot leave it out alone, so a projected op may do anything.
    To fail is no effect: an op that nobody needs may be left out although it would fail.

    Example:
        >>> effects_of(Operation("nobody.knows", ()))
        <Effects.ANY: 'any'>
    """
    op_def = op_defs.get(op.opcode)
    if op_def is None or origin_of(op) is not None:
        return Effects.ANY
    inner = (effects_of(each) for region in op.regions.values() for each in region.ops)
    return max((op_def.effects, *inner), key=_ORDER.index)
