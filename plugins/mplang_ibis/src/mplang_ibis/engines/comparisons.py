"""Comparisons and conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mplang_ibis.engines.casts import cast, unify
from mplang_ibis.engines.context import Context
from mplang_ibis.engines.expression import Expression
from mplang_ibis.engines.names import Scope
from mplang_ibis.engines.types import BOOL, NULL, is_exact

Node = Mapping[str, Any]

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


def condition(ctx: Context, node: Node, scope: Scope, depth: int = 0) -> str:
    """Return the SQL of an expression that is true, false or null.

    Raises:
        RefusedError: it is none, or is refused.
    """
    found = ctx.translate(node, scope, depth)
    if found.type not in (BOOL, NULL):
        ctx.refuse("condition", f"a condition of the type {found.type}")
    return cast(ctx, found, BOOL).sql
