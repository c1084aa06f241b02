"""Keys as bytes: equal bytes for equal keys, whatever the types of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from mplang_core.ext import RunError
from mplang_match.kinds import DIGITS, KeyKind

_HEAD = 9  # bytes before a value: the number of its kind, and its length
_NUMBERS = {
    name: number
    for number, name in enumerate(
        (
            *("bool", "integer", "decimal", "string", "binary", "date"),
            *("time", "timestamp", "timestamp in UTC"),
        )
    )
}
_EXACT = pa.decimal128(38, 0)  # has room for all integers and times


def keys_of(table: pa.Table, columns: Sequence[str], kinds: Sequence[KeyKind]) -> pa.Array:
    """Return the key of each row as bytes.

    Each value has a tag of its kind and its length before it, so that no two keys have the same
    bytes: neither ``("a,b", "c")`` and ``("a", "b,c")``, nor ``"1"`` and ``1``. Text is normalized
    (Unicode's NFC).

    Args:
        table: the rows.
        columns: the columns of the key.
        kinds: by which each of them is compared.

    Returns:
        Bytes by row; null where a column is null, which equals nothing.

    Example:
        >>> table = pa.table({"id": pa.array([1, None], pa.uint8())})
        >>> keys_of(table, ["id"], [KeyKind("integer")]).null_count
        1
    """
    parts = []
    for column, kind in zip(columns, kinds, strict=True):
        value = _bytes_of(table.column(column), kind)
        parts += [_heads(value, kind), value]
    empty = pa.scalar(b"", pa.large_binary())
    joined = pc.binary_join_element_wise(*parts, empty)  # null if one of them is
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def check_spellings(table: pa.Table, columns: Sequence[str], kinds: Sequence[KeyKind]) -> None:
    """Check that no two texts of a column are one key.

    Whoever counts by such a column, as guards do, would count one person twice.

    Raises:
        RunError: two are.
    """
    for column, kind in zip(columns, kinds, strict=True):
        if kind.name != "string":
            continue
        texts = table.column(column)
        alike = pc.utf8_normalize(texts, form="NFC")
        if not alike.equals(texts) and _different(alike) < _different(texts):
            raise RunError(
                f"two texts of column {column!r} are one key by Unicode's NFC; leave it out of the "
                "result (keep=False), or bring its texts into one form first",
                code="R009",
            )


def _different(values: pa.ChunkedArray) -> int:
    count: int = pc.count_distinct(values).as_py()
    return count


def _bytes_of(column: pa.ChunkedArray, kind: KeyKind) -> pa.Array:
    """Return the values of a column as bytes that are equal for equal values."""
    values = column.combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else values.chunk(0)
    if kind.name == "string":
        return pc.utf8_normalize(values, form="NFC").cast(pa.binary()).cast(pa.large_binary())
    if kind.name == "binary":
        return values.cast(pa.large_binary())
    if kind.name == "decimal":
        return _fixed(values.cast(pa.decimal256(76, kind.scale)))
    if kind.name == "bool":
        return _fixed(values.cast(pa.int8()).cast(_EXACT))
    if kind.name == "integer":
        return _fixed(values.cast(_EXACT))
    return _fixed(_counted(values, kind))


def _counted(values: pa.Array, kind: KeyKind) -> pa.Array:
    """Return dates as numbers of days, and times as those of the smaller unit of both parties."""
    if kind.name == "date":
        return values.cast(pa.int32()).cast(_EXACT)
    times = 10 ** (kind.scale - DIGITS[values.type.unit])
    factor = pa.scalar(Decimal(times), pa.decimal128(10, 0))
    return pc.multiply(values.cast(pa.int64()).cast(pa.decimal128(19, 0)), factor)


def _fixed(values: pa.Array) -> pa.Array:
    """Return decimals as their bytes."""
    width = values.type.byte_width
    fixed = pa.Array.from_buffers(
        pa.binary(width), len(values), values.buffers(), offset=values.offset
    )
    return fixed.cast(pa.binary()).cast(pa.large_binary())


def _heads(values: pa.Array, kind: KeyKind) -> pa.Array:
    """Return what stands before each value: the number of its kind, and its length."""
    heads = np.empty((len(values), _HEAD), np.uint8)
    heads[:, 0] = _NUMBERS[kind.name]
    lengths = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False)
    heads[:, 1:] = lengths.astype("<u8").view(np.uint8).reshape(-1, 8)
    fixed = pa.Array.from_buffers(pa.binary(_HEAD), len(values), [None, pa.py_buffer(heads)])
    return fixed.cast(pa.binary()).cast(pa.large_binary())
