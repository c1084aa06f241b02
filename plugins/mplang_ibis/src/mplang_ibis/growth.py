"""Growth bounds: the factor by which a query's texts and lists may exceed what it reads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mplang_ibis.query import nodes
from mplang_ibis.syntax import Node, fold

MAX_GROWTH = 1024  # times, in one query

_TOGETHER = {"concat", "||"}
_BETWEEN = {"array_to_string": 1, "string_agg": 1, "group_concat": 1, "listagg": 1}
"""Those that write a text between others, and which operand it is."""
_LISTS = {  # or bytes, of which a text is longer: DuckDB writes them with quotes and commas
    "array_agg", "encode", "from_base64", "list", "list_value", "regexp_split_to_array",
    "split", "str_split", "string_split", "unhex",
}  # fmt: skip
_FORMATTED = 16  # times, of a format such as %c, which is 24 characters
_AS_TEXT = 8  # times, at most
_SCALARS = {
    "BIGINT", "BOOLEAN", "DATE", "DECIMAL", "DOUBLE", "FLOAT", "HUGEINT", "INTEGER", "INTERVAL",
    "SMALLINT", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_MS", "TIMESTAMP_NS",
    "TIMESTAMP_S", "TINYINT", "UBIGINT", "UHUGEINT", "UINTEGER", "USMALLINT", "UTINYINT", "VARCHAR",
}  # fmt: skip
_TIMES = {"repeat": 1, "lpad": 1, "rpad": 1}  # and which operand says how often
_WITH = {"replace": 2, "regexp_replace": 2}  # and which operand stands for each match
_TWICE = {
    "base64", "hex", "ilike_escape", "like_escape", "not_ilike_escape", "not_like_escape",
    "regexp_escape", "to_base64",
}  # fmt: skip
_TEXT = 64  # characters of a constant that count as much as a column


def growth(query: Node) -> float:
    """Return how many times longer results of a query may be than what it reads; 1 if they are not.

    Queries within queries may each use what the inner one gives, so theirs multiply.

    Args:
        query: its syntax tree.
    """
    found = 1.0
    for node in nodes(query):
        if node.get("type") == "SELECT_NODE":
            parts = [
                node.get(name) for name in ("select_list", "where_clause", "having", "qualify")
            ]
            found *= _size([*parts, node.get("group_expressions"), node.get("modifiers")])
        elif node.get("type") == "JOIN":
            found *= _size(node.get("condition"))
    return found


def _size(tree: Any) -> float:
    """Return how many times longer the value of an expression may be than its longest column."""
    if isinstance(tree, list):
        return max(map(_size, tree), default=1.0)
    if not isinstance(tree, Mapping) or tree.get("type") == "SELECT_NODE":
        return 1.0
    given = tree.get("children", ())
    match tree.get("class"):
        case "CONSTANT":
            value = _constant(tree)
            return 1.0 + len(value) // _TEXT if isinstance(value, str) else 1.0
        case "CAST" if tree["cast_type"]["id"] not in _SCALARS:
            return _AS_TEXT * _size(tree["child"])
        case "FUNCTION":
            return _of_function(fold(tree["function_name"]), given)
    return _size(list(tree.values()))


def _of_function(name: str, given: list[Node]) -> float:
    sizes = [_size(each) for each in given]
    longest = max(sizes, default=1.0)
    if name in _TOGETHER:
        return sum(sizes)
    if name == "concat_ws":  # its first operand stands between all others
        return longest * 2 * len(sizes)
    if name in _BETWEEN:
        text = _constant(given[_BETWEEN[name]]) if len(given) > _BETWEEN[name] else ","
        return longest * (1 + len(text)) if isinstance(text, str) else math.inf
    if name in _LISTS:
        return _AS_TEXT * max(1.0, sum(sizes))
    if name == "strftime" and all(_constant(each) is None for each in given):
        return _FORMATTED * longest
    if name in _TWICE:
        return 2 * longest
    if name in _TIMES:
        times = _constant(given[_TIMES[name]]) if len(given) > _TIMES[name] else None
        return longest * max(1, times) if isinstance(times, int) else math.inf
    if name in _WITH:
        text = _constant(given[_WITH[name]]) if len(given) > _WITH[name] else None
        return longest * (1 + len(text)) if isinstance(text, str) else math.inf
    return longest


def _constant(node: Node) -> Any:
    value = node.get("value") if node.get("class") == "CONSTANT" else None
    if not isinstance(value, Mapping) or value.get("is_null"):
        return None
    return value.get("value", "")  # DuckDB leaves out what is empty
