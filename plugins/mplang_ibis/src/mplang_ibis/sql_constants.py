"""Constants in SQL, as who approves a program is shown them. Uses DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from mplang_analysis import Constant

from mplang_core.ext import unpack
from mplang_ibis.query import nodes, parse


def constants_of_sql(code: bytes) -> Sequence[Constant]:
    """Return the constants of a query by their types, each value once, as DuckDB reads it.

    Args:
        code: SQL, compressed.

    Raises:
        AdmissionError: it is not a query.
    """
    found: dict[str, dict[Any, None]] = {}
    there = [node for node in nodes(parse(unpack(code))) if node.get("class") == "CONSTANT"]
    for node in sorted(there, key=lambda node: int(node.get("query_location", 0))):
        kind = str(node["value"]["type"]["id"]).lower()
        found.setdefault(kind, {})[_value(node["value"])] = None
    return [Constant.of_values("", kind, list(values)) for kind, values in found.items()]


def _value(given: Mapping[str, Any]) -> Any:
    value = given.get("value")
    if given["type"]["id"] == "DECIMAL" and isinstance(value, int):
        return str(Decimal(value).scaleb(-int(given["type"]["type_info"]["scale"])))
    return value if isinstance(value, str | int | float | bool | None) else str(value)
