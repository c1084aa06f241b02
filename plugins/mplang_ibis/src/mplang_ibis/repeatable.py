"""Whether a query gives the same bytes on any number of threads. Uses DuckDB.

Threads change the order in which rows are met: that of rows that nothing sorts, that of a sum of
floats, which rounds, and which of several rows is the first. DuckDB's syntax tree is followed where
it is known, and types are what DuckDB binds; all else runs on one thread.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import duckdb

from mplang_core import TableType
from mplang_ibis.allowlist import ROW_WISE
from mplang_ibis.binding import Binder, Node, Tree, connected
from mplang_ibis.syntax import JOIN, SELECT, STAR, SUBQUERY, TABLE, UNION, expect, fold

MAX_SQL = 16 << 10  # characters of a query: parts of it are bound anew, before it may run

_INTEGERS = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "BOOLEAN",
}  # fmt: skip
_SUMMED = {*_INTEGERS, "UBIGINT", "HUGEINT"}
"""Types whose sums DuckDB makes of integers, as it does those of decimals."""

_ONE_FORM = {
    *_SUMMED, "UHUGEINT", "VARCHAR", "BLOB", "UUID", "DATE", "TIME", "TIME_NS", "TIMESTAMP",
    "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE",
}  # fmt: skip
"""Types whose equal values have equal bytes; 0.0 and -0.0 do not, nor a month and thirty days."""

_COUNTS = {"count", "count_if", "count_star"}
_AGGREGATES = {
    "sum": _SUMMED, "avg": _INTEGERS, "mean": _INTEGERS, "min": _ONE_FORM, "max": _ONE_FORM,
    "bool_and": _INTEGERS, "bool_or": _INTEGERS, "bit_and": _SUMMED, "bit_or": _SUMMED,
    "bit_xor": _SUMMED,
}  # fmt: skip
"""Aggregates of one operand that do not depend on the order of rows, and of which types."""

_CLASSES = {
    "BETWEEN", "CASE", "CAST", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION",
    "OPERATOR", "STAR", "SUBQUERY",
}  # fmt: skip
_JOINS = ("REGULAR", "CROSS", "NATURAL")
_NAMED = {"column_name_alias"}


def may_use_threads(sql: str, tables: Mapping[str, TableType] | duckdb.DuckDBPyConnection) -> bool:
    """Return whether a query surely gives the same bytes on any number of threads.

    Its result is one row or sorted so that no two rows tie, and what it computes from several rows
    does not depend on their order: counts, least and greatest values, sums and averages of
    integers and decimals, groups, joins by conditions.

    Args:
        sql: one SELECT, in the dialect of DuckDB, which is admitted already.
        tables: types of the tables by name, or a connection that has them.

    Example:
        >>> pay = {"t": TableType((("id", "int64"), ("pay", "double")))}
        >>> may_use_threads("SELECT id, count(*) AS n FROM t GROUP BY id ORDER BY id", pay)
        True
        >>> may_use_threads("SELECT id, count(*) AS n FROM t GROUP BY id", pay)
        False
        >>> may_use_threads("SELECT sum(pay) AS s FROM t", pay)
        False
    """
    if len(sql) > MAX_SQL:
        return False
    try:
        with connected(tables) as con:
            binder = Binder(con, sql)
            return _query(binder.query, _Scope(binder)).is_sorted
    except (LookupError, TypeError, ValueError, RecursionError):
        return False  # DuckDB refuses it, or it is something else


class _Rows(NamedTuple):
    """Facts about the rows of a query that are the same in each run.

    Attributes:
        keys: columns in which any two of them differ; none if there is one row. ``None`` if no
            such columns are known.
        is_sorted: whether they come in one order.
    """

    keys: frozenset[str] | None = None
    is_sorted: bool = False


class _Scope(NamedTuple):
    """Scope of a query: entries of WITH."""

    binder: Binder
    ctes: tuple[Node, ...] = ()
    known: Mapping[str, _Rows] = {}

    def of(self, query: Node) -> _Scope:
        """Return the scope within a query."""
        scope = self
        for entry in query.get("cte_map", {}).get("map", ()):
            expect(entry["value"], {"query", "materialized"})
            name = fold(entry["key"])
            if name in scope.known:
                raise LookupError
            rows = _query(entry["value"]["query"]["node"], scope)
            known = {**scope.known, name: rows}
            scope = _Scope(self.binder, (*scope.ctes, entry), known)
        return scope


def _query(node: Node, scope: _Scope) -> _Rows:
    """Return what is known of the rows of a query.

    Raises:
        LookupError: they may be others in another run.
    """
    if node["type"] == "SET_OPERATION_NODE":
        expect(node, UNION)
        if node["setop_type"] not in ("UNION", "EXCEPT", "INTERSECT"):
            raise LookupError
        inner = scope.of(node)
        for side in ("left", "right"):
            _query(node[side], inner)
        if any(True for _ in _aggregates(_orders(node), inner)):
            raise LookupError
        return _modified(node, scope, None, is_set=not node.get("setop_all"))
    if node["type"] != "SELECT_NODE":
        raise LookupError
    expect(node, SELECT - {"qualify"})
    return _select(node, scope)


def _select(node: Node, scope: _Scope) -> _Rows:
    inner = scope.of(node)
    source = _source(node["from_table"], inner)
    groups = _groups(node, inner)
    parts = [*node["select_list"], node.get("having"), *_orders(node)]
    aggregates = [each for part in parts for each in _aggregates(part, inner)]
    rest = [node.get("where_clause"), *groups]
    if any(True for part in rest for _ in _aggregates(part, inner)):
        raise LookupError
    _check_types(aggregates, groups, node, inner)
    if groups:
        keys: list[str] | None = [_text(each, node) for each in groups]
        if len(node.get("group_sets", ())) > 1:
            keys = None  # a row of each
    elif _has_aggregate(node["select_list"]) or node.get("having"):
        keys = []
    elif source.keys is None or _changes_columns(node["select_list"]):
        keys = None
    else:
        keys = [_text(_reference(name), node) for name in source.keys]
    return _modified(node, scope, keys)


def _modified(
    node: Node, scope: _Scope, keys: Sequence[str] | None, *, is_set: bool = False
) -> _Rows:
    """Return what is known of rows that are perhaps made distinct, sorted, and cut.

    Args:
        node: the query.
        scope: of what is around it.
        keys: texts of expressions by which they differ.
        is_set: whether they are compared with each other.
    """
    kinds = [each["type"] for each in node.get("modifiers", ())]
    if not set(kinds) <= {"ORDER_MODIFIER", "LIMIT_MODIFIER", "DISTINCT_MODIFIER"}:
        raise LookupError
    is_set |= "DISTINCT_MODIFIER" in kinds
    if keys is None and not kinds and not is_set:
        return _Rows()
    try:
        columns = scope.binder.columns(node, scope.ctes)
    except LookupError:  # it reads a row of a query around it
        if kinds or is_set:
            raise
        return _Rows(None if keys != [] else frozenset(), keys == [])
    names = [fold(name) for name, _ in columns]
    has_one_form = all(_has_one_form(kind) for _, kind in columns)
    if is_set and not has_one_form:
        raise LookupError
    for each in node.get("modifiers", ()):
        expect(each, {"type", "orders", "limit", "offset"})  # no DISTINCT ON
        if any(
            each[bound]["class"] != "CONSTANT" for bound in ("limit", "offset") if bound in each
        ):
            raise LookupError
    sorts = {text for order in _orders(node) for text in _sorts_by(order, node, names)}
    by_all = has_one_form and set(names) <= sorts and len(set(names)) == len(names)
    is_total = by_all or (keys is not None and set(keys) <= sorts)
    is_sorted = is_total and ("ORDER_MODIFIER" in kinds or keys == [])
    if "LIMIT_MODIFIER" in kinds and not is_sorted:
        raise LookupError
    return _Rows(_named_keys(node, keys, names), is_sorted)


def _check_types(
    aggregates: Sequence[Node], groups: Sequence[Node], node: Node, scope: _Scope
) -> None:
    """Refuse aggregates and groups whose bytes depend on the order of rows."""
    operands = [each["children"][0] for each in aggregates]
    kinds = scope.binder.types([*operands, *groups], node, scope.ctes)
    if len(kinds) != len(operands) + len(groups):  # COLUMNS(…) is several
        raise LookupError
    for each, kind in zip(aggregates, kinds, strict=False):
        if kind not in _AGGREGATES[fold(each["function_name"])] and not _is_decimal(kind):
            raise LookupError
    if not all(map(_has_one_form, kinds[len(operands) :])):
        raise LookupError


def _is_decimal(kind: str) -> bool:
    return kind.startswith("DECIMAL(") and not kind.endswith("]")


def _has_one_form(kind: str) -> bool:
    return kind in _ONE_FORM or _is_decimal(kind)


# -- tables


def _source(table: Node, scope: _Scope) -> _Rows:
    """Return what is known of the rows that a FROM gives."""
    match table["type"]:
        case "EMPTY":
            return _Rows(frozenset())
        case "BASE_TABLE":
            expect(table, TABLE | _NAMED)
            rows = scope.known.get(fold(table["table_name"]), _Rows())
            return _Rows() if _NAMED & table.keys() else rows
        case "SUBQUERY":
            expect(table, SUBQUERY | _NAMED)
            rows = _query(table["subquery"]["node"], scope)
            return _Rows() if _NAMED & table.keys() else rows
        case "EXPRESSION_LIST":
            if any(True for _ in _aggregates(table["values"], scope)):
                raise LookupError
            return _Rows()
        case "JOIN" if table["ref_type"] in _JOINS:
            expect(table, JOIN | {"using_columns", "alias"})
            for side in ("left", "right"):
                _source(table[side], scope)
            if any(True for _ in _aggregates(table.get("condition"), scope)):
                raise LookupError
            return _Rows()
    raise LookupError


# -- expressions


def _aggregates(tree: Tree, scope: _Scope) -> Iterator[Node]:
    """Yield the aggregates of operands within an expression, without those of subqueries.

    Raises:
        LookupError: something in it depends on the order of rows, or may.
    """
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo += node
        if not isinstance(node, dict):
            continue
        kind = node.get("class")
        if (isinstance(kind, str) and kind not in _CLASSES) or "collation" in node:
            raise LookupError
        if kind == "FUNCTION":
            name = fold(node["function_name"])
            if name in _AGGREGATES or name in _COUNTS:
                if node.get("order_bys", {}).get("orders") or node.get("export_state"):
                    raise LookupError
                if name in _AGGREGATES:
                    if len(node.get("children", ())) != 1:
                        raise LookupError
                    yield node
            elif name.isidentifier() and name not in ROW_WISE:
                raise LookupError
        if kind == "SUBQUERY":
            rows = _query(node["subquery"]["node"], scope)
            if node["subquery_type"] == "SCALAR" and rows.keys != frozenset():
                raise LookupError
        todo += [value for key, value in node.items() if key != "subquery"]


def _groups(node: Node, scope: _Scope) -> list[Node]:
    """Return the expressions that a SELECT groups by."""
    items = node["select_list"]
    if node.get("aggregate_handling") == "FORCE_AGGREGATES":  # GROUP BY ALL
        if any(item["class"] == "STAR" for item in items) or node.get("group_expressions"):
            raise LookupError
        return [item for item in items if not _has_aggregate(item)]
    if node.get("aggregate_handling") != "STANDARD_HANDLING":
        raise LookupError
    groups = []
    for each in node.get("group_expressions", ()):
        position = _position(each)
        if position is not None:
            if any(item["class"] == "STAR" for item in items):
                raise LookupError
            each = items[position - 1]
        elif each["class"] == "COLUMN_REF" and len(each["column_names"]) == 1:
            each = _column_or_alias(each, node, scope)
        if each["class"] == "STAR":
            raise LookupError
        groups.append(each)
    return groups


def _column_or_alias(reference: Node, node: Node, scope: _Scope) -> Node:
    """Return what a name in GROUP BY stands for: a column if there is one, else a select item."""
    name = fold(reference["column_names"][0])
    items: list[Node] = node["select_list"]
    items = [each for each in items if fold(each.get("alias", "")) == name]
    if not items:
        return reference
    try:
        scope.binder.types([reference], node, scope.ctes)
    except LookupError:
        if len(items) > 1:
            raise
        return items[0]
    return reference


def _has_aggregate(tree: Tree) -> bool:
    if isinstance(tree, list):
        return any(map(_has_aggregate, tree))
    if not isinstance(tree, dict):
        return False
    name = fold(tree["function_name"]) if tree.get("class") == "FUNCTION" else ""
    if name in _AGGREGATES or name in _COUNTS:
        return True
    return any(_has_aggregate(value) for key, value in tree.items() if key != "subquery")


def _changes_columns(items: Sequence[Node]) -> bool:
    """Return whether a star among select items leaves out columns, or gives them other values."""
    return any(item["class"] == "STAR" and (set(item) - STAR or item["columns"]) for item in items)


def _orders(node: Node) -> list[Node]:
    """Return what a query is sorted by."""
    modifiers = node.get("modifiers", ())
    return [order["expression"] for each in modifiers for order in each.get("orders", ())]


def _sorts_by(order: Node, node: Node, names: Sequence[str]) -> Iterator[str]:
    """Yield the names of columns of the result, and texts of expressions, that an order covers."""
    if order["class"] == "STAR":  # ORDER BY ALL
        expect(order, STAR)
        yield from names
        return
    items = node.get("select_list", ())
    position = _position(order)
    if position is None and order["class"] == "COLUMN_REF" and len(order["column_names"]) == 1:
        name = fold(order["column_names"][0])
        if names.count(name) > 1:
            return
        if name in names:
            yield name
            if any(item["class"] == "STAR" for item in items):
                yield _text(order, node)  # there it is the column of that name
                return
            position = names.index(name) + 1
    if position is not None:
        if names.count(names[position - 1]) == 1:
            yield names[position - 1]
        if len(items) == len(names):
            yield _text(items[position - 1], node)
        return
    text = _text(order, node)
    yield text
    if len(items) == len(names):
        yield from (n for n, item in zip(names, items, strict=True) if _text(item, node) == text)


def _position(expression: Node) -> int | None:
    """Return the column of the select list that an expression stands for, if it is its number."""
    if expression["class"] != "CONSTANT":
        return None
    number = expression["value"].get("value")
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise LookupError
    return number


def _named_keys(
    node: Node, keys: Sequence[str] | None, names: Sequence[str]
) -> frozenset[str] | None:
    """Return the names of the columns of a result that are its keys, if all are among them."""
    if keys is None or len(set(names)) != len(names):
        return None
    if not keys:
        return frozenset()
    items = node["select_list"]
    if [item["class"] for item in items].count("STAR") == 1:
        columns = {_text(_reference(name), node): name for name in names}
        aliases = {fold(item.get("alias", "")) for item in items if item["class"] != "STAR"}
        columns = {key: name for key, name in columns.items() if name not in aliases}
    else:
        columns = {_text(item, node): name for item, name in zip(items, names, strict=True)}
    return frozenset(columns[key] for key in keys) if set(keys) <= columns.keys() else None


def _reference(name: str) -> Node:
    return {"class": "COLUMN_REF", "type": "COLUMN_REF", "column_names": [name]}


def _text(expression: Node, node: Node) -> str:
    """Return a text of an expression, which is equal for equal ones.

    A column is told by its name alone if the query reads one table, whose name may precede it.
    """
    table = node["from_table"]
    source = None if table["type"] == "JOIN" else table.get("alias") or table.get("table_name", "")
    return "= " + json.dumps(_plain(expression, source and fold(source)), sort_keys=True)


def _plain(tree: Tree, source: str | None) -> Tree:
    if isinstance(tree, list):
        return [_plain(each, source) for each in tree]
    if not isinstance(tree, dict):
        return tree
    if tree.get("class") == "COLUMN_REF":
        parts = [fold(part) for part in tree["column_names"]]
        return parts[1:] if len(parts) == 2 and parts[0] == source else parts
    return {k: _plain(v, source) for k, v in tree.items() if k not in ("alias", "query_location")}
