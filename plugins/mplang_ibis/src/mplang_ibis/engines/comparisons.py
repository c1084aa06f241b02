"""Comparisons and conditions."""

from __future__ import annotations

from mplang_ibis.engines.casts import cast, unify
from mplang_ibis.engines.context import Context
from mplang_ibis.engines.expression import Expression
from mplang_ibis.engines.names import NameScope
from mplang_ibis.engines.types import BOOL, NULL, compared_type, is_exact
from mplang_ibis.syntax import Node

_OF_ORDER = ("<", ">", "<=", ">=")


def compare(ctx: Context, operator: str, left: Expression, right: Expression) -> Expression:
    """Return a comparison; text is ordered by its bytes."""
    if operator not in _OF_ORDER or (left.varies and right.varies):
        check_repeatable(ctx, operator, left, right)
    left, right = comparable(ctx, left, right)
    write = ctx.dialect.ordered if operator in _OF_ORDER else ctx.dialect.compared
    a, b = write(left.sql, left.type), write(right.sql, right.type)
    return Expression(f"({a} {operator} {b})", BOOL)


def comparable(ctx: Context, *sides: Expression) -> list[Expression]:
    """Return expressions that engines compare as DuckDB does, exact numbers as they are."""
    if ctx.dialect.compares_exactly and all(is_exact(each.type) for each in sides):
        return list(sides)
    if len(sides) == 2 and not any(each.is_literal for each in sides):
        kind = compared_type(sides[0].type, sides[1].type)
        if kind is not None:
            return [cast(ctx, each, kind) for each in sides]
    return unify(ctx, sides)[0]


def check_repeatable(ctx: Context, part: str, *values: Expression) -> None:
    """Check that values that are compared by equality are the same in each run.

    Raises:
        NotTranslatedError: one depends on the order in which the engine adds floats.
    """
    if not ctx.dialect.repeats_sums and any(each.varies for each in values):
        ctx.refuse("float-sum", part)


def condition(ctx: Context, node: Node, scope: NameScope, depth: int = 0) -> str:
    """Return the SQL of an expression that is true, false or null.

    Raises:
        NotTranslatedError: it is none, or is refused.
    """
    result = ctx.translate(node, scope, depth)
    if result.type not in (BOOL, NULL):
        ctx.refuse("condition", f"a condition of the type {result.type}")
    return cast(ctx, result, BOOL).sql
