"""Kernels of the dialect ``joins``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from mplang_match import keys as match_keys
from mplang_match.ext import KeyKind
from mplang_tables import arrow
from mplang_tables.ext import loaded

from mplang_core import TableType, TensorType
from mplang_core.ext import KernelContext, KernelError
from mplang_joins.across.groups import JoinedGroups, ResultColumn, ResultOrder
from mplang_joins.ops import BITS, NUMBER, SALT, Kinds
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
            "mp.join how many there are at most, or in keys: or rows: of the data set",
            code="R009",
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


def reduced(
    ctx: KernelContext, salt: Array, x: Any, *, on: Sequence[str], kinds: Kinds,
    columns: Sequence[str], code: str, groups: int, limbs: Sequence[int], width: int,
    most: Sequence[int], side: int, sides: int, rows: int,
) -> tuple[Array, ...]:  # fmt: skip
    """Make tensors of a table with one row by key and group; see :func:`mplang_joins.ops.reduced`.

    Raises:
        KernelError: two rows have one key and group, the table has more keys, a group is none of
            those that there may be, a column has nulls, or a number more bits.
    """
    table = arrow.plain(loaded(x))
    keys = match_keys.keys_of(table, on, [KeyKind(*each) for each in kinds])
    different = pc.dictionary_encode(keys, null_encoding="encode")
    rank = different.indices.to_numpy(zero_copy_only=False)
    if len(different.dictionary) > rows:
        raise KernelError(
            f"joins.reduced: the table has more than the {rows} keys declared: say in keys: or "
            "rows: of the data set how many there are at most",
            code="R009",
        )
    tokens = tokens_of(different.dictionary, salt.tobytes(), rows=rows, side=side, sides=sides)
    shared = _by_group(ctx, table, rank, columns, code, groups, width, most)
    return (tokens, np.arange(rows) < len(different.dictionary), *shared)


def placed(
    ctx: KernelContext, x: Any, common: Any, *, on: Sequence[str], kinds: Kinds,
    columns: Sequence[str], code: str, groups: int, limbs: Sequence[int], width: int,
    most: Sequence[int], keeps: bool, rows: int,
) -> Array | tuple[Array, ...]:  # fmt: skip
    """Make tensors of a table in the order of a match; see :func:`mplang_joins.ops.placed`.

    Raises:
        KernelError: two rows have one key and group, there are more keys, a group is none of those
            that there may be, a column has nulls, or a number more bits.
    """
    table, matched = (arrow.plain(loaded(each)) for each in (x, common))
    keys, known = (
        match_keys.keys_of(each, on, [KeyKind(*kind) for kind in kinds])
        for each in (table, matched)
    )
    position = pc.fill_null(pc.index_in(keys, pc.drop_null(known)), -1).to_numpy()
    numbers = _numbers(matched.filter(known.is_valid()), NUMBER).astype(np.int64)
    rank = np.full(len(keys), -1, np.int64)
    rank[position >= 0] = numbers[position[position >= 0]]
    others = pc.dictionary_encode(keys.filter(pa.array(rank < 0)), null_encoding="encode").indices
    count = len(np.unique(numbers))
    if keeps:
        rank[rank < 0] = count + others.to_numpy(zero_copy_only=False)
    else:
        table, rank = table.filter(pa.array(rank >= 0)), rank[rank >= 0]
    if max(count, rank.max(initial=-1) + 1) > rows:
        raise KernelError(
            f"joins.placed: the table has more than the {rows} keys declared: say in keys: or "
            "rows: of the data set how many there are at most",
            code="R009",
        )
    there = np.zeros(rows, np.bool_)
    there[rank] = True
    shared = _by_group(ctx, table, rank, columns, code, groups, width, most)
    return (there, *shared) if shared else there


def grouped(
    ctx: KernelContext, x: Any, *, columns: Sequence[str], code: str, groups: int,
    limbs: Sequence[int], width: int, most: Sequence[int],
) -> Array | tuple[Array, ...]:  # fmt: skip
    """Make tensors of a table with one row by group; see :func:`mplang_joins.ops.grouped`.

    Raises:
        KernelError: two rows have one group, a group is none of those that there may be, a column
            has nulls, or a number more bits.
    """
    table = arrow.plain(loaded(x))
    rank = np.zeros(table.num_rows, np.int64)
    shared = _by_group(ctx, table, rank, columns, code, groups, width, most)
    return shared[0] if len(shared) == 1 else tuple(shared)


def _by_group(
    ctx: KernelContext, table: Any, rank: Array, columns: Sequence[str], code: str, groups: int,
    width: int, most: Sequence[int],
) -> list[Array]:  # fmt: skip
    """Return the numbers of columns with their limbs by group, at the ranks of the keys."""
    group = _codes(table, code, groups)
    if len(np.unique(rank * np.int64(groups) + group)) < table.num_rows:
        raise KernelError(f"{ctx.op.opcode}: two rows have one key and group", code="R009")
    shared = []
    kinds = [value.type for value in ctx.op.outputs][-len(columns) :] if columns else []
    for name, bits, kind in zip(columns, most, kinds, strict=True):
        assert isinstance(kind, TensorType)
        values = np.zeros(kind.shape, kind.dtype.numpy)
        for plane, part in enumerate(_with_limbs(_numbers(table, name), len(values), width, bits)):
            values[plane, group, rank] = part
        shared.append(values)
    return shared


def group_table(
    ctx: KernelContext, *tensors: Array, grouped: bool, present: Sequence[bool], checked: bool,
    labels: Sequence[Sequence[Any]], aggregates: Sequence[int], scales: Sequence[int],
    roots: Sequence[bool], order: Sequence[Sequence[int]], gives: TableType,
) -> Any:  # fmt: skip
    """Make an Arrow table of the groups of a query; see :func:`mplang_joins.group_table`."""
    left = iter(tensors)
    valid = next(left) if grouped else None
    values = tuple(next(left) for _ in present)
    there = tuple(next(left) if each else None for each in present)
    fits = next(left) if checked else None
    columns = tuple(
        ResultColumn(tuple(names) or None, aggregate, None if scale < 0 else scale, root)
        for names, aggregate, scale, root in zip(labels, aggregates, scales, roots, strict=True)
    )
    keys = tuple(ResultOrder(column, bool(down), bool(nulls)) for column, down, nulls in order)
    try:
        return JoinedGroups(valid, values, there, fits, columns, gives, keys).to_arrow()
    except OverflowError as error:
        raise KernelError(f"joins.table: {error}", code="R007") from None


def _codes(table: Any, code: str, groups: int) -> Array:
    """Return the number of each row's group."""
    if not code:
        return np.zeros(table.num_rows, np.int64)
    column = table.column(code)
    if column.null_count:
        raise KernelError(
            "joins.reduced: a row is in a group that is not published; list all groups in values: "
            "or ranges: of the data set, or leave out rows without one",
            code="R009",
        )
    codes: Array = column.to_numpy().astype(np.int64)
    if table.num_rows and not 0 <= codes.min() <= codes.max() < groups:
        raise KernelError(
            f"joins.reduced: the column {code!r} has other numbers of groups", code="R009"
        )
    return codes


def _column(table: Any, name: str, rows: int, dtype: Any) -> Array:
    """Return the numbers of a column, with zeros behind them."""
    numbers = _numbers(table, name)
    values = np.zeros(rows, dtype)
    values[: len(numbers)] = numbers
    return values


def _with_limbs(numbers: Array, planes: int, width: int, bits: int) -> list[Array]:
    """Return numbers, and the limbs of their absolute values.

    Raises:
        KernelError: one has more bits.
    """
    bits = bits or (BITS if planes > 1 else 0)
    fits = not len(numbers) or -(2.0**bits) < numbers.min() <= numbers.max() < 2.0**bits
    if bits and not fits:
        reason = (
            f"has more than {bits} bits, and what is computed of it on shares may not fit; take a "
            "larger unit, or a larger field"
            if np.isfinite(numbers).all()
            else "is NaN or infinite, which shares have no place for; filter such rows, as by "
            "WHERE isfinite(x)"
        )
        raise KernelError(
            f"joins.reduced: a sum or a number of rows of one key {reason}", code="R007"
        )
    sizes = np.abs(numbers)
    mask = (1 << width) - 1
    return [numbers, *(sizes >> (width * i) & mask for i in range(planes - 1))]


def _numbers(table: Any, name: str) -> Array:
    """Return the numbers of a column, which has no nulls."""
    column = table.column(name)
    if column.null_count:
        raise KernelError(
            f"column {name!r} has nulls, which secret shares have no place for; fill or drop them "
            "first, at the party of the table",
            code="R008",
        )
    numbers: Array = column.to_numpy()
    return numbers
