"""Limit of the rows of a join by equal columns, held against what DuckDB tells of its operators.

Keys that repeat in both tables multiply, as in a cross join, which has a row of its own in the
disclosure table. So joins that pass the limit fail, and those within it have no row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mplang_core.ext import KernelError
from mplang_ibis import settings

TOO_MANY = (
    "a join by equal columns gives over {limit} times the rows of the largest table that the query "
    "reads; aggregate one side to a row for each key, or have the owner set `join` in "
    "plugins.mplang-ibis.settings of the worker higher"
)
_AGAIN = ("CTE_SCAN", "DELIM_SCAN")  # a WITH that is kept, and rows of a query around


def check_joins(profile: Mapping[str, Any], op: str) -> None:
    """Refuse the result of a query one of whose joins gave too many rows.

    Args:
        profile: what DuckDB tells of the query, once it has run.
        op: the op that asks, for messages.

    Raises:
        KernelError: one did.
    """
    limit = settings.current.join
    largest = max((each["operator_cardinality"] for each in _scans(profile)), default=0)
    for node in _operators(profile):
        rows = node.get("operator_cardinality", 0)
        if node.get("operator_type") == "HASH_JOIN" and rows > limit * largest:
            raise KernelError(f"{op}: {TOO_MANY.format(limit=limit)}", code="R010")


def _operators(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        todo += node.get("children", ())


def _scans(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the operators that read tables, without those that read what others of them gave."""
    for each in _operators(node):
        again = str(each.get("operator_type", "")).endswith(_AGAIN)
        if not again and not each.get("children") and each is not node:
            yield each
