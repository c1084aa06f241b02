"""Comparisons and conditions."""

from __future__ import annotations

from mplang_ibis.engines.casts import cast, unify
from mplang_ibis.engines.context import Context
from mplang_ibis.engines.expression import Expression
from mplang_ibis.engines.names import NameScope
from mplang_ibis.engines.types import BOOL, NULL, is_exact
from mplang_ibis.syntax import Node

_OF_ORDER = ("<", ">", "<=", ">=")


def compare(ctx: Context, operator: str, left: Expression, right: Expression) -> Expression:
    """Return a comparison; text is ordered by its bytes."""
    left, right = comparable(ctx, left, right)
    a, b = left.sql, right.sql
    if operator in _OF_ORDER:
        a, b = ctx.dialect.ordered(a, left.type), ctx.dialect.ordered(b, right.type)
    return Expression(f"({a} {operator} {b})", BOOL)


def comparable(ctx: Context, *sides: Expression) -> list[Expression]:
    """Return expressions that engines compare as DuckDB does, exact numbers as they are."""
    if all(is_exact(each.type) for each in sides):
        return list(sides)
    return unify(ctx, sides)[0]


def condition(ctx: Context, node: Node, scope: NameScope, depth: int = 0) -> str:
    """Return the SQL of an expression that is true, false or null.

    Raises:
        NotTranslatedError: it is none, or is refused.
    """
    result = ctx.translate(node, scope, depth)
    if result.type not in (BOOL, NULL):
        ctx.refuse("condition", f"a condition of the type {result.type}")
    return cast(ctx, result, BOOL).sql
