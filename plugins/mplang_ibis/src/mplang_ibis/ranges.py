"""Range analysis of SQL: which numbers of its result are some of its operands. Imports DuckDB.

DuckDB's syntax tree is followed where it is known, field by field: whatever else there is in it
makes the numbers of the result unknown.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from mplang_analysis import UNKNOWN, Interval, OpRanges
from mplang_tables import number_columns

from mplang_core import MPLangError, TableType
from mplang_core.ext import Operation
from mplang_ibis.query import parse
from mplang_ibis.sql import read_sql
from mplang_ibis.syntax import (
    CAST,
    JOIN,
    REFERENCE,
    SELECT,
    STAR,
    SUBQUERY,
    TABLE,
    UNION,
    expect,
    fold,
)


class Column(NamedTuple):
    """A column of an operand, wherever it stands now; names are in lower case, as SQL ignores case.

    Attributes:
        source: what its table is called there.
        name: what it is called there.
        type: its type.
        rounded: whether its numbers may have been rounded to float32 on their way.
    """

    source: str
    name: str
    type: str
    rounded: bool = False

    def cast(self, type: str) -> Column:
        """Return it as a column of another type."""
        rounds = type == "float" and self.type not in ("float", "bool")
        return self._replace(type=type, rounded=self.rounded or rounds)


_Known: TypeAlias = Mapping[str, Sequence[Column]]
_FLOATS = {"DOUBLE": "double", "FLOAT": "float"}


def ranges_of(op: Operation, ins: Sequence[Interval]) -> OpRanges:
    """Return the hull of the operands, if all numbers of the result are some of theirs.

    Args:
        op: an ``ibis.run``.
        ins: for each operand an interval of its numbers.

    Returns:
        The interval of the numbers of the result.
    """
    kinds = [value.type for value in op.inputs if isinstance(value.type, TableType)]
    tables, gives = tuple(zip(op.attrs["names"], kinds, strict=True)), op.attrs["gives"]
    found = selected(read_sql(op.attrs["code"]), tables, gives)
    used = [each for each, kind in zip(ins, kinds, strict=True) if number_columns(kind)]
    if found is None or not used:
        return OpRanges([UNKNOWN])
    hull = functools.reduce(lambda a, b: a | b, used)
    rounded = any(each.rounded for each in found)
    return OpRanges([_rounded(hull, np.float32 if rounded else np.float64)])


def _rounded(interval: Interval, kind: Callable[[float], np.floating[Any]]) -> Interval:
    """Return an interval with what its numbers are as floats: these are rounded as its ends are."""
    with np.errstate(over="ignore"):
        low, high = float(kind(interval.low)), float(kind(interval.high))
    return Interval(min(interval.low, low), max(interval.high, high))


@functools.lru_cache(maxsize=32)  # loops repeat the same code
def selected(
    sql: str, tables: tuple[tuple[str, TableType], ...], gives: TableType
) -> tuple[Column, ...] | None:
    """Return the columns of a result, if all its numbers are numbers of the tables.

    Numbers may have been cast to floats.

    Args:
        sql: one SELECT.
        tables: names and types of the tables.
        gives: the type of the result, to which it is cast.

    Returns:
        Its columns; ``None`` if a number may be another one.

    Example:
        >>> people = TableType((("age", "int64"), ("pay", "double")))
        >>> selected('SELECT "age" FROM "t" WHERE "pay" > 3', (("t", people),),
        ...          TableType((("age", "float"),)))
        (Column(source='t', name='age', type='float', rounded=True),)
        >>> selected('SELECT "age" + 1 AS "age", "pay" FROM "t"', (("t", people),), people)
    """
    known = {
        fold(name): [Column("", fold(column), type) for column, type in kind.columns]
        for name, kind in tables
    }
    try:
        found = _query(parse(sql)["node"], known)
    except (MPLangError, LookupError, ValueError, RecursionError):
        return None  # DuckDB refuses it, or it is something else
    wanted = [type for _, type in gives.columns]
    if len(found) != len(wanted) or not all(map(_keeps, (each.type for each in found), wanted)):
        return None
    return tuple(each.cast(type) for each, type in zip(found, wanted, strict=True))


def _is_number(type: str) -> bool:
    return bool(number_columns(TableType((("a", type),))))


def _keeps(before: str, after: str) -> bool:
    """Return whether a cast makes no other number, but for the rounding to a float."""
    if before == after or not _is_number(after):
        return True
    # to bool numbers become 1, to decimals they are rounded
    return _is_number(before) and after != "bool" and not after.startswith("decimal")


def _query(node: Mapping[str, Any], known: _Known) -> list[Column]:
    """Return the columns of a query, if all of them are columns of operands.

    Raises:
        LookupError: they are not, or may not be.
    """
    known = dict(known)
    for entry in node.get("cte_map", {}).get("map", ()):
        expect(entry["value"], {"query", "materialized"})
        known[fold(entry["key"])] = _called(_query(entry["value"]["query"]["node"], known), "")
    if node["type"] == "SET_OPERATION_NODE":
        expect(node, UNION)
        if node["setop_type"] not in ("UNION", "EXCEPT", "INTERSECT"):  # others pair by names
            raise LookupError
        left, right = _query(node["left"], known), _query(node["right"], known)
        if [each.type for each in left] != [each.type for each in right]:  # one is cast
            raise LookupError
        both = zip(left, right, strict=True)
        return [a._replace(rounded=a.rounded or b.rounded) for a, b in both]
    if node["type"] != "SELECT_NODE":
        raise LookupError
    expect(node, SELECT)
    source = _source(node["from_table"], known)
    return [column for item in node["select_list"] for column in _item(item, source)]


def _called(columns: Sequence[Column], source: str) -> list[Column]:
    """Return the columns of a query as those of a table, whose names must differ."""
    if len({each.name for each in columns}) != len(columns):  # DuckDB gives them others
        raise LookupError
    return [each._replace(source=source) for each in columns]


def _source(node: Mapping[str, Any], known: _Known) -> list[Column]:
    match node["type"]:
        case "BASE_TABLE":
            expect(node, TABLE)
            name = fold(node["table_name"])
            return _called(known[name], fold(node.get("alias", name)))
        case "SUBQUERY":
            expect(node, SUBQUERY)
            return _called(_query(node["subquery"]["node"], known), fold(node.get("alias", "")))
        case "JOIN":
            expect(node, JOIN)
            left, right = _source(node["left"], known), _source(node["right"], known)
            if node["ref_type"] not in ("REGULAR", "CROSS"):
                raise LookupError
            if node["join_type"] in ("SEMI", "ANTI"):
                return left
            if node["join_type"] in ("INNER", "LEFT", "RIGHT", "OUTER"):
                return left + right
    raise LookupError


def _item(item: Mapping[str, Any], source: Sequence[Column]) -> list[Column]:
    match item["class"]:
        case "STAR":
            expect(item, STAR)
            if not item["columns"]:
                return list(source)
        case "COLUMN_REF":
            expect(item, REFERENCE)
            *table, name = (fold(part) for part in item["column_names"])
            found = [each for each in source if each.name == name and table in ([], [each.source])]
            if len(found) == 1:  # none of a query around it, and nothing such as rowid
                return [found[0]._replace(name=fold(item.get("alias", name)))]
        case "CAST":
            expect(item, CAST)
            (before,) = _item(item["child"], source)
            if _is_number(before.type):  # and no text
                after = before.cast(_FLOATS[item["cast_type"]["id"]])
                return [after._replace(name=fold(item.get("alias", before.name)))]
    raise LookupError
