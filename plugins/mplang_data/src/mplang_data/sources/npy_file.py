"""NPY files: one array, read whole."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from mplang_core import BaseType
from mplang_data.description import SourceError
from mplang_data.sources.files import Files


class NpyFile(Files):
    """One file of NumPy with an array of numbers or bools."""

    def read(self, files: Sequence[int], kind: BaseType) -> Any:
        """Read the file; see :class:`mplang_data.Source`."""
        if len(files) != 1:
            raise SourceError("an array is one file")
        with os.fdopen(os.dup(files[0]), "rb") as file:
            file.seek(0)
            try:
                found = np.load(file, allow_pickle=False)
            except (ValueError, EOFError, OSError) as error:
                raise SourceError("it is damaged, or no NPY file of numbers") from error
        made = np.asarray(found, order="C")
        if not isinstance(found, np.ndarray) or kind.mismatch(made):
            there = f"{made.dtype}{list(made.shape)}"
            raise SourceError(f"it is {there} there, and {kind} in the catalogue")
        return made
