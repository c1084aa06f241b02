"""The values of groups, by what owners publish of their columns. Imports sqlglot.

What a group is must not tell which groups there are: so their list is made of published values and
ranges before anything runs, and whoever has another value ends the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias

from sqlglot import exp
from sqlglot.expressions import Expr

from mplang_joins.across.block import QuerySource
from mplang_joins.across.refused import QueryRefusedError
from mplang_joins.ops import MAX_GROUPS as MAX_GROUPS
from mplang_joins.published import Label, PublishedColumn

Ends: TypeAlias = tuple[Decimal, Decimal]
"""The smallest and the largest value of a number."""

Look: TypeAlias = Callable[[str, str], PublishedColumn]
"""Returns what is published of a column, by the names of its table and its own."""


def labels_of(group: Expr, sources: Sequence[QuerySource], look: Look) -> tuple[Label, ...]:
    """Return the values that a group may have, in order.

    Args:
        group: what is grouped by, of one owner's columns.
        sources: what the owner's query reads.
        look: what is published of columns.

    Raises:
        QueryRefusedError: nobody can tell, or there are too many.

    Example:
        >>> import sqlglot
        >>> table = QuerySource("a", sqlglot.parse_one("SELECT 1 FROM t AS a").find(exp.Table))
        >>> group = sqlglot.parse_one('floor(a.pay / 100)')
        >>> labels_of(group, [table], lambda table, column: PublishedColumn(range=(-50.0, 250.0)))
        (-1, 0, 1, 2)
    """
    labels = _labels(group, sources, look)
    if labels is None:
        raise QueryRefusedError(
            "groups",
            "its values are not known beforehand, and which there are may be private: let the "
            "owner publish values: or ranges: of the column, or group by CASE with constants",
            group,
        )
    if len(labels) > MAX_GROUPS:
        raise QueryRefusedError("groups", f"it has more than {MAX_GROUPS} values", group)
    return labels


_CHOSEN = (exp.Min, exp.Max, exp.AnyValue, exp.First, exp.Last)
"""Aggregates, within a query of one owner, that are one of the values."""


def _labels(tree: Expr, sources: Sequence[QuerySource], look: Look) -> tuple[Label, ...] | None:
    tree = tree.unnest()
    if isinstance(tree, exp.Predicate | exp.Not):
        return (False, True)
    if isinstance(tree, exp.Case):
        return _of_case(tree)
    if isinstance(tree, _CHOSEN):
        return _labels(tree.this, sources, look)
    if isinstance(tree, exp.Column):
        below = _below(tree, sources)
        if below is None:
            return None
        if not isinstance(below, exp.Table):
            within, trees = below
            return _labels(within, trees, look)
        published = look(below.name, tree.name)
        if published.values:
            return tuple(sorted(published.values))
    ends = interval(tree, sources, look)
    if ends is None or not _is_whole(tree, sources, look):
        return None
    low, high = ends
    if high - low >= MAX_GROUPS:
        raise QueryRefusedError("groups", f"it has more than {MAX_GROUPS} values", tree)
    return tuple(range(int(low), int(high) + 1))


def _of_case(tree: exp.Case) -> tuple[Label, ...] | None:
    """Return the values of a CASE whose branches are constants."""
    default = tree.args.get("default")
    branches = [*(each.args["true"] for each in tree.args["ifs"]), *([default] if default else [])]
    constants: set[Label] = set()
    for each in branches:
        value = _constant(each)
        if value is None:
            return None
        constants.add(value)
    return tuple(sorted(constants)) if len({type(each) for each in constants}) == 1 else None


def _constant(tree: Expr) -> Label | None:
    tree = tree.unnest()
    if isinstance(tree, exp.Cast):
        return _constant(tree.this)
    if isinstance(tree, exp.Literal):
        if tree.is_string:
            return str(tree.this)
        return int(tree.this) if tree.is_int else None
    if isinstance(tree, exp.Boolean):
        return bool(tree.this)
    if isinstance(tree, exp.Neg):
        value = _constant(tree.this)
        return -value if type(value) is int else None
    return None


def _below(
    column: exp.Column, sources: Sequence[QuerySource]
) -> exp.Table | tuple[Expr, Sequence[QuerySource]] | None:
    """Return the table of a column, or what it is in a query within, and what that reads."""
    source = next((each for each in sources if each.name == column.table), None)
    if source is None:
        return None
    if isinstance(source.tree, exp.Table):
        return source.tree
    within = source.tree.this
    if not isinstance(within, exp.Select):
        return None
    made = next((e for e in within.selects if e.alias_or_name == column.name), None)
    if made is None:
        return None
    trees = [within.args["from_"].this, *(each.this for each in within.args.get("joins") or ())]
    return made.unalias(), [QuerySource(each.alias_or_name, each) for each in trees]


def table_of(tree: Expr, sources: Sequence[QuerySource]) -> tuple[str, str] | None:
    """Return the names of the table and of the column that a column is; ``None`` of any other."""
    tree = tree.unnest()
    below = _below(tree, sources) if isinstance(tree, exp.Column) else None
    if below is None or isinstance(below, exp.Table):
        return None if below is None else (below.name, tree.name)
    return table_of(*below)


def _is_whole(tree: Expr, sources: Sequence[QuerySource], look: Look) -> bool:
    """Return whether a number is whole by what it is computed of."""
    tree = tree.unnest()
    if isinstance(tree, exp.Floor | exp.Ceil):
        return not tree.args.get("decimals")
    if isinstance(tree, exp.Cast):
        return tree.to.is_type(*exp.DataType.INTEGER_TYPES)
    if isinstance(tree, exp.IntDiv | exp.Literal):
        return isinstance(tree, exp.IntDiv) or tree.is_int
    if isinstance(tree, exp.Add | exp.Sub | exp.Mul):
        return all(_is_whole(each, sources, look) for each in (tree.left, tree.right))
    if isinstance(tree, (exp.Neg, *_CHOSEN)):
        return _is_whole(tree.this, sources, look)
    if isinstance(tree, exp.Column):
        below = _below(tree, sources)
        if below is None:
            return False
        if isinstance(below, exp.Table):
            return look(below.name, tree.name).whole
        return _is_whole(below[0], below[1], look)
    return False


def interval(tree: Expr, sources: Sequence[QuerySource], look: Look) -> Ends | None:
    """Return the smallest and the largest value of a number; ``None`` if nobody can tell."""
    tree = tree.unnest()
    if isinstance(tree, exp.Literal) and not tree.is_string:
        return (Decimal(tree.this),) * 2
    if isinstance(tree, exp.Neg):
        inner = interval(tree.this, sources, look)
        return inner and (-inner[1], -inner[0])
    if isinstance(tree, exp.Column):
        below = _below(tree, sources)
        if below is None:
            return None
        if not isinstance(below, exp.Table):
            return interval(below[0], below[1], look)
        ends = look(below.name, tree.name).range
        return None if ends is None else (_exact(ends[0]), _exact(ends[1]))
    if isinstance(tree, exp.Floor | exp.Ceil) and not tree.args.get("decimals"):
        rounds = math.floor if isinstance(tree, exp.Floor) else math.ceil
        inner = interval(tree.this, sources, look)
        return inner and (Decimal(rounds(inner[0])), Decimal(rounds(inner[1])))
    if isinstance(tree, _CHOSEN):
        return interval(tree.this, sources, look)
    if isinstance(tree, exp.Cast):
        return _of_cast(tree, sources, look)
    if isinstance(tree, exp.Binary):
        return _of_binary(tree, sources, look)
    return None


def _exact(number: float) -> Decimal:
    return Decimal(repr(number)) if isinstance(number, float) else Decimal(number)


def _of_cast(tree: exp.Cast, sources: Sequence[QuerySource], look: Look) -> Ends | None:
    inner = interval(tree.this, sources, look)
    if inner is None or not tree.to.is_type(*exp.DataType.NUMERIC_TYPES):
        return None
    if tree.to.is_type(*exp.DataType.INTEGER_TYPES) and not _is_whole(tree.this, sources, look):
        return Decimal(math.floor(inner[0])), Decimal(math.ceil(inner[1]))  # however it rounds
    return inner


_APPLY: Mapping[type[Expr], Callable[[Decimal, Decimal], Decimal]] = {
    exp.Add: lambda a, b: a + b,
    exp.Sub: lambda a, b: a - b,
    exp.Mul: lambda a, b: a * b,
    exp.Div: lambda a, b: a / b,
    exp.IntDiv: lambda a, b: Decimal(int(a / b)),
}


def _of_binary(tree: exp.Binary, sources: Sequence[QuerySource], look: Look) -> Ends | None:
    apply = _APPLY.get(type(tree))
    left, right = (interval(each, sources, look) for each in (tree.left, tree.right))
    if apply is None or left is None or right is None:
        return None
    if isinstance(tree, exp.Div | exp.IntDiv) and right[0] <= 0 <= right[1]:
        return None
    ends = [apply(a, b) for a in left for b in right]
    return min(ends), max(ends)
