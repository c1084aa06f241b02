"""Values of programs as files: Parquet, NPY, and for all else the codec of its type."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from mplang_core import BaseType, TableType, TensorType
from mplang_core.ext import Codec, WireError, codec, frozen
from mplang_data.stored.entry import StoreError

_PREFIX = struct.Struct("!Q")
MAX_HEAD = 1 << 20  # bytes


def write(kind: BaseType, value: Any) -> int:
    """Return the descriptor of a new memory file with a value; the caller closes it.

    Raises:
        WireError: the type has no codec, or the value is not of the type.
    """
    file = os.memfd_create("mplang", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with os.fdopen(os.dup(file), "wb") as out:
            _write(kind, value, out)
        return file
    except BaseException:
        os.close(file)
        raise


def _write(kind: BaseType, value: Any, out: BinaryIO) -> None:
    if isinstance(kind, TableType):
        import pyarrow.parquet as pq  # type: ignore[import-untyped]
        from mplang_tables.ext import loaded

        pq.write_table(loaded(value), out)
    elif isinstance(kind, TensorType):
        np.lib.format.write_array(out, np.asarray(value), allow_pickle=False)
    else:
        own = _storage_codec(kind)
        header, buffers = codec.encode(kind, value) if own is None else own.encode(value)
        sizes = [memoryview(each).nbytes for each in buffers]
        head = json.dumps({"header": header, "sizes": sizes}).encode()
        out.write(_PREFIX.pack(len(head)) + head)
        for each in buffers:
            out.write(each)


def read(kind: BaseType, file: int) -> Any:
    """Return the value in a file.

    Args:
        kind: its type.
        file: descriptor of the file; the caller closes it.

    Raises:
        StoreError: it does not hold a value of that type.
    """
    from mplang_data.description import SourceError
    from mplang_data.sources.npy_file import NpyFile

    try:
        if isinstance(kind, TableType):
            return _table(kind, file)
        if isinstance(kind, TensorType):
            return frozen(NpyFile().read([file], kind))
        return _decode(kind, file)
    except (SourceError, WireError) as error:
        raise StoreError(f"the stored value is damaged: {error}") from error


def _table(kind: TableType, file: int) -> Any:
    """Return a scan of a Parquet file, or its table where Parquet does not know a type of Arrow."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from mplang_tables import arrow

    from mplang_data.description import SourceError
    from mplang_data.sources.files import mapped
    from mplang_data.sources.parquet_file import ParquetFiles

    try:
        return ParquetFiles().read([file], kind)
    except SourceError:
        try:
            table = pq.read_table(pa.BufferReader(mapped(file)))
            return table.cast(arrow.schema(kind))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise SourceError("it is not a table of that type") from error


def _decode(kind: BaseType, file: int) -> Any:
    with os.fdopen(os.dup(file), "rb") as opened:  # which may be a pipe
        data = memoryview(opened.read())
    try:
        (length,) = _PREFIX.unpack(data[: _PREFIX.size])
        if length > min(MAX_HEAD, len(data)):
            raise ValueError("its head is too large")
        begin = _PREFIX.size + length
        head: Mapping[str, Any] = json.loads(bytes(data[_PREFIX.size : begin]))
        buffers, own = _split(data[begin:], head["sizes"]), _storage_codec(kind)
        decode = codec.decode if own is None else own.decode
        return decode(kind, head["header"], buffers)
    except (struct.error, LookupError, TypeError, ValueError, RecursionError) as error:
        raise StoreError("the stored value is damaged") from error


def _storage_codec(kind: BaseType) -> Codec | None:
    """Return the codec of a type whose values are stored, but do not leave their party: keys."""
    found: Codec | None = getattr(kind, "storage_codec", None)
    return found


def _split(data: memoryview, sizes: Sequence[int]) -> list[memoryview]:
    if not all(type(size) is int and size >= 0 for size in sizes) or sum(sizes) != len(data):
        raise ValueError("its sizes are not those of its data")
    found, begin = [], 0
    for size in sizes:
        found.append(data[begin : begin + size])
        begin += size
    return found
