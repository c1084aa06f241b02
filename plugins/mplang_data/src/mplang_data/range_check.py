"""Published ranges of numbers and lists of values, which are checked where the data is read."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from mplang_tables.ext import Scan

from mplang_core import BaseType, TableType
from mplang_core.ext import KernelError
from mplang_data.description import Ranges, SourceError, Values

log = logging.getLogger("mplang.data")


def check_published(
    found: Any, kind: BaseType, ranges: Ranges, values: Mapping[str, Values]
) -> None:
    """Check what was read of a data set; a scan is checked when it is used.

    Args:
        found: a ``pyarrow.Table``, a scan or an array.
        kind: its type.
        ranges: the published ranges; see :meth:`mplang_data.Description.ranges_of`.
        values: the published values, by column.

    Raises:
        SourceError: a number is outside of its range, or NaN, or a value is not in its list; names
            the column.
    """
    if not isinstance(kind, TableType):
        _check_array(found, *ranges)
        return
    columns = {
        name: (ends[0], ends[1])
        for (name, _), ends in zip(kind.columns, ranges, strict=bool(ranges))
        if ends is not None
    }
    if isinstance(found, Scan):
        both = dict.fromkeys([*columns, *values])
        found.check_by(list(both), partial(_check_part, columns, values, found))
    else:
        _check_table(columns, values, found)


def _check_array(found: np.ndarray[Any, Any], ends: Any) -> None:
    if not found.size:
        return
    # Python compares exactly: NumPy would round an end to the array's type. NaN is within nothing
    smallest, largest = (np.asarray(each).item() for each in (found.min(), found.max()))
    if not (ends[0] <= smallest and largest <= ends[1]):
        raise SourceError("it has numbers outside of the range that is published")


def _check_part(
    columns: Mapping[str, tuple[float, float]], values: Mapping[str, Values], scan: Scan, part: Any
) -> None:
    try:
        _check_table(columns, values, part)
    except SourceError as error:  # its owner is told, whatever a coordinator is
        log.error("%s does not match what is published: %s", scan.name, error)
        raise KernelError(
            f"{scan.name} is not what its owner published: {error}", code="R011"
        ) from error


def _check_table(
    columns: Mapping[str, tuple[float, float]], values: Mapping[str, Values], table: Any
) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    for name, (low, high) in columns.items():
        cells = table.column(name)
        is_float = str(cells.type) in ("float", "double")
        there = pc.min_max(cells).as_py()
        if there["min"] is None:  # all of them are null
            continue
        nan = is_float and pc.any(pc.is_nan(cells)).as_py()
        if nan or not (low <= there["min"] and there["max"] <= high):
            raise SourceError(f"column {name!r} has numbers outside of the range that is published")
    for name, listed in values.items():
        cells = table.column(name)
        there = pc.is_in(cells, pa.array(listed, cells.type))
        if not pc.all(pc.or_(there, pc.is_null(cells)), min_count=0).as_py():
            raise SourceError(f"column {name!r} has values that are not in the list published")
