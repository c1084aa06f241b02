"""NPY files: one array, read whole."""

from __future__ import annotations

import functools
import io
import math
import os
from collections.abc import Sequence
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from mplang_core import BaseType, DType, TensorType
from mplang_data.description import SourceError
from mplang_data.sources.files import Files

MAX_HEAD = 10_000  # bytes, as NumPy has it
Head: TypeAlias = tuple[tuple[int, ...], bool, np.dtype[Any]]
_BF16_AS_STORED = np.dtype("V2")  # NumPy itself has no name for it


class NpyFile(Files):
    """One file of NumPy with an array of numbers or bools."""

    def names(self, file: int) -> Sequence[str]:
        """Return none: an array has no columns."""
        return []

    def read(self, files: Sequence[int], kind: BaseType) -> Any:
        """Read the file; see :class:`mplang_data.Source`."""
        if len(files) != 1:
            raise SourceError("an array is one file")
        with os.fdopen(os.dup(files[0]), "rb") as file:
            file.seek(0)
            try:
                shape, by_columns, dtype = read_head(file)
                count = math.prod(shape)
                size = file.tell() + count * dtype.itemsize
            except Exception as error:  # NumPy parses Python's syntax
                raise SourceError("it is damaged, or no NPY file of numbers") from error
            if (
                dtype == _BF16_AS_STORED
                and isinstance(kind, TensorType)
                and kind.dtype is DType.BF16
            ):
                dtype = kind.dtype.numpy
            there = f"{dtype.name}{list(shape)}"
            if not isinstance(kind, TensorType) or (kind.dtype.numpy.name, kind.shape) != (
                dtype.name,
                shape,
            ):
                raise SourceError(f"it is {there} there, and {kind} in the catalogue")
            if os.fstat(file.fileno()).st_size != size:
                raise SourceError("it is damaged: its size is not that of its array")
            found = np.fromfile(file, dtype, count)
        array = found.reshape(shape, order="F" if by_columns else "C")
        made: np.ndarray[Any, Any] = np.asarray(array, dtype.newbyteorder("="), "C")
        return made


def read_head(file: BinaryIO) -> Head:
    """Return what the head of an NPY file says, and stop where its data begins.

    Returns:
        The shape, whether the array lies there column by column, and the dtype.
    """
    version = np.lib.format.read_magic(file)
    size = file.read(2 if version == (1, 0) else 4)
    length = int.from_bytes(size, "little")
    if length > MAX_HEAD:
        raise ValueError("too large a head")
    return _parsed(version, size + file.read(length))


@functools.lru_cache(maxsize=64)  # Python's parser of literals leaves cycles of objects each time
def _parsed(version: tuple[int, int], head: bytes) -> Head:
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, by_columns, dtype = read(io.BytesIO(head))
    if dtype.hasobject:
        raise ValueError("objects")
    return shape, by_columns, dtype
