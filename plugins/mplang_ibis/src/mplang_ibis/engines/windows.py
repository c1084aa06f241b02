"""Aggregates and windows: functions of several rows."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_ibis.engines.casts import as_double, cast
from mplang_ibis.engines.comparisons import check_repeatable, condition
from mplang_ibis.engines.context import Context
from mplang_ibis.engines.dialect import Written
from mplang_ibis.engines.expression import Expression
from mplang_ibis.engines.names import NameScope
from mplang_ibis.engines.types import (
    BINARY,
    BOOL,
    DOUBLE,
    FLOAT,
    INT64,
    INT128,
    NULL,
    SqlType,
    decimal,
    is_exact,
    is_integer,
    is_number,
)
from mplang_ibis.syntax import Node, fold

_SPREADS = {
    "stddev": "stddev_samp", "stddev_samp": "stddev_samp", "stddev_pop": "stddev_pop",
    "variance": "var_samp", "var_samp": "var_samp", "var_pop": "var_pop",
}  # fmt: skip
_WITHOUT_SUMS = {"count", "min", "max", "median"}
_PAIRS = {"corr", "covar_pop", "covar_samp"}
_ORDERED = {
    "first", "last", "any_value", "arbitrary", "list", "array_agg", "string_agg", "group_concat",
    "listagg", "arg_max", "arg_min", "argmax", "argmin", "max_by", "min_by", "arg_max_null",
    "arg_min_null", "mode", "first_value", "last_value", "nth_value",
}  # fmt: skip
_RANKS = {
    "rank": INT64, "dense_rank": INT64, "percent_rank": DOUBLE, "cume_dist": DOUBLE,
}  # fmt: skip
_BOUNDS = {
    "UNBOUNDED_PRECEDING": "UNBOUNDED PRECEDING", "UNBOUNDED_FOLLOWING": "UNBOUNDED FOLLOWING",
    "CURRENT_ROW_ROWS": "CURRENT ROW", "CURRENT_ROW_RANGE": "CURRENT ROW",
}  # fmt: skip
_OFFSETS = {"EXPR_PRECEDING_ROWS": "PRECEDING", "EXPR_FOLLOWING_ROWS": "FOLLOWING"}
_KEYS = {
    "class", "type", "alias", "query_location", "function_name", "schema", "children",
    "partitions", "orders", "start", "end", "start_expr", "end_expr", "ignore_nulls",
    "exclude_clause", "distinct", "filter_expr", "offset_expr", "default_expr",
}  # fmt: skip


def aggregate(ctx: Context, name: str, node: Node, scope: NameScope, depth: int) -> Expression:
    """Return an aggregate of a group.

    Raises:
        NotTranslatedError: the engine lacks it, or answers in another way.
    """
    args = [ctx.translate(each, scope, depth) for each in node.get("children", ())]
    written, kind = _call(ctx, name, args, distinct=node["distinct"])
    options = ""
    if "filter" in node:
        options = f" FILTER (WHERE {condition(ctx, node['filter'], scope, depth)})"
    return Expression(written(options), kind)


def _call(
    ctx: Context, name: str, args: list[Expression], *, distinct: bool
) -> tuple[Written, SqlType]:
    """Return an aggregate, and its type."""
    result = _typed(ctx, name, args, distinct)
    if result is None:
        kinds = ", ".join(str(each.type) for each in args)
        ctx.refuse(_key(name, args), f"{name}({kinds})")
    called, args, kind = result
    if distinct:
        check_repeatable(ctx, f"{name}(DISTINCT …)", *args)
    if DOUBLE in {each.type for each in args} and called not in _WITHOUT_SUMS:
        ctx.sums_floats = ctx.varies = True
    made = ctx.dialect.aggregate(called, args, "DISTINCT " * distinct)
    if made is None:
        ctx.refuse("corr" if name == "corr" else _key(name, args), name)
    return made, kind


def _typed(
    ctx: Context, name: str, args: list[Expression], distinct: bool
) -> tuple[str, list[Expression], SqlType] | None:
    """Return the aggregate of the engine, its operands, and DuckDB's type of the result."""
    if name == "count_star" or (name == "count" and not args):
        return "count_star", [], INT64
    if len(args) == 2 and name in _PAIRS and not distinct:
        return name, [as_double(ctx, each) for each in args], DOUBLE
    if len(args) != 1:
        return None
    (a,) = args
    if name == "count":
        return name, [a if a.type != NULL else cast(ctx, a, INT64)], INT64
    if name in ("min", "max"):
        if a.type in (BINARY, NULL):
            return None
        called = {"min": "bool_and", "max": "bool_or"}[name] if a.type == BOOL else name
        return called, [a._replace(sql=ctx.dialect.ordered(a.sql, a.type))], a.type
    if name in ("bool_and", "bool_or") and a.type == BOOL:
        return name, args, BOOL
    if name == "count_if" and a.type == BOOL:
        return name, args, INT128
    if not is_number(a.type):
        return None
    if name == "sum":
        if is_exact(a.type):
            kind = INT128 if is_integer(a.type) else decimal(38, a.type.scale)
            return "sum_exact", args, kind
        return name, [as_double(ctx, a)], DOUBLE
    if name in ("avg", "mean"):
        return "avg", args if is_exact(a.type) else [as_double(ctx, a)], DOUBLE
    if name == "median":
        if a.type.name == "decimal":
            ctx.refuse("median", f"{name} of {a.type}")
        return (name, [as_double(ctx, a)], DOUBLE) if not distinct else None
    if name in _SPREADS and not distinct:
        return _SPREADS[name], [as_double(ctx, a)], DOUBLE
    return None


def _key(name: str, args: Sequence[Expression]) -> str:
    if name in _ORDERED:
        return "first"
    if name.startswith("approx"):
        return "approximate"
    return "aggregate" if not args or args[0].type != FLOAT else "single"


# -- windows


def window(ctx: Context, node: Node, scope: NameScope, depth: int) -> Expression:
    """Return a function over a window.

    Rows that tie are told apart by all columns of the tables where it matters, so that the result
    does not depend on the order in which rows are read.

    Raises:
        NotTranslatedError: the engine lacks it, or answers in another way.
    """
    name = fold(node["function_name"])
    unknown = node.keys() - _KEYS
    if unknown or node["exclude_clause"] != "NO_OTHER" or node["ignore_nulls"] or node["distinct"]:
        ctx.refuse("window", f"options of {name} over a window")
    args = [ctx.translate(each, scope, depth) for each in node.get("children", ())]
    keys = [order_key(ctx, each, ctx.translate(each["expression"], scope, depth))
            for each in node.get("orders", ())]  # fmt: skip
    written, kind, ties = _function(ctx, name, node, args, scope, depth)
    is_rows = any(str(node.get(bound, "")).endswith("_ROWS") for bound in ("start", "end"))
    if ties or is_rows:
        if not keys:
            ctx.refuse("window-order", f"{name} over rows in no order")
        keys += _all_columns(ctx, scope)
    partitions = [ctx.translate(each, scope, depth) for each in node.get("partitions", ())]
    check_repeatable(ctx, "PARTITION BY", *partitions)
    parts = [each.sql for each in partitions]
    over = [f"PARTITION BY {', '.join(parts)}"] * bool(parts)
    over += [f"ORDER BY {', '.join(keys)}"] * bool(keys)
    over += [_frame(ctx, name, node, is_rows)] * (name not in {*_RANKS, *_NO_FRAME})
    options = f" OVER ({' '.join(filter(None, over))})"
    if "filter_expr" in node:
        if not ctx.dialect.filters_windows:
            ctx.refuse("window", f"FILTER of {name} over a window")
        options = f" FILTER (WHERE {condition(ctx, node['filter_expr'], scope, depth)}){options}"
    return Expression(written(options), kind)


_NO_FRAME = {"row_number", "ntile", "lag", "lead"}


def _function(
    ctx: Context, name: str, node: Node, args: list[Expression], scope: NameScope, depth: int
) -> tuple[Written, SqlType, bool]:
    """Return a window's function, its type, and whether ties tell."""
    if name in _RANKS:
        return (f"{name.upper()}()".__add__, _RANKS[name], False)
    if name == "row_number":
        return "ROW_NUMBER()".__add__, INT64, True
    if name == "ntile" and isinstance(args[0].value, int) and args[0].value > 0:
        return f"NTILE({args[0].value})".__add__, INT64, True
    if name in ("lag", "lead"):
        offset = node.get("offset_expr", {"class": "CONSTANT", "value": {"value": 1}})
        count = offset.get("value", {}).get("value") if offset["class"] == "CONSTANT" else None
        if not isinstance(count, int) or count < 0:
            ctx.refuse("window", f"{name} by what is not a constant")
        text = f"{args[0].sql}, {count}"
        if "default_expr" in node:
            default = cast(ctx, ctx.translate(node["default_expr"], scope, depth), args[0].type)
            text += f", {default.sql}"
        return f"{name.upper()}({text})".__add__, args[0].type, True
    if name == "first_value" or (name == "last_value" and node["end"] != "CURRENT_ROW_RANGE"):
        return f"{name.upper()}({args[0].sql})".__add__, args[0].type, True
    if name in _ORDERED or name in ("median", *_SPREADS):
        ctx.refuse("window", f"{name} over a window")
    written, kind = _call(ctx, name, args, distinct=False)
    return written, kind, False


def _all_columns(ctx: Context, scope: NameScope) -> list[str]:
    columns = [each for each in scope.columns() if each.type is not None]
    return [
        f"{ctx.dialect.ordered(each.sql, each.type)} NULLS LAST" for each in columns if each.type
    ]


def _frame(ctx: Context, name: str, node: Node, is_rows: bool) -> str:
    """Return the frame of a window; none if it is that of the standard."""
    bounds = [_bound(ctx, name, node, bound) for bound in ("start", "end")]
    if not is_rows and not node.get("orders"):
        return ""
    return f"{'ROWS' if is_rows else 'RANGE'} BETWEEN {bounds[0]} AND {bounds[1]}"


def _bound(ctx: Context, name: str, node: Node, bound: str) -> str:
    kind = node[bound]
    if kind in _BOUNDS:
        return _BOUNDS[kind]
    offset = node.get(f"{bound}_expr", {}).get("value", {}).get("value")
    if kind not in _OFFSETS or not isinstance(offset, int) or offset < 0:
        ctx.refuse("window", f"the frame of {name}")
    return f"{offset} {_OFFSETS[kind]}"


def order_key(ctx: Context, order: Node, value: Expression) -> str:
    """Return a key of ORDER BY that says where nulls are; they are last by default."""
    if order["type"] not in ("ORDER_DEFAULT", "ASCENDING", "DESCENDING"):
        ctx.refuse("syntax", f"the order {order['type'].lower()}")
    word = " DESC" if order["type"] == "DESCENDING" else ""
    nulls = "FIRST" if order["null_order"].endswith("FIRST") else "LAST"
    return f"{ctx.dialect.ordered(value.sql, value.type)}{word} NULLS {nulls}"
