"""Range analysis of SQL: which numbers of its result are some of its operands. Imports DuckDB."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from mplang_analysis import UNKNOWN, Interval, OpRanges
from mplang_tables import numbers_of

from mplang_core import MPLangError, TableType
from mplang_core.ext import Operation
from mplang_ibis.query import parse
from mplang_ibis.sql import read_sql

Columns: TypeAlias = list[tuple[str, bool]]
"""Names of columns that are columns of operands, and whether each is of numbers."""

_STAR = {"class", "type", "query_location", "relation_name", "columns", "alias"}


def ranges_of(op: Operation, ins: Sequence[Interval]) -> OpRanges:
    """Return the hull of the operands, if all numbers of the result are some of theirs.

    Args:
        op: an ``ibis.run``.
        ins: for each operand an interval of its numbers.

    Returns:
        The interval of the numbers of the result.
    """
    kinds = [value.type for value in op.inputs if isinstance(value.type, TableType)]
    tables = tuple(zip(op.attrs["names"], kinds, strict=True))
    if not is_selection(read_sql(op.attrs["code"]), tables, op.attrs["gives"]):
        return OpRanges([UNKNOWN])
    used = [each for each, kind in zip(ins, kinds, strict=True) if numbers_of(kind)]
    found = functools.reduce(lambda a, b: a | b, used, used[0]) if used else UNKNOWN
    # numbers may have been cast to float32, which rounds
    return OpRanges([Interval(_low(found.low), _high(found.high)) if found.known else UNKNOWN])


def _low(end: float) -> float:
    return min(end, float(np.float32(end)))


def _high(end: float) -> float:
    return max(end, float(np.float32(end)))


@functools.lru_cache(maxsize=32)  # loops repeat the same code
def is_selection(sql: str, tables: tuple[tuple[str, TableType], ...], gives: TableType) -> bool:
    """Return whether all numbers of a result are some of the tables' numbers.

    Args:
        sql: one SELECT.
        tables: names and types of the tables.
        gives: the type of the result.

    Example:
        >>> people = TableType((("age", "int64"), ("pay", "double")))
        >>> is_selection('SELECT "age" FROM "t" WHERE "pay" > 3', (("t", people),), people)
        False
        >>> age = TableType((("age", "int64"),))
        >>> is_selection('SELECT "age" FROM "t" WHERE "pay" > 3', (("t", people),), age)
        True
    """
    known = {}
    for name, kind in tables:
        numbers = numbers_of(kind)
        known[name.lower()] = [(column.lower(), column in numbers) for column, _ in kind.columns]
    try:
        found = _query(parse(sql)["node"], known)
    except (MPLangError, LookupError, ValueError, RecursionError):
        return False  # DuckDB refuses it, or it is something else
    numbers = numbers_of(gives)
    return len(found) == len(gives.columns) and all(
        is_number or name not in numbers
        for (name, _), (_, is_number) in zip(gives.columns, found, strict=True)
    )


def _query(node: Mapping[str, Any], known: Mapping[str, Columns]) -> Columns:
    """Return the columns of a query, if all of them are columns of operands.

    Raises:
        LookupError: they are not.
    """
    known = dict(known)
    for entry in node.get("cte_map", {}).get("map", ()):
        known[entry["key"].lower()] = _query(entry["value"]["query"]["node"], known)
    if node["type"] == "SET_OPERATION_NODE":
        left, right = _query(node["left"], known), _query(node["right"], known)
        return [(a, is_a and is_b) for (a, is_a), (_, is_b) in zip(left, right, strict=True)]
    if node["type"] != "SELECT_NODE":
        raise LookupError
    source = _source(node["from_table"], known)
    return [column for item in node["select_list"] for column in _item(item, source)]


def _source(node: Mapping[str, Any], known: Mapping[str, Columns]) -> Columns:
    if "column_name_alias" in node:
        raise LookupError
    match node["type"]:
        case "BASE_TABLE":
            return known[node["table_name"].lower()]
        case "SUBQUERY":
            return _query(node["subquery"]["node"], known)
        case "JOIN":
            return _source(node["left"], known) + _source(node["right"], known)
    raise LookupError


def _item(item: Mapping[str, Any], source: Columns) -> Columns:
    match item["class"]:
        case "STAR" if item.keys() <= _STAR and not item["columns"]:
            return source
        case "COLUMN_REF":
            name = item["column_names"][-1].lower()
            alike = [is_number for each, is_number in source if each == name]
            if not alike:  # such as rowid
                raise LookupError
            return [(item.get("alias", name).lower(), all(alike))]
        case "CAST" if item["cast_type"]["id"] in ("DOUBLE", "FLOAT"):
            ((name, is_number),) = _item(item["child"], source)
            if not is_number:  # a text
                raise LookupError
            return [(item.get("alias", name).lower(), True)]
    raise LookupError
