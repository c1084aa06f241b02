"""Synthetic data sets: what a program reads, made of declared schemas and ranges alone."""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from mplang_analysis import UNKNOWN, Draw, Interval, constants, numbers_within, ops_among
from mplang_tables import check_values

from mplang_core import BaseType, Program, TableType, TensorType
from mplang_data.description import Bound, Description
from mplang_data.simulated import Described

ROWS, MAX_ROWS = 64, 20_000
DAY = datetime.date(2024, 1, 1)
TEXTS = ("a", "b", "c")

Columns: TypeAlias = dict[str, tuple[str, Interval]]
"""Type and range by the name of a column."""

Listed: TypeAlias = Mapping[str, Sequence[str | int]]
"""All values of a column by its name."""


def synthetic_data(
    program: Program,
    names: Sequence[str],
    known: Mapping[str, Mapping[str, Description]],
    seed: int = 0,
    draw: Draw = "mixed",
) -> dict[str, dict[str, Described]]:
    """Return what a program reads, by party and by name, for ``mp.Simulator(…, data=…)``.

    No row of an owner is used. Values are those that the owner publishes, or that the program lists
    for a column of that name. Other texts are those that the program itself compares with, and a
    few others; numbers without a declared range are small; keys are the same at all parties.

    Args:
        program: the program.
        names: the names of the parties, by rank.
        known: what the parties publish; of others the program alone tells types and ranges.
        seed: the same gives the same data.
        draw: how numbers are drawn.

    Example:
        >>> import mplang_core as mp
        >>> known = {"bank": {"people": {"columns": {"age": "int64"}, "ranges": {"age": [18, 90]}}}}
        >>> cluster = mp.ClusterSpec([{"name": "bank"}])
        >>> with mp.catalogue(known) as described:
        ...     program = mp.compile(lambda: mp.dataset("bank", "people"), cluster_spec=cluster)
        >>> made = synthetic_data(program.program, ["bank"], described)["bank"]["people"].value
        >>> made.num_rows, min(made["age"].to_pylist()), max(made["age"].to_pylist())
        (64, 18, 90)
    """
    texts = tuple(sorted(_texts(program))) + TEXTS
    count, listed = _rows(program), _listed(program)
    found: dict[str, dict[str, Described]] = {}
    for party, name, kind, ranges in _reads(program, names):
        random = np.random.default_rng([seed, len(found), len(found.get(party, ()))])
        description = known.get(party, {}).get(name)
        sets = found.setdefault(party, {})
        if isinstance(kind, TensorType):
            within = Interval(*ranges[0]) if ranges else UNKNOWN
            array = numbers_within(kind, within, random, draw)
            told = Description(array=str(kind), range=ranges[0] if ranges else None)
            sets[name] = Described(told, array)
        elif isinstance(kind, TableType):
            columns = _columns(kind, ranges)
            if name in sets:  # read before, with other columns perhaps
                columns = _columns_of(sets[name].description) | columns
            unit = None if description is None else description.unit
            rows = _rows_of(description, count)
            published = {} if description is None else description.values
            made = _table(columns, rows, unit, texts, random, draw, {**listed, **published})
            values = {each: published[each] for each in columns if each in published}
            sets[name] = made._replace(
                description=made.description.model_copy(update={"values": values})
            )
    return found


def synthetic_table(kind: TableType, random: np.random.Generator, draw: Draw = "mixed") -> Any:
    """Return a table of a type of whose columns nothing else is declared.

    Args:
        kind: its type.
        random: where numbers are drawn from.
        draw: how they are drawn.
    """
    return _table(_columns(kind, ()), ROWS, None, TEXTS, random, draw, {}).value


def _reads(
    program: Program, names: Sequence[str]
) -> Iterator[tuple[str, str, BaseType, Sequence[Any]]]:
    for op, parties in ops_among(program.graph, program.mask):
        if op.opcode == "data.read":
            for rank in parties:
                yield names[rank], op.attrs["name"], op.attrs["type"], op.attrs["ranges"]


def _columns(kind: TableType, ranges: Sequence[Any]) -> Columns:
    ends = ranges or [None] * len(kind.columns)
    return {
        name: (type, UNKNOWN if each is None else Interval(*each))
        for (name, type), each in zip(kind.columns, ends, strict=True)
    }


def _columns_of(description: Description) -> Columns:
    return {
        name: (type, Interval(*description.ranges[name]) if name in description.ranges else UNKNOWN)
        for name, type in description.columns.items()
    }


def _listed(program: Program) -> Listed:
    """Return the values that a program lists for columns which may have no others."""
    return {
        op.attrs["column"]: op.attrs["values"]
        for op, _ in ops_among(program.graph, program.mask)
        if op.opcode in ("table.encode", "table.one_hot") and op.attrs["others"] is False
    }


def _rows(program: Program) -> int | None:
    """Return how many rows the program says that there are, as where it makes a tensor."""
    ops = (op for op, _ in ops_among(program.graph, program.mask))
    told = [op.attrs["rows"] for op in ops if op.inputs and isinstance(op.attrs.get("rows"), int)]
    return max(told, default=None)  # of an aggregate there are fewer


def _rows_of(description: Description | None, told: int | None) -> int:
    """Return the published number of rows, or what the program says, or what is usual."""
    published = None if description is None else description.rows
    if isinstance(published, Bound):
        return min(published.at_most, told or ROWS)
    rows = published if published is not None else told
    return ROWS if rows is None else min(rows, MAX_ROWS)


def _texts(program: Program) -> set[str]:
    """Return the texts that a program compares with."""
    found: set[str] = set()
    for each in constants(program):
        for text in each.constant.first:
            try:
                value = json.loads(text)
            except ValueError:  # shortened, or a number of an array
                continue
            if isinstance(value, str):
                found.add(value)
    return found


def _table(
    columns: Columns, rows: int, unit: str | None, texts: Sequence[str],
    random: np.random.Generator, draw: Draw, listed: Listed,
) -> Described:  # fmt: skip
    import pyarrow as pa  # type: ignore[import-untyped]
    from mplang_tables import arrow

    types = {name: kind for name, (kind, _) in columns.items()}
    schema = arrow.schema(TableType(tuple(types.items())))
    arrays: list[Any] = []
    for name, (kind, within) in columns.items():
        numbered = name == unit or (not within.known and _is_key(name))
        among = _values(name, kind, listed)
        if among:
            values: Iterable[object] = [among[i] for i in random.integers(0, len(among), rows)]
        else:
            values = _cells(kind, within, rows, numbered, texts, random, draw)
        arrays.append(pa.array(values, schema.field(name).type))
    told = {n: (float(x.low), float(x.high)) for n, (_, x) in columns.items() if x.known}
    return Described(Description(columns=types, ranges=told), pa.table(arrays, schema))


def _values(name: str, kind: str, listed: Listed) -> Sequence[str | int]:
    """Return the values of a list that are of a column's type; nothing if they are of another."""
    values = listed.get(name, ())
    try:
        check_values(TableType(((name, kind),)), name, values)
    except TypeError:  # the program lists values of another column of that name
        return ()
    return values


def _is_key(name: str) -> bool:
    return name.lower().endswith(("id", "key", "number"))


def _cells(
    kind: str, within: Interval, rows: int, numbered: bool, texts: Sequence[str],
    random: np.random.Generator, draw: Draw,
) -> Iterable[Any]:  # fmt: skip
    """Return the values of a column; of one with keys, another one in each row."""
    places = range(rows) if numbered else random.integers(0, 8, rows).tolist()
    if kind.startswith(("string", "large_string")):
        return [f"id{i}" for i in places] if numbered else random.choice(texts, rows).tolist()
    if kind.startswith("binary"):
        return [f"id{i}".encode() for i in places]
    if kind.startswith("date"):
        return [DAY + datetime.timedelta(i) for i in places]
    if kind.startswith("timestamp"):
        start = datetime.datetime(DAY.year, DAY.month, DAY.day)
        return [start + datetime.timedelta(hours=i) for i in places]
    if kind.startswith("time"):
        return [datetime.time(i % 24) for i in places]
    if kind == "bool":
        return [i % 2 == 0 for i in places]
    if numbered:
        return list(places)
    if kind.startswith("decimal"):
        found = numbers_within(TensorType("i64", (rows,)), within, random, draw)
        return [decimal.Decimal(int(each)) for each in found]
    dtype = {"double": "f64", "float": "f32", "halffloat": "f16"}.get(kind, _integer(kind))
    return numbers_within(TensorType(dtype, (rows,)), within, random, draw)


def _integer(kind: str) -> str:
    return kind.replace("uint", "u").replace("int", "i")
