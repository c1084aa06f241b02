"""Limit of the rows of a join by equal columns on PostgreSQL, as :mod:`mplang_ibis.joins` holds it.

Where a key is unique, as an index or an aggregation says, a join gives no more rows than it takes,
and the planner knows that. Else PostgreSQL runs the statement a second time, in the same
transaction, and counts the rows of each join: what the programs of others see of a statement that
has run is its rows alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypedDict, cast

from mplang_core.ext import KernelError
from mplang_ibis import settings
from mplang_ibis.joins import TOO_MANY
from mplang_ibis.unbounded import work_of

_JOINS = ("Hash Join", "Merge Join", "Nested Loop")
_AT_MOST_ONE = ("Semi", "Anti", "Right Semi", "Right Anti")  # row for each of theirs
_AGAIN = ("CTE Scan", "WorkTable Scan")  # rows of a WITH, which others of its scans have read

PlanNode = TypedDict(
    "PlanNode",
    {
        "Node Type": str,
        "Join Type": str,
        "Inner Unique": bool,
        "Actual Rows": float,
        "Actual Loops": int,
        "Rows Removed by Filter": float,
        "Plans": "list[PlanNode]",
    },
    total=False,
)
"""Node of a plan, as PostgreSQL tells it."""

if TYPE_CHECKING:
    import psycopg

    Connection: TypeAlias = psycopg.Connection[tuple[object, ...]]


def check_joins(
    connection: Connection, statement: str, sql: str, tables: Sequence[str], op: str
) -> None:
    """Refuse a statement one of whose joins gives too many rows.

    Args:
        connection: in the transaction in which the statement runs.
        statement: in the dialect of PostgreSQL.
        sql: the SQL that it was made of.
        tables: its tables, as they are written in statements.
        op: the op that asks, for messages.

    Raises:
        KernelError: one does.
    """
    plan = _explain(connection, "VERBOSE", statement)
    if not any(_may_multiply(each) for each in _nodes(plan)):
        return
    # what multiplies rows in another way has a row in the disclosure table; it is a Nested Loop
    kinds = _JOINS[:2] if work_of(sql).is_unbounded else _JOINS
    plan = _explain(connection, "ANALYZE, TIMING OFF, SUMMARY OFF", statement)
    nodes = list(_nodes(plan))
    rows = max((_rows(each) for each in nodes if each["Node Type"] in kinds), default=0)
    limit = settings.current.join
    if rows > limit * max(map(_read, nodes), default=0) and rows > limit * max(
        _size(connection, table) for table in tables
    ):
        raise KernelError(f"{op}: {TOO_MANY.format(limit=limit)}", code="R010")


def _explain(connection: Connection, options: str, statement: str) -> PlanNode:
    explain = f"EXPLAIN ({options}, COSTS OFF, FORMAT JSON) {statement}"
    (root,) = _one(connection, explain)
    return cast("list[dict[str, PlanNode]]", root)[0]["Plan"]


def _size(connection: Connection, table: str) -> int:
    (size,) = _one(connection, f"SELECT pg_catalog.count(*) FROM {table}")
    return cast(int, size)


def _one(connection: Connection, statement: str) -> tuple[object, ...]:
    row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return row


def _nodes(plan: PlanNode) -> Iterator[PlanNode]:
    todo = [plan]
    while todo:
        node = todo.pop()
        yield node
        todo += node.get("Plans", ())


def _may_multiply(node: PlanNode) -> bool:
    """Return whether a join may give more rows than it takes, by what the planner knows."""
    if node["Node Type"] not in _JOINS or node.get("Join Type") in _AT_MOST_ONE:
        return False
    return not node.get("Inner Unique", False)


def _rows(node: PlanNode) -> int:
    """Return how many rows a node gave, of all its turns."""
    return math.ceil(node.get("Actual Rows", 0) * node.get("Actual Loops", 0))


def _read(node: PlanNode) -> int:
    """Return how many rows a node has read of a table, in one of its turns."""
    if node.get("Plans") or node["Node Type"] in _AGAIN:
        return 0
    return math.ceil(node.get("Actual Rows", 0) + node.get("Rows Removed by Filter", 0))
