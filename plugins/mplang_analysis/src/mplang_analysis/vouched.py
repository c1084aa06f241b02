"""Checks of ops' declarations (lineage, guards) against their types."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_analysis import op_traits
from mplang_analysis.guarding import (
    WHOLE,
    Declassifies,
    Guarding,
    GuardsShares,
    Matches,
    Prepared,
    Prepares,
    ShareGuard,
)
from mplang_analysis.lineage import HasLineage, Lineage, Origin
from mplang_analysis.type_size import payload
from mplang_analysis.words import GROUP_OF_WORDS, Role, What, is_condition, words_of
from mplang_core import BaseType, Form, MPType, TableType
from mplang_core.ext import Message, Operation, VerifyError


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
        there = columns_of(value.type)
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
    there = columns_of(op.inputs[0].type) if op.inputs else []
    for name in (*found.units, *found.uses):
        if name not in there:
            what = f"the column {name!r} of operand 0, which has {there or 'none'}"
            raise _refused(op, "Declassifies", what)
    if min(found.k, found.epsilon, found.delta) < 0 or not 0 < found.max_share <= WHOLE:
        raise _refused(op, "Declassifies", f"numbers out of their range: {found}")
    if not found.units:
        raise _refused(op, "Declassifies", "no unit, so it counts nobody")
    _check_uses(op, guard, {use for of in found.uses.values() for use in of} - {Role.BY})
    return found


def prepared_by(op: Operation, rule: Prepares) -> Prepared:
    """Return what an op says that it makes of a table for a guard on shares.

    Raises:
        VerifyError: it names columns that the table does not have, or functions that no installed
            guard of the family has.
    """
    says = rule.prepared(op)
    tables = [there for value in op.inputs if (there := columns_of(value.type))]
    if len(tables) != 1 or not {says.unit, *says.uses} <= set(tables[0]):
        what = f"columns of one table among its operands, got {says.unit!r}, {list(says.uses)}"
        raise _refused(op, "Prepares", what)
    used = {use for of in says.uses.values() for use in of} - {Role.BY}
    known = {each.name for each in words_of(says.family).functions}
    if not used <= known:
        what = f"the functions {sorted(used - known)}, and {says.family!r} declares {sorted(known)}"
        raise _refused(op, "Prepares", what)
    if not says.waits:
        raise _refused(op, "Prepares", "nothing of the form of what it makes")
    return says


def share_guard_of(op: Operation, rule: GuardsShares) -> ShareGuard:
    """Return what a guard on shares says of itself.

    Raises:
        VerifyError: it names not one form for each operand, or numbers out of their range.
    """
    says = rule.share_guard(op)
    if len(says.waits) != len(op.inputs) or not all(says.waits):
        raise _refused(op, "GuardsShares", f"{len(says.waits)} of {len(op.inputs)} operands")
    counts = says.k >= 1 or (says.k == 0 and says.epsilon > 0)
    if not counts or min(says.epsilon, says.delta) < 0 or not 0 < says.max_share <= WHOLE:
        raise _refused(op, "GuardsShares", f"numbers out of their range: {says}")
    return says


def _check_uses(op: Operation, guard: Declassifies, used: set[str]) -> None:
    """Refuse uses that are not functions of the guard: rules could not name them."""
    roles = sorted(used & set(Role))
    if roles:  # else a column would be left out of what rules are told of
        raise _refused(op, "Declassifies", f"the role {roles[0]!r}, which lineage alone gives")
    known = [each.name for each in getattr(guard, "functions", ())]
    if known and not used <= set(known):
        what = f"the functions {sorted(used - set(known))}, and its GuardRule declares {known}"
        raise _refused(op, "Declassifies", what)


def words_of_message(op: Operation, message: Message) -> tuple[What, Sequence[str]]:
    """Return what kind of row a message is, and on which condition it is sent, if on any.

    Raises:
        VerifyError: no installed package declares the condition, so that no rule could name it.
    """
    if message.when and not is_condition(message.when):
        what = (
            f"that a message is sent {message.when!r}, which no installed package declares: "
            f"name it in Words(times=…) of an entry point of {GROUP_OF_WORDS}"
        )
        raise _refused(op, "Communicates", what)
    return What(message.what), [message.when] if message.when else []


def keys_of(op: Operation, rule: Matches) -> Sequence[Sequence[str]]:
    """Return the columns that an op says it matches its tables on.

    Raises:
        VerifyError: an operand is not a table of one party, or has no such column.
    """
    named = rule.keys(op)
    if len(named) != len(op.inputs):
        raise _refused(op, "Matches", f"keys of {len(named)} of {len(op.inputs)} operands")
    for value, keys in zip(op.inputs, named, strict=True):
        kind = value.type
        if not isinstance(kind, MPType) or kind.pmask is None or len(kind.pmask) != 1:
            raise _refused(op, "Matches", f"that it matches {kind}, which is not at one party")
        there = columns_of(kind.base)
        if not keys or not set(keys) <= set(there):
            raise _refused(op, "Matches", f"the keys {list(keys)} of an operand with {there}")
    return named


def columns_of(kind: object) -> list[str]:
    """Return the names of a table's columns, of one in a handle, too; none of anything else."""
    kind = kind.base if isinstance(kind, MPType) else kind
    kind = payload(kind) if isinstance(kind, BaseType) and kind.form is Form.HANDLE else kind
    return [name for name, _ in kind.columns] if isinstance(kind, TableType) else []


def _refused(op: Operation, interface: str, what: str) -> VerifyError:
    where = f" at {op.location}" if op.location else ""
    return VerifyError(
        f"{op.opcode}{where}: its interface {interface} says {what}; correct the op's definition"
    )
