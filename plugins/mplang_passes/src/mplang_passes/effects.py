"""Effects of an op beyond its results, regions included."""

from __future__ import annotations

from mplang_core.ext import Effects, Operation, op_defs

_ORDER = tuple(Effects)


def effects_of(op: Operation) -> Effects:
    """Return the strongest effect of an op and of those in its regions.

    Communication is not an effect, since a pass removes an op at all parties.
    Failure is not an effect: an unused op may be removed although it would fail.

    Example:
        >>> effects_of(Operation("nobody.knows", ()))
        <Effects.ANY: 'any'>
    """
    op_def = op_defs.get(op.opcode)
    if op_def is None:
        return Effects.ANY
    if not op.regions or op_def.effects is Effects.ANY:
        return op_def.effects
    inner = {effects_of(each) for region in op.regions.values() for each in region.ops}
    return max({op_def.effects, *inner}, key=_ORDER.index)
