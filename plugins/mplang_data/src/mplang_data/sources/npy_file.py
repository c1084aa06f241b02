"""NPY files: one array, read whole."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from mplang_core import BaseType, DType, TensorType
from mplang_data.description import SourceError
from mplang_data.sources.files import Files

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
                shape, dtype = read_head(file)
                size = file.tell() + math.prod(shape) * dtype.itemsize
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
            file.seek(0)
            found = np.load(file, allow_pickle=False).view(dtype)
        made: np.ndarray[Any, Any] = np.asarray(found, dtype.newbyteorder("="), "C")
        return made


def read_head(file: BinaryIO) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and the dtype of an NPY file, and stop where its data begins."""
    version = np.lib.format.read_magic(file)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("objects")
    return shape, dtype
