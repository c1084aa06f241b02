"""INT96 times of Parquet files, as Impala and old Spark write them: a day and nanoseconds of it.

Arrow reads them as nanoseconds of 64 bits by default. These end in the year 2262, and what is later
becomes another time without an error. So they are read in the unit of the catalogue, once what it
cannot hold is known not to be there. Imports Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from mplang_core import TableType
from mplang_data.description import SourceError

FACTORS = {"ms": 1_000_000, "us": 1_000}  # nanoseconds
BATCH = 64 << 10  # rows
_LAST = (2**63 - 1) // FACTORS["us"]  # microseconds that are still nanoseconds of 64 bits


def unit_of_int96(buffers: Sequence[Any], kind: TableType) -> str:
    """Return the unit in which Arrow reads INT96 times of files, and check that it holds them.

    Args:
        buffers: the files.
        kind: the columns that are read.

    Raises:
        SourceError: the catalogue says several units of them, or a time does not fit in its unit.
    """
    times = {name: type for name, type in kind.columns if type.startswith("timestamp[")}
    found = [times.keys() & _int96_columns(buffer) for buffer in buffers if times]
    units = {times[name][len("timestamp[") :][:2] for names in found for name in names}
    units &= {"ns", *FACTORS}  # for another one Arrow's own schema is refused
    if len(units) > 1:
        raise SourceError(f"its INT96 times are of one unit in the catalogue, not {sorted(units)}")
    unit = next(iter(units), "ns")
    for buffer, names in zip(buffers, found, strict=bool(times)):
        for name in sorted(names):
            _check(buffer, name, unit)
    return unit


def _int96_columns(buffer: Any) -> set[str]:
    schema = pq.ParquetFile(pa.BufferReader(buffer)).schema
    columns = [schema.column(i) for i in range(len(schema))]
    return {column.path for column in columns if column.physical_type == "INT96"}


def _check(buffer: Any, name: str, unit: str) -> None:
    """Check that no time of a column is beyond a unit, or has more digits."""
    coarse = "us" if unit == "ns" else unit
    for fine, rough in zip(
        _batches(buffer, name, "ns"), _batches(buffer, name, coarse), strict=True
    ):
        if unit == "ns" and not -_LAST <= rough.min(initial=0) <= rough.max(initial=0) <= _LAST:
            raise SourceError(
                f"column {name!r} has times that nanoseconds of 64 bits do not reach (the years "
                "1677 to 2262); in the catalogue it is a timestamp[us]"
            )
        if unit != "ns" and not np.array_equal(fine, rough * FACTORS[unit]):  # both of them wrap
            raise SourceError(
                f"column {name!r} has times with more digits than a timestamp[{unit}]; in the "
                "catalogue it is a timestamp[ns]"
            )


def _batches(buffer: Any, name: str, unit: str) -> Any:
    """Yield the times of a column as integers; nulls are 0."""
    with pq.ParquetFile(
        pa.BufferReader(buffer), pre_buffer=False, coerce_int96_timestamp_unit=unit
    ) as file:
        for batch in file.iter_batches(BATCH, columns=[name]):
            yield batch.column(0).view(pa.int64()).fill_null(0).to_numpy()
