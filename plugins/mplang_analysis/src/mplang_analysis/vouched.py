"""What ops vouch for of tables, lineage and guards, held against their types."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_analysis import op_traits
from mplang_analysis.guarding import WHOLE, Declassifies, Guarding
from mplang_analysis.lineage import HasLineage, Lineage, Origin
from mplang_core import TableType
from mplang_core.ext import Operation, VerifyError


def lineage_of(
    op: Operation, rule: HasLineage, rank: int, operands: Sequence[Lineage | None]
) -> Lineage | None:
    """Return the lineage that an op says its result has.

    Args:
        op: the op.
        rule: its interface.
        rank: who runs it.
        operands: the lineage of each operand there.

    Raises:
        VerifyError: it is of other columns than the result, or of data that the op does not get.
    """
    try:
        found = rule.lineage(op, rank, operands)
    except (TypeError, ValueError, LookupError) as error:
        raise _refused(op, "HasLineage", str(error)) from error
    if found is None:
        return None
    columns = [name for name, _ in found.columns]
    for value in op.outputs:
        there = _columns(value.type)
        if columns != there:
            raise _refused(op, "HasLineage", f"lineage of the columns {columns}, not {there}")
    known = {origin for each in operands if each is not None for origin in each.reads}
    known |= {Origin(rank, name) for name in op_traits.reads(op)}
    named = {origin for _, origin in found.columns if origin is not None} | found.reads
    for origin in sorted(named - known):
        what = f"{origin.name!r} of party {origin.party}, which no operand has, and reads= neither"
        raise _refused(op, "HasLineage", what)
    return found


def guarding_of(op: Operation, guard: Declassifies) -> Guarding:
    """Return what a guard says of itself.

    Raises:
        VerifyError: it names columns that its table does not have, or numbers out of their range.
    """
    found = guard.guarding(op)
    there = _columns(op.inputs[0].type) if op.inputs else []
    for name in (*found.units, *found.uses):
        if name not in there:
            what = f"the column {name!r} of operand 0, which has {there or 'none'}"
            raise _refused(op, "Declassifies", what)
    if min(found.k, found.epsilon, found.delta) < 0 or not 0 < found.max_share <= WHOLE:
        raise _refused(op, "Declassifies", f"numbers out of their range: {found}")
    if not found.units:
        raise _refused(op, "Declassifies", "no unit, so it counts nobody")
    return found


def _columns(kind: object) -> list[str]:
    return [name for name, _ in kind.columns] if isinstance(kind, TableType) else []


def _refused(op: Operation, interface: str, what: str) -> VerifyError:
    where = f" at {op.location}" if op.location else ""
    return VerifyError(
        f"{op.opcode}{where}: its interface {interface} says {what}; correct the op's definition"
    )
