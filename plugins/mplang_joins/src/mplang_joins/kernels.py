"""Kernels of the dialect ``joins``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from mplang_match import keys as match_keys
from mplang_match.ext import KeyKind
from mplang_tables import arrow
from mplang_tables.ext import loaded

from mplang_core.ext import KernelContext, KernelError
from mplang_joins.ops import SALT, Kinds
from mplang_joins.tokens import Array, tokens_of


def salt(ctx: KernelContext) -> Array:
    """Draw random bytes."""
    return np.frombuffer(os.urandom(SALT), np.uint8)


def enter(
    ctx: KernelContext, salt: Array, x: Any, *, on: Sequence[str], kinds: Kinds,
    columns: Sequence[str], side: int, sides: int, rows: int,
) -> tuple[Array, ...]:  # fmt: skip
    """Make tensors of a table.

    Args:
        ctx: of the op.
        salt: the bytes that all sides have.
        x: an Arrow table or a scan.
        on: the columns of its key.
        kinds: by which each of them is compared.
        columns: what is shared beside them.
        side: the number of this side, from 0.
        sides: how many there are.
        rows: how many rows it has at most.

    Returns:
        Arrays of shape ``[rows]``: tokens, whether a row is there, and the numbers of each column.

    Raises:
        KernelError: two rows have one key, the table has more rows, or a column has nulls.
    """
    table = arrow.plain(loaded(x))
    if table.num_rows > rows:
        raise KernelError(
            f"joins.enter: the table has more than the {rows} rows declared: say by rows= of "
            "mp.join how many there are at most, or in keys: or rows: of the data set"
        )
    keys = match_keys.keys_of(table, on, [KeyKind(*each) for each in kinds])
    tokens = tokens_of(keys, salt.tobytes(), rows=rows, side=side, sides=sides)
    there = np.arange(rows) < table.num_rows
    kinds_of = [value.type for value in ctx.op.outputs[2:]]
    shared = [
        _column(table, name, rows, kind.dtype.numpy)  # type: ignore[union-attr]
        for name, kind in zip(columns, kinds_of, strict=True)
    ]
    return (tokens, there, *shared)


def _column(table: Any, name: str, rows: int, dtype: Any) -> Array:
    """Return the numbers of a column, with zeros behind them."""
    column = table.column(name)
    if column.null_count:
        raise KernelError(
            f"joins.enter: column {name!r} has nulls, which secret shares have no place for; fill "
            "or drop them first, at the party of the table"
        )
    values = np.zeros(rows, dtype)
    values[: len(column)] = column.to_numpy()
    return values
