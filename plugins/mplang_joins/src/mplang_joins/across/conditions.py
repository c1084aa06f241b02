"""Conditions of groups, from SQL to what is computed on shares. Imports sqlglot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias

from sqlglot import exp
from sqlglot.expressions import Expr

from mplang_joins.across.having import COMPARISONS
from mplang_joins.across.plan import Condition
from mplang_joins.across.refused import QueryRefusedError

Find: TypeAlias = Callable[[Expr], Condition | None]
"""Returns an aggregate, or the labels of a column of groups, as an operand."""

_TYPES: Mapping[type[Expr], str] = dict(
    zip((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), COMPARISONS, strict=True)
)


OF_GROUPS = (
    "groups are chosen by comparisons of aggregates, and of what they are grouped by, with "
    "constants or each other"
)
OF_KEYS = "a condition of several parties compares a number of one with a number of another"

_FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def condition_of(
    tree: Expr, find: Find, scales: Sequence[int | None], what: str = OF_GROUPS
) -> Condition:
    """Return a condition as data.

    Args:
        tree: the condition.
        find: returns operands that are not constants.
        scales: of each aggregate the power of ten of its unit; ``None`` if it is a float.
        what: which conditions there are, as a message says.

    Raises:
        QueryRefusedError: it is none that shares are compared by.
    """
    tree = tree.unnest()
    if isinstance(tree, exp.And | exp.Or):
        name = "and" if isinstance(tree, exp.And) else "or"
        sides = (condition_of(each, find, scales, what) for each in (tree.left, tree.right))
        return (name, *sides)
    if isinstance(tree, exp.Not):
        return ("not", condition_of(tree.this, find, scales, what))
    if isinstance(tree, exp.Between):
        ends = (
            exp.GTE(this=tree.this, expression=tree.args["low"]),
            exp.LTE(this=tree.this, expression=tree.args["high"]),
        )
        return ("and", *(condition_of(each, find, scales, what) for each in ends))
    name = _TYPES.get(type(tree), "")
    compared = (tree.left, tree.right) if isinstance(tree, exp.Binary) and name else ()
    operands = [_operand(each, find, scales) for each in compared]
    kinds = {each[0] for each in operands if each is not None}
    if not name or None in operands or kinds <= {"constant", "text"} or _mixed(operands):
        raise QueryRefusedError("condition", what, tree)
    units = {scales[each[1]] for each in operands if each is not None and each[0] == "aggregate"}
    if len(units) > 1:
        raise QueryRefusedError(
            "condition", "numbers are compared in one unit; cast what they are made of alike", tree
        )
    if operands[0] is not None and operands[0][0] == "constant":
        return (_FLIPPED.get(name, name), *reversed(operands))
    return (name, *operands)


def _mixed(operands: list[Condition | None]) -> bool:
    """Return whether a text is compared with a number."""
    texts = [
        each is not None and (each[0] == "text" or (each[0] == "label" and type(each[1][0]) is str))
        for each in operands
    ]
    return len(set(texts)) > 1


_WHOLE = ("bigint", "int128", "int", "smallint", "tinyint")


def _operand(tree: Expr, find: Find, scales: Sequence[int | None]) -> Condition | None:
    tree = tree.unnest()
    if (known := find(tree)) is not None:
        return known
    if isinstance(tree, exp.Literal):
        return ("text" if tree.is_string else "constant", str(tree.this))
    if isinstance(tree, exp.Neg) and isinstance(tree.this, exp.Literal):
        return ("constant", f"-{tree.this.this}")
    return _operand(tree.this, find, scales) if _keeps(tree, find, scales) else None


def _keeps(tree: Expr, find: Find, scales: Sequence[int | None]) -> bool:
    """Return whether an expression is a cast that changes no value that there may be."""
    if type(tree) is not exp.Cast:  # a TRY_CAST gives null
        return False
    within, to = tree.this.unnest(), tree.to
    if isinstance(within, exp.Neg):
        within = within.this
    known = find(within)
    if to.is_type("double"):
        return known is None or known[0] == "aggregate"
    if isinstance(within, exp.Literal):
        if within.is_string:
            return to.is_type("text", "varchar")
        exact = Decimal(str(within.this)).normalize().as_tuple().exponent
        return to.is_type(*_WHOLE) and isinstance(exact, int) and exact >= 0
    whole = known is not None and known[0] == "aggregate" and scales[known[1]] == 0
    return whole and to.is_type(*_WHOLE)
