"""Random tables of a type, and such at which functions of tables fail. Uses Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from mplang_core import TableType

NULLS = 0.2  # the share of cells that are null
DISTINCT = 6  # values that a column has; few, so that some are there several times

Cells = Callable[[np.random.Generator], Any]


def table_of(kind: TableType, cells: Mapping[str, Sequence[Any]]) -> Any:
    """Return an Arrow table of a type.

    Args:
        kind: the type.
        cells: per column its cells; ``None`` for null.
    """
    import pyarrow as pa  # type: ignore[import-untyped]
    from mplang_tables import arrow

    return pa.table({name: cells[name] for name, _ in kind.columns}, schema=arrow.schema(kind))


def random_table(kind: TableType, rows: int, random: np.random.Generator) -> Any:
    """Return a table of a type with random cells, nulls among them."""
    return table_of(kind, {name: random_cells(type, rows, random) for name, type in kind.columns})


def random_cells(type: str, rows: int, random: np.random.Generator) -> list[Any]:
    """Return random cells of a column, few of them distinct, and some null."""
    there = [value_of(type, int(i)) for i in random.integers(0, 100, DISTINCT)]
    return [
        None if random.random() < NULLS else there[random.integers(len(there))] for _ in range(rows)
    ]


def value_of(type: str, i: int) -> Any:
    """Return the value of a column that stands for a small number; another one for another.

    Example:
        >>> value_of("double", 3), value_of("string", 3), value_of("date32[day]", 3)
        (3.0, 'v3', datetime.date(1970, 1, 4))
    """
    base, _, rest = type.partition("[")
    if base.startswith("decimal128"):
        scale = int(type.rstrip(")").rpartition(",")[2])
        return Decimal(i % 10).scaleb(-scale)
    return _VALUES[base](i, rest) if base in _VALUES else i % (100 if "int8" in type else 10_000)


def _timestamp(i: int, rest: str) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC if "tz" in rest else None) + timedelta(seconds=i)


_VALUES: Mapping[str, Callable[[int, str], Any]] = {
    "bool": lambda i, _: bool(i % 2),
    "float": lambda i, _: float(i),
    "double": lambda i, _: float(i),
    "string": lambda i, _: f"v{i}",
    "binary": lambda i, _: f"v{i}".encode(),
    "date32": lambda i, _: date(1970, 1, 1) + timedelta(days=i),
    "time64": lambda i, _: time(i // 60 % 24, i % 60),
    "timestamp": _timestamp,
}


def hard_tables(
    kind: TableType, rows: int, random: np.random.Generator
) -> Iterator[tuple[str, Any]]:
    """Yield tables at which functions fail, each with what is special of it."""
    yield "no rows", random_table(kind, 0, random)
    yield "one row", random_table(kind, 1, random)
    yield "nulls alone", table_of(kind, {name: [None] * rows for name, _ in kind.columns})
    for turn in range(max(len(_extreme_cells(type)) for _, type in kind.columns)):
        cells = {}
        for name, type in kind.columns:
            found = _extreme_cells(type)
            cells[name] = [found[turn % len(found)]] * max(rows, 2)
        yield str([each[0] for each in cells.values()]), table_of(kind, cells)
    for _ in range(3):
        yield "random cells", random_table(kind, rows, random)


def _extreme_cells(type: str) -> list[Any]:
    if type in ("float", "double"):
        limits = np.finfo(np.float32 if type == "float" else np.float64)
        return [np.nan, np.inf, -np.inf, -0.0, float(limits.max), float(limits.min)]
    if "int" in type:
        ends = np.iinfo(type)
        return [int(ends.min), int(ends.max), 0]
    if type == "string":
        return ["", "\0", "é€😀", "'\"\\", "x" * 1000]
    return [None, value_of(type, 0)]


def mixed_table(kind: TableType, given: Any, rows: int, random: np.random.Generator) -> Any:
    """Return a table of a type whose cells are those of a given one, in other rows, and others."""
    cells = {}
    for name, type in kind.columns:
        there = [*given[name].to_pylist(), *random_cells(type, DISTINCT, random)]
        cells[name] = [there[random.integers(len(there))] for _ in range(rows)]
    return table_of(kind, cells)
