"""Interface of real and bounded ciphertexts, over which functions are interpreted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from mplang_stablehlo.ext import ElementType

from mplang_he.spans import Array

Plain: TypeAlias = Any
"""A plain operand of a column: one number, or an array of one for each row; of bounds spans."""

C = TypeVar("C")
"""A column: numbers in slots, in one ciphertext or several."""


class Algebra(Protocol[C]):
    """Arithmetic of encrypted columns.

    A plain operand is one number, or one for each row; of bounds, spans of them. A product may be
    left unfinished, so that sums of products are finished once: :meth:`settle`.
    """

    bounded: bool = False
    """Whether columns are bounds, and plain numbers spans."""

    def plain(self, values: Array) -> Array:
        """Return literals of a function as plain operands."""

    def add(self, x: C, y: C) -> C:
        """Add two columns."""

    def sub(self, x: C, y: C) -> C:
        """Subtract two columns."""

    def negate(self, x: C) -> C:
        """Negate a column."""

    def multiply(self, x: C, y: C) -> C:
        """Multiply two columns, row by row."""

    def add_plain(self, x: C, y: Plain) -> C:
        """Add plain numbers."""

    def multiply_plain(self, x: C, y: Plain) -> C:
        """Multiply by plain numbers."""

    def total(self, terms: Iterable[C]) -> C:
        """Add columns, at least one."""

    def zero(self) -> C:
        """Return an encryption of zeros."""

    def settle(self, x: C) -> C:
        """Finish a product."""

    def masked(self, x: C) -> C:
        """Hide what is in slots without a row: who encrypted may have put more rows there."""

    def alike(self, columns: Sequence[C]) -> Sequence[C]:
        """Finish the columns of one tensor, and bring them to one level."""

    def result(self, x: C) -> C:
        """Finish a result, and randomize it anew."""

    def check(self, x: C | Plain, kind: ElementType) -> None:
        """Check that a column, or a plain number, is of an element type; bounds do."""
