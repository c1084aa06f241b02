"""Bounds of one query, on each engine. Imports no Arrow."""

from __future__ import annotations

from typing import NamedTuple

from mplang_core.ext import KernelError


class Bounds(NamedTuple):
    """Bounds of one query.

    Attributes:
        rows: how many its result may have.
        bytes: their size in Arrow's memory.
        seconds: time after which it is ended.
    """

    rows: int = 100_000_000
    bytes: int = 4_000_000_000
    seconds: float = 600.0

    def check(self, rows: int, size: int, op: str) -> None:
        """Check how much a query has given so far.

        Args:
            rows: how many rows.
            size: their bytes.
            op: the op that asks, for messages.

        Raises:
            KernelError: it is too much.
        """
        if rows > self.rows or size > self.bytes:
            raise KernelError(
                f"{op}: the query gives more than the {self.rows} rows, or {self.bytes} bytes, "
                "that the owner permits (result_rows and size, in the catalogue); aggregate it, "
                "or filter more",
                code="R010",
            )


BOUNDS = Bounds()
"""Those of a query whose owner names none."""
