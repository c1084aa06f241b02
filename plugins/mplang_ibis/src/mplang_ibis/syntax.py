"""Nodes of DuckDB's syntax tree, as it serializes them: the fields that are understood."""

from __future__ import annotations

from collections.abc import Mapping, Set as AbstractSet
from typing import Any, TypeAlias

Node: TypeAlias = Mapping[str, Any]

SELECT = {
    "type", "modifiers", "select_list", "from_table", "where_clause", "group_expressions",
    "group_sets", "having", "qualify", "aggregate_handling", "cte_map",
}  # fmt: skip
UNION = {"type", "modifiers", "setop_type", "setop_all", "left", "right", "cte_map"}
TABLE = {"type", "alias", "query_location", "table_name"}
SUBQUERY = {"type", "alias", "query_location", "subquery"}
JOIN = {
    "type", "query_location", "left", "right", "condition", "join_type", "ref_type",
    "delim_flipped",
}  # fmt: skip
STAR = {"class", "type", "query_location", "columns"}
REFERENCE = {"class", "type", "query_location", "alias", "column_names"}
CAST = {"class", "type", "query_location", "alias", "child", "cast_type", "try_cast"}


_ASCII = str.maketrans({chr(ord("A") + i): chr(ord("a") + i) for i in range(26)})


def fold(name: str) -> str:
    """Return a name as DuckDB compares it, which ignores the case of ASCII letters only.

    Example:
        >>> fold("Größe"), fold("\N{KELVIN SIGN}")
        ('größe', '\u212a')
    """
    return name.translate(_ASCII)


def expect(node: Node, keys: AbstractSet[str]) -> None:
    """Refuse a node that has more than is understood.

    Raises:
        LookupError: it has.
    """
    if not node.keys() <= keys:
        raise LookupError
