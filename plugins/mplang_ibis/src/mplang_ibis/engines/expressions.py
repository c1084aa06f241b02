"""Expressions: from DuckDB's syntax tree to another engine's SQL, by their types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mplang_ibis.engines import constants, functions, names, windows
from mplang_ibis.engines.casts import cast, unify
from mplang_ibis.engines.comparisons import check_repeatable, comparable, compare, condition
from mplang_ibis.engines.context import Context
from mplang_ibis.engines.expression import Expression
from mplang_ibis.engines.names import NameScope
from mplang_ibis.engines.types import BOOL, STRING, type_of_cast
from mplang_ibis.syntax import Node, fold

_COMPARISONS = {
    "COMPARE_EQUAL": "=", "COMPARE_NOTEQUAL": "<>", "COMPARE_LESSTHAN": "<",
    "COMPARE_GREATERTHAN": ">", "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHANOREQUALTO": ">=", "COMPARE_DISTINCT_FROM": "IS DISTINCT FROM",
    "COMPARE_NOT_DISTINCT_FROM": "IS NOT DISTINCT FROM",
}  # fmt: skip
_COMMON = {"class", "type", "alias", "query_location"}
_DEPTH = 200  # of nodes within nodes


def translate(ctx: Context, node: Node, scope: NameScope, depth: int = 0) -> Expression:
    """Return an expression in the engine's SQL.

    Raises:
        NotTranslatedError: the engine would answer in another way, or it is not known.
    """
    kind = node["class"]
    handler = _HANDLERS.get(kind)
    if handler is None:
        ctx.refuse("collate" if kind == "COLLATE" else "syntax", kind.replace("_", " ").lower())
    if depth > _DEPTH:
        ctx.refuse("length", "deep nesting")
    around, ctx.varies = ctx.varies, False
    made = handler(ctx, node, scope, depth + 1)
    ctx.check_length(made.sql)
    varies = made.varies or ctx.varies  # as a part of it does
    ctx.varies = around or varies
    return made._replace(varies=varies)


def _expect(ctx: Context, node: Node, *keys: str) -> None:
    """Refuse a node that has more than is understood."""
    unknown = node.keys() - _COMMON - set(keys)
    if unknown:
        ctx.refuse("syntax", f"{', '.join(sorted(unknown))} of {node['class'].lower()}")


def _constant(ctx: Context, node: Node, scope: NameScope, depth: int) -> Expression:
    _expect(ctx, node, "value")
    return constants.constant(ctx, node["value"])


def _column(ctx: Context, node: Node, scope: NameScope, depth: int) -> Expression:
    _expect(ctx, node, "column_names")
    path = node["column_names"]
    result = scope.find(ctx, path)
    if result is not None:
        return names.column(ctx, result)
    name = fold(path[-1])
    if len(path) > 1 or name not in scope.items or name in scope.following:
        ctx.refuse("name", ".".join(path))
    scope.following.add(name)
    try:
        return translate(ctx, scope.items[name], scope, depth)
    finally:
        scope.following.discard(name)


def _cast(ctx: Context, node: Node, scope: NameScope, depth: int) -> Expression:
    _expect(ctx, node, "child", "cast_type", "try_cast")
    if node["try_cast"]:
        ctx.refuse("try_cast", "TRY_CAST")
    kind = type_of_cast(node["cast_type"])
    if kind is None:
        ctx.refuse("type", f"the type {node['cast_type']['id']}")
    return cast(ctx, translate(ctx, node["child"], scope, depth), kind)


def _comparison(ctx: Context, node: Node, scope: NameScope, depth: int) -> Expression:
    _expect(ctx, node, "left", "right")
    sides = [translate(ctx, node[side], scope, depth) for side in ("left", "right")]
    return compare(ctx, _COMPARISONS[node["type"]], *sides)


def _between(ctx: Context, node: Node, scope: NameScope, depth: int) -> Expression:
    _expect(ctx, node, "input", "lower", "upper")
    parts = [translate(ctx, node[part], scope, depth) for part in ("input", "lower", "upper")]
    low = compare(ctx, ">=", parts[0], parts[1])
    high = compare(ctx, "<=", parts[0], parts[2])
    return Expression(f"({low.sql} AND {high.sql})", BOOL)


def _conjunction(ctx: Context, node: Node, scope: NameScope, depth: int) -> Expression:
    _expect(ctx, node, "children")
    word = " AND " if node["type"] == "CONJUNCTION_AND" else " OR "
    parts = [condition(ctx, each, scope, depth) for each in node["children"]]
    return Expression(f"({word.join(parts)})", BOOL)


def _case(ctx: Context, node: Node, scope: NameScope, depth: int) -> Expression:
    _expect(ctx, node, "case_checks", "else_expr")
    whens = [condition(ctx, each["when_expr"], scope, depth) for each in node["case_checks"]]
    values = [translate(ctx, each["then_expr"], scope, depth) for each in node["case_checks"]]
    values.append(translate(ctx, node["else_expr"], scope, depth))
    values, kind = unify(ctx, values)
    pairs = zip(whens, values[:-1], strict=True)
    body = " ".join(f"WHEN {when} THEN {value.sql}" for when, value in pairs)
    return Expression(f"CASE {body} ELSE {values[-1].sql} END", kind)


def _operator(ctx: Context, node: Node, scope: NameScope, depth: int) -> Expression:
    _expect(ctx, node, "children")
    kind, children = node["type"], node["children"]
    if kind == "OPERATOR_NOT":
        return Expression(f"(NOT {condition(ctx, children[0], scope, depth)})", BOOL)
    if kind not in _OPERATORS:
        key = "list" if kind.startswith("ARRAY") else "syntax"
        ctx.refuse(key, kind.replace("_", " ").lower())
    values = [translate(ctx, each, scope, depth) for each in children]
    return _OPERATORS[kind](ctx, values)


def _is_in(ctx: Context, values: Sequence[Expression], word: str) -> Expression:
    check_repeatable(ctx, word, *values)
    first, *rest = comparable(ctx, *values)
    sql = ctx.dialect.compared(first.sql, first.type)
    return Expression(f"({sql} {word} ({', '.join(each.sql for each in rest)}))", BOOL)


def _coalesce(ctx: Context, values: Sequence[Expression]) -> Expression:
    values, kind = unify(ctx, values)
    return Expression(f"COALESCE({', '.join(each.sql for each in values)})", kind)


def _null_test(ctx: Context, values: Sequence[Expression], word: str) -> Expression:
    value = cast(ctx, values[0], STRING) if values[0].is_null else values[0]
    return Expression(f"({value.sql} IS {word})", BOOL)


_OPERATORS: Mapping[str, Callable[[Context, Sequence[Expression]], Expression]] = {
    "OPERATOR_IS_NULL": lambda ctx, values: _null_test(ctx, values, "NULL"),
    "OPERATOR_IS_NOT_NULL": lambda ctx, values: _null_test(ctx, values, "NOT NULL"),
    "COMPARE_IN": lambda ctx, values: _is_in(ctx, values, "IN"),
    "COMPARE_NOT_IN": lambda ctx, values: _is_in(ctx, values, "NOT IN"),
    "OPERATOR_COALESCE": _coalesce,
}


def _subquery(ctx: Context, node: Node, scope: NameScope, depth: int) -> Expression:
    _expect(ctx, node, "subquery_type", "subquery", "child", "comparison_type")
    kind = node["subquery_type"]
    made = ctx.query(node["subquery"]["node"], scope, depth=depth)
    if kind == "EXISTS":
        return Expression(f"(EXISTS ({made.sql}))", BOOL)
    if len(made.columns) != 1 or kind not in ("SCALAR", "ANY"):
        ctx.refuse("syntax", f"a query of {len(made.columns)} columns as a value ({kind.lower()})")
    column = names.column(ctx, made.columns[0])
    if kind == "SCALAR":
        return column._replace(sql=f"({made.sql})")
    if node["comparison_type"] != "COMPARE_EQUAL":
        ctx.refuse("syntax", "a comparison with any or all rows of a query, but by equality")
    child = translate(ctx, node["child"], scope, depth)
    check_repeatable(ctx, "IN", child, column)
    left, right = comparable(ctx, child, column)
    if right.sql == column.sql:
        return Expression(f"({left.sql} IN ({made.sql}))", BOOL)
    name = ctx.name("q")
    return Expression(f"({left.sql} IN (SELECT {right.sql} FROM ({made.sql}) AS {name}))", BOOL)


def _function(ctx: Context, node: Node, scope: NameScope, depth: int) -> Expression:
    _expect(
        ctx, node, "function_name", "schema", "children", "filter", "order_bys", "distinct",
        "is_operator", "export_state",
    )  # fmt: skip
    name = fold(node["function_name"])
    if node["export_state"] or node.get("schema", "main") != "main":
        ctx.refuse("syntax", name)
    if node.get("order_bys", {}).get("orders"):
        ctx.refuse("first", f"{name}(… ORDER BY …)")
    if name in functions.AGGREGATES:
        return windows.aggregate(ctx, name, node, scope, depth)
    if node["distinct"] or node.get("filter"):
        ctx.refuse("syntax", f"options of {name}")
    interval = functions.interval(ctx, name, node.get("children", ()))
    if interval is not None:
        return interval
    args = [translate(ctx, each, scope, depth) for each in node.get("children", ())]
    return functions.call(ctx, name, args)


def _window(ctx: Context, node: Node, scope: NameScope, depth: int) -> Expression:
    return windows.window(ctx, node, scope, depth)


_HANDLERS: Mapping[str, Callable[[Context, Node, NameScope, int], Expression]] = {
    "CONSTANT": _constant,
    "COLUMN_REF": _column,
    "CAST": _cast,
    "COMPARISON": _comparison,
    "BETWEEN": _between,
    "CONJUNCTION": _conjunction,
    "CASE": _case,
    "OPERATOR": _operator,
    "SUBQUERY": _subquery,
    "FUNCTION": _function,
    "WINDOW": _window,
}
