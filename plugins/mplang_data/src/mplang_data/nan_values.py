"""NaN in data sets, which its owner declares to be a missing value or an error."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, Literal

import numpy as np
from mplang_tables.ext import Scan

from mplang_core.ext import KernelError
from mplang_data.description import SourceError

log = logging.getLogger("mplang.data")


def without_nan(found: Any, nan: Literal["missing", "error"]) -> Any:
    """Return what was read of a data set without NaN; a scan is converted when it is used.

    Args:
        found: a ``pyarrow.Table``, a scan or an array.
        nan: what NaN is.

    Raises:
        SourceError: there is NaN, and it is an error; names the column.
    """
    if isinstance(found, Scan):
        found.convert_by(partial(_of_scan, found, nan))
        return found
    if isinstance(found, np.ndarray):
        if found.dtype.kind not in "iub" and np.isnan(found).any():
            raise SourceError("it has NaN, which is an error by its catalogue")
        return found
    return _of_table(found, nan)


def _of_scan(scan: Scan, nan: Literal["missing", "error"], part: Any) -> Any:
    try:
        return _of_table(part, nan)
    except SourceError as error:  # its owner is told, whatever a coordinator is
        log.error("%s does not match what is published: %s", scan.name, error)
        raise KernelError(
            f"{scan.name} is not what its owner published: {error}", code="R011"
        ) from error


def _of_table(table: Any, nan: Literal["missing", "error"]) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    for i, field in enumerate(table.schema):
        if str(field.type) not in ("float", "double"):
            continue
        column = table.column(i)
        is_nan = pc.is_nan(column)
        if not pc.any(is_nan).as_py():
            continue
        if nan == "error":
            raise SourceError(f"column {field.name!r} has NaN, which is an error by its catalogue")
        table = table.set_column(i, field, pc.if_else(is_nan, pa.scalar(None, field.type), column))
    return table
