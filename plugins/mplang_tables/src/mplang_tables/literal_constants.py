"""Constants of literal tables, as who approves a program is shown them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mplang_analysis import Constant

from mplang_core import TableType
from mplang_core.ext import Operation


def constants_of_literal(op: Operation) -> Sequence[Constant]:
    """Return the columns of a literal table.

    Args:
        op: a ``table.literal``.

    Raises:
        ValueError: its buffers are not those of such a table.
    """
    from mplang_tables import arrow

    kind = cast(TableType, op.attrs["type"])
    table = arrow.read(kind, op.attrs["rows"], op.attrs["data"])
    return [
        Constant.of_values(name, of, table.column(name).to_pylist()) for name, of in kind.columns
    ]
