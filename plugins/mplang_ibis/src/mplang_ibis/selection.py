"""Lineage of SQL: whether its rows are some of an operand's, each once and unchanged. Uses DuckDB.

DuckDB's syntax tree is followed where it is known, field by field. Whatever else there is in it, or
could be read in two ways, makes the result one of no lineage.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mplang_analysis import Cell, Lineage, Selection, selected

from mplang_core import MPLangError, TableType
from mplang_core.ext import Operation
from mplang_ibis.allowlist import ROW_WISE
from mplang_ibis.query import parse
from mplang_ibis.sql import read_sql
from mplang_ibis.syntax import JOIN, REFERENCE, SELECT, STAR, SUBQUERY, TABLE, expect, fold

_CLASSES = {
    "BETWEEN", "CASE", "CAST", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION",
    "OPERATOR",
}  # fmt: skip


ALIAS = "alias"  # by which DuckDB calls the select list, where no table has that name


class _Column(NamedTuple):
    """A column, wherever it stands now; names are in lower case, as SQL ignores case.

    Attributes:
        source: what its table is called there.
        name: what it is called there.
        type: its type, while it is a column of an operand.
        cell: the column of an operand that it is; ``None`` if it is computed.
        cells: the columns that it is computed of.
        functions: the functions by which.
    """

    source: str
    name: str
    type: str
    cell: Cell | None
    cells: frozenset[Cell]
    functions: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of an operand; the other fields are as in :class:`mplang_analysis.Selection`.

    Attributes:
        used: the operands that it is made of.
    """

    table: int
    columns: Sequence[_Column]
    used: frozenset[int]
    filtered: frozenset[Cell] = frozenset()
    matched: frozenset[Cell] = frozenset()
    same: frozenset[tuple[Cell, Cell]] = frozenset()
    functions: frozenset[str] = frozenset()

    def called(self, source: str) -> _Rows:
        """Return them as those of a table, whose columns' names must differ."""
        if len({each.name for each in self.columns}) != len(self.columns):  # DuckDB gives others
            raise LookupError
        if source == ALIAS:
            raise LookupError
        return replace(self, columns=[each._replace(source=source) for each in self.columns])

    def where(self, cells: frozenset[Cell], functions: frozenset[str]) -> _Rows:
        """Return some of them, on which columns and functions decide."""
        return replace(self, filtered=self.filtered | cells, functions=self.functions | functions)


def lineage_of(op: Operation, rank: int, operands: Sequence[Lineage | None]) -> Lineage | None:
    """Return the lineage of the result of an ``ibis.run``.

    Args:
        op: the op.
        rank: who runs it.
        operands: the lineage of each operand.
    """
    if all(each is None for each in operands):
        return None
    kinds = [value.type for value in op.inputs if isinstance(value.type, TableType)]
    tables = tuple(zip(op.attrs["names"], kinds, strict=True))
    found = selection_of(read_sql(op.attrs["code"]), tables, op.attrs["gives"])
    return None if found is None else selected(found, operands)


@functools.lru_cache(maxsize=32)  # loops repeat the same code
def selection_of(
    sql: str, tables: tuple[tuple[str, TableType], ...], gives: TableType
) -> Selection | None:
    """Return what a query selects, if its rows are some of a table's, each once.

    Args:
        sql: one SELECT.
        tables: names and types of the tables.
        gives: the type of the result, to which it is cast.

    Returns:
        ``None`` if it is anything else, such as a group, a limit, or a join that gives rows twice.

    Example:
        >>> people = TableType((("id", "int64"), ("pay", "double")))
        >>> found = selection_of('SELECT "id" FROM "t" WHERE "pay" > 3', (("t", people),),
        ...                      TableType((("id", "int64"),)))
        >>> found.columns, found.filtered
        ((('id', 'id'),), frozenset({(0, 'pay')}))
    """
    names = [fold(name) for name, _ in tables]
    try:
        found = _query(parse(sql)["node"], dict(_tables(tables)))
    except (MPLangError, LookupError, ValueError, RecursionError):
        return None  # DuckDB refuses it, or it is something else
    if len(found.columns) != len(gives.columns) or len(set(names)) != len(names):
        return None
    types = [{fold(name): (name, kind) for name, kind in table.columns} for _, table in tables]
    columns: list[tuple[str, str | None]] = []
    computed: list[tuple[str, frozenset[Cell], frozenset[str]]] = []
    for (name, wanted), column in zip(gives.columns, found.columns, strict=True):
        cell = column.cell
        there = ("", "") if cell is None else types[cell[0]][cell[1]]
        kept = cell is not None and cell[0] == found.table and there[1] == wanted  # not cast
        columns.append((name, there[0] if kept else None))
        if not kept:
            computed.append((name, column.cells, column.functions))

    def named(cell: Cell) -> Cell:
        return cell[0], types[cell[0]][cell[1]][0]

    return Selection(
        found.table,
        tuple(columns),
        frozenset(map(named, found.filtered)),
        frozenset(map(named, found.matched)),
        frozenset((named(a), named(b)) for a, b in found.same),
        found.functions,
        tuple((name, frozenset(map(named, of)), by) for name, of, by in computed),
    )


def _tables(tables: Sequence[tuple[str, TableType]]) -> Iterator[tuple[str, _Rows]]:
    for i, (table, kind) in enumerate(tables):
        columns = []
        for name, type in kind.columns:
            cell = i, fold(name)
            columns.append(_Column("", fold(name), type, cell, frozenset([cell])))
        yield fold(table), _Rows(i, columns, frozenset([i]))


def _query(node: Mapping[str, Any], known: Mapping[str, _Rows]) -> _Rows:
    """Return the rows of a query.

    Raises:
        LookupError: they are not those of an operand, or may not be.
    """
    if node["type"] != "SELECT_NODE" or node.get("modifiers"):  # a limit, or rows that differ
        raise LookupError
    expect(node, SELECT - {"group_expressions", "group_sets", "having", "qualify"})
    if node.get("aggregate_handling") != "STANDARD_HANDLING":
        raise LookupError
    known = dict(known)
    for entry in node.get("cte_map", {}).get("map", ()):
        expect(entry["value"], {"query", "materialized"})
        known[fold(entry["key"])] = _query(entry["value"]["query"]["node"], known)
    rows = _source(node["from_table"], known)
    where = node.get("where_clause")
    _check_aliases(node["select_list"], [*node["select_list"], where])
    if where is not None:
        rows = rows.where(*_uses(where, rows.columns))
    columns = [column for item in node["select_list"] for column in _item(item, rows.columns)]
    return replace(rows, columns=columns)


def _check_aliases(items: Sequence[Mapping[str, Any]], readers: Sequence[Any]) -> None:
    """Refuse an alias that something else may be read as: which one counts depends on the place."""
    aliases = set()
    for item in items:
        alias = fold(item.get("alias", ""))
        if not (_is_reference(item) and fold(item["column_names"][-1]) == alias):
            aliases.add(alias)
    for reference in _references(readers):
        *table, name = (fold(part) for part in reference["column_names"])
        if name in aliases and table in ([], [ALIAS]):
            raise LookupError


def _source(node: Mapping[str, Any], known: Mapping[str, _Rows]) -> _Rows:
    match node["type"]:
        case "BASE_TABLE":
            expect(node, TABLE)
            name = fold(node["table_name"])
            return known[name].called(fold(node.get("alias", name)))
        case "SUBQUERY":
            expect(node, SUBQUERY)
            return _query(node["subquery"]["node"], known).called(fold(node.get("alias", "")))
        case "JOIN":
            expect(node, JOIN)
            if node["join_type"] in ("SEMI", "ANTI") and node["ref_type"] == "REGULAR":
                left, right = _source(node["left"], known), _source(node["right"], known)
                return _matched(left, right, node["condition"], node["join_type"])
    raise LookupError


def _matched(left: _Rows, right: _Rows, condition: Mapping[str, Any], kind: str) -> _Rows:
    """Return the rows of a table for which there are some, or none, of another one.

    Columns of both may be compared by equality only: by ``t.id != 7 OR t.pay > s.limit``, one
    person would decide for each limit on the rows of twenty others.
    """
    if left.used & right.used:  # a table that is matched with itself decides by others' rows
        raise LookupError
    rows = replace(
        left,
        used=left.used | right.used,
        matched=left.matched | right.matched,
        same=left.same | right.same if kind == "SEMI" else left.same,
    ).where(right.filtered, right.functions)
    for part in _parts(condition):
        pair = _equal(part, left, right)
        if pair is not None:
            same = rows.same | {pair} if kind == "SEMI" else rows.same
            rows = replace(rows, matched=rows.matched | set(pair), same=same)
            continue
        cells, functions = _uses(part, [*left.columns, *right.columns])
        tables = {table for table, _ in cells}
        if tables & left.used and tables & right.used:
            raise LookupError
        rows = rows.where(cells, functions)
    return rows


def _equal(part: Mapping[str, Any], left: _Rows, right: _Rows) -> tuple[Cell, Cell] | None:
    """Return two columns, one of each table, that are equal and of one type, so without a cast."""
    if part["type"] != "COMPARE_EQUAL" or not all(
        _is_reference(part[s]) for s in ("left", "right")
    ):
        return None
    both = [*left.columns, *right.columns]
    a, b = _reference(part["left"], both), _reference(part["right"], both)
    if a.cell is None or b.cell is None or a.type != b.type:
        return None
    if {a.cell[0] in left.used, b.cell[0] in left.used} != {True, False}:
        return None
    return a.cell, b.cell


def _parts(condition: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if condition["type"] == "CONJUNCTION_AND":
        for each in condition["children"]:
            yield from _parts(each)
    else:
        yield condition


def _item(item: Mapping[str, Any], source: Sequence[_Column]) -> list[_Column]:
    if item["class"] == "STAR":
        expect(item, STAR)
        if item["columns"]:
            raise LookupError
        return list(source)
    if _is_reference(item):
        found = _reference(item, source)
        return [found._replace(name=fold(item.get("alias", found.name)))]
    cells, functions = _uses(item, source)
    return [_Column("", fold(item.get("alias", "")), "", None, cells, functions | _operators(item))]


def _operators(expression: object) -> frozenset[str]:
    """Return what an expression computes by beside functions: comparisons and the like."""
    named = ("COMPARISON", "CONJUNCTION", "BETWEEN", "OPERATOR")
    return frozenset(
        node["type"].lower() for node in _classes(expression) if node["class"] in named
    )


def _is_reference(item: Mapping[str, Any]) -> bool:
    return bool(item["class"] == "COLUMN_REF")


def _reference(item: Mapping[str, Any], source: Sequence[_Column]) -> _Column:
    expect(item, REFERENCE)
    *table, name = (fold(part) for part in item["column_names"])
    found = [each for each in source if each.name == name and table in ([], [each.source])]
    if len(found) != 1:  # one of a query around it, or something such as rowid
        raise LookupError
    return found[0]


def _references(tree: Any) -> Iterator[Mapping[str, Any]]:
    for node in _classes(tree):
        if _is_reference(node):
            yield node


def _uses(
    expression: Mapping[str, Any], source: Sequence[_Column]
) -> tuple[frozenset[Cell], frozenset[str]]:
    """Return the columns and the functions of an expression that is of one row."""
    cells, functions = frozenset[Cell](), set[str]()
    for node in _classes(expression):
        if node["class"] not in _CLASSES:
            raise LookupError
        if node["class"] == "FUNCTION":
            name = fold(node["function_name"])
            if name not in ROW_WISE and name.isidentifier():
                raise LookupError
            if node.get("order_bys", {}).get("orders") or node.get("distinct") or "filter" in node:
                raise LookupError
            functions.add(name)
        elif node["class"] in ("CASE", "CAST"):
            functions.add(node["class"].lower())
        elif _is_reference(node):
            found = _reference(node, source)
            cells |= found.cells
            functions |= found.functions
    return cells, frozenset(functions)


def _classes(tree: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the expressions within a tree."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            if isinstance(node.get("class"), str):
                yield node
            todo += node.values()
        elif isinstance(node, list):
            todo += node
