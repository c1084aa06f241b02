"""Lineage of SQL: whether its rows are some of an operand's, each once and unchanged. Uses DuckDB.

DuckDB's syntax tree is followed where it is known, field by field. Whatever else there is in it, or
could be read in two ways, makes the result one of no lineage.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mplang_analysis import Cell, Lineage, Selection, selected

from mplang_core import MPLangError, TableType
from mplang_core.ext import Operation
from mplang_ibis.allowlist import ROW_WISE
from mplang_ibis.query import parse
from mplang_ibis.sql import read_sql
from mplang_ibis.syntax import JOIN, REFERENCE, SELECT, STAR, SUBQUERY, TABLE, expect

_CLASSES = {
    "BETWEEN", "CASE", "CAST", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION",
    "OPERATOR",
}  # fmt: skip


class _Column(NamedTuple):
    """A column, wherever it stands now; names are in lower case, as SQL ignores case.

    Attributes:
        source: what its table is called there.
        name: what it is called there.
        cell: the column of an operand that it is; ``None`` if it is computed.
        cells: the columns that it is computed of.
        functions: the functions by which.
    """

    source: str
    name: str
    cell: Cell | None
    cells: frozenset[Cell]
    functions: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of an operand."""

    table: int
    columns: Sequence[_Column]
    filtered: frozenset[Cell] = frozenset()
    matched: frozenset[tuple[Cell, Cell]] = frozenset()
    functions: frozenset[str] = frozenset()
    used: frozenset[int] = frozenset()  # operands

    def called(self, source: str) -> _Rows:
        """Return them as those of a table, whose columns' names must differ."""
        if len({each.name for each in self.columns}) != len(self.columns):  # DuckDB gives others
            raise LookupError
        return self.with_columns([each._replace(source=source) for each in self.columns])

    def with_columns(self, columns: Sequence[_Column]) -> _Rows:
        return _Rows(self.table, columns, self.filtered, self.matched, self.functions, self.used)


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
    names = [name.lower() for name, _ in tables]
    try:
        found = _query(parse(sql)["node"], dict(_tables(tables)))
    except (MPLangError, LookupError, ValueError, RecursionError):
        return None  # DuckDB refuses it, or it is something else
    if len(found.columns) != len(gives.columns) or len(set(names)) != len(names):
        return None
    types = [{name.lower(): (name, kind) for name, kind in table.columns} for _, table in tables]
    columns: list[tuple[str, str | None]] = []
    for (name, wanted), column in zip(gives.columns, found.columns, strict=True):
        cell = column.cell
        there = ("", "") if cell is None else types[cell[0]][cell[1]]
        kept = cell is not None and cell[0] == found.table and there[1] == wanted  # not cast
        columns.append((name, there[0] if kept else None))

    def named(cell: Cell) -> Cell:
        return cell[0], types[cell[0]][cell[1]][0]

    return Selection(
        found.table,
        tuple(columns),
        frozenset(map(named, found.filtered)),
        frozenset((named(a), named(b)) for a, b in found.matched),
        found.functions,
    )


def _tables(tables: Sequence[tuple[str, TableType]]) -> Iterator[tuple[str, _Rows]]:
    for i, (name, kind) in enumerate(tables):
        columns = [
            _Column("", column.lower(), (i, column.lower()), frozenset([(i, column.lower())]))
            for column, _ in kind.columns
        ]
        yield name.lower(), _Rows(i, columns, used=frozenset([i]))


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
        known[entry["key"].lower()] = _query(entry["value"]["query"]["node"], known)
    rows = _source(node["from_table"], known)
    where = node.get("where_clause")
    _check_aliases(node["select_list"], [*node["select_list"], *([where] if where else [])], rows)
    if where is not None:
        cells, functions = _uses(where, rows.columns)
        rows = _Rows(
            rows.table,
            rows.columns,
            rows.filtered | cells,
            rows.matched,
            rows.functions | functions,
            rows.used,
        )
    columns = [column for item in node["select_list"] for column in _item(item, rows.columns)]
    return rows.with_columns(columns)


def _check_aliases(items: Sequence[Mapping[str, Any]], readers: Sequence[Any], rows: _Rows) -> None:
    """Refuse an alias that something else may be read as: which one counts depends on the place."""
    aliases = {}
    for item in items:
        alias = item.get("alias", "").lower()
        itself = item["class"] == "COLUMN_REF" and item["column_names"][-1].lower() == alias
        if alias and not itself:
            aliases[alias] = item
    for reader in readers:
        for reference in _references(reader):
            name = reference["column_names"][-1].lower()
            if name in aliases and len(reference["column_names"]) == 1:
                raise LookupError


def _source(node: Mapping[str, Any], known: Mapping[str, _Rows]) -> _Rows:
    match node["type"]:
        case "BASE_TABLE":
            expect(node, TABLE)
            name = node["table_name"].lower()
            return known[name].called(node.get("alias", name).lower())
        case "SUBQUERY":
            expect(node, SUBQUERY)
            return _query(node["subquery"]["node"], known).called(node.get("alias", "").lower())
        case "JOIN":
            expect(node, JOIN)
            if node["join_type"] in ("SEMI", "ANTI") and node["ref_type"] == "REGULAR":
                left, right = _source(node["left"], known), _source(node["right"], known)
                return _matched(left, right, node["condition"])
    raise LookupError


def _matched(left: _Rows, right: _Rows, condition: Mapping[str, Any]) -> _Rows:
    """Return the rows of a table for which there are some, or none, of another one."""
    if left.used & right.used:  # a table that is matched with itself decides by others' rows
        raise LookupError
    both = [*left.columns, *right.columns]
    pairs, filtered, functions = set(), set[Cell](), set[str]()
    for part in _parts(condition):
        sides = [part.get("left"), part.get("right")] if part["type"] == "COMPARE_EQUAL" else []
        found = [_reference(side, both).cell for side in sides if side and _is_reference(side)]
        if len(found) == 2 and found[0] and found[1] and found[0][0] != found[1][0]:
            pairs.add((found[0], found[1]))
        else:
            cells, names = _uses(part, both)
            filtered |= cells
            functions |= names
    return _Rows(
        left.table,
        left.columns,
        left.filtered | right.filtered | filtered,
        left.matched | right.matched | pairs,
        left.functions | right.functions | functions,
        left.used | right.used,
    )


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
        return [found._replace(name=item.get("alias", found.name).lower())]
    cells, functions = _uses(item, source)
    return [_Column("", item.get("alias", "").lower(), None, cells, functions)]


def _is_reference(item: Mapping[str, Any]) -> bool:
    return bool(item["class"] == "COLUMN_REF")


def _reference(item: Mapping[str, Any], source: Sequence[_Column]) -> _Column:
    expect(item, REFERENCE)
    *table, name = (part.lower() for part in item["column_names"])
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
            name = node["function_name"].lower()
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
