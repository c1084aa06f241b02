"""Ops of the dialect ``data``. Imports no Arrow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mplang_analysis import (
    DATA_SET,
    UNKNOWN,
    DataQuestion,
    Interval,
    Lineage,
    LineageRule,
    OpRanges,
    QuestionRule,
    RangeRule,
    TableRead,
)
from mplang_tables import check_table, number_columns

from mplang_core import BaseType, TableType, TensorType, simple_op
from mplang_core.ext import Effects, Operation
from mplang_data.description import check_name, columns_read


def label(op: Operation) -> tuple[str, ...]:
    """Return what the values of an op are known by: the name of the data set, and its columns."""
    found = columns_read(str(op.attrs.get("name")), op.attrs.get("type"))
    return tuple(f"{DATA_SET}{each}" for each in found)


def _intervals(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    """Return the hull of the published ranges, if all numbers have one."""
    kind, ranges = op.attrs["type"], op.attrs["ranges"]
    if isinstance(kind, TableType) and ranges:
        numbers = number_columns(kind)
        ranges = [
            (0, 1) if type == "bool" else ends
            for (name, type), ends in zip(kind.columns, ranges, strict=True)
            if name in numbers
        ]
    if not ranges or None in ranges:
        return OpRanges([UNKNOWN])
    lows, highs = zip(*ranges, strict=True)
    return OpRanges([Interval(min(lows), max(highs))], declared=True)


def _lineage(op: Operation, rank: int, operands: Sequence[Lineage | None]) -> Lineage | None:
    kind = op.attrs["type"]
    if not isinstance(kind, TableType):
        return None
    return Lineage.of(rank, zip((name for name, _ in kind.columns), label(op), strict=True))


def _question(op: Operation, operands: Sequence[DataQuestion]) -> DataQuestion:
    attrs = op.attrs
    return DataQuestion({"": TableRead(attrs["name"], str(attrs["type"]), attrs["ranges"])})


@simple_op(
    "data.read",
    effects=Effects.NONE,
    reads=label,
    inputs=(),
    outputs=({"kind": "Any"},),
    interfaces=[RangeRule(_intervals), LineageRule(_lineage), QuestionRule(_question)],
)
def read(*, name: str, type: BaseType, ranges: tuple[Any, ...] = ()) -> BaseType:
    """Read a data set of the party that runs it; :func:`mplang_data.dataset` is its frontend.

    Args:
        name: its name in the party's catalogue.
        type: its type; of a table perhaps with some of its columns only.
        ranges: ranges that the program counts on, ``(low, high)`` or ``None`` for each column, or
            one for an array. The owner publishes them, or narrower ones.

    Returns:
        A value of that type. Cells of a table may be null.

    Raises:
        TraceError: the name is none, or the type is neither a table nor a tensor.
        AdmissionError: the party has no data set of that name that this coordinator may read, or it
            does not offer that, or publishes no such range.
        KernelError: its source does not hold what its owner says.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_data.ops import read
        >>> def program():
        ...     kind = mp.TableType((("age", "int64"),))
        ...     return mp.device("P0")(read)(name="people", type=kind)
        >>> people = {"age": [20, 40]}
        >>> with mp.Simulator(mp.ClusterSpec.simple(1), data={"node0": {"people": people}}) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).to_pydict()
        {'age': [20, 40]}
    """
    check_name(name)
    if isinstance(type, TableType):
        check_table(type)
    elif not isinstance(type, TensorType):
        raise TypeError(f"a data set is a table or a tensor, not {type}")
    count = len(type.columns) if isinstance(type, TableType) else 1
    if ranges and (len(ranges) != count or not all(map(_is_range, ranges))):
        raise TypeError(f"ranges are {count} of (low, high) or none, got {len(ranges)}")
    return type


def _is_range(found: Any) -> bool:
    if found is None:
        return True
    is_pair = isinstance(found, tuple) and len(found) == 2
    numbers = is_pair and all(type(end) in (int, float) and math.isfinite(end) for end in found)
    return bool(numbers and found[0] <= found[1])
