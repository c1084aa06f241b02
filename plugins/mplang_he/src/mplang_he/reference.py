"""Check of numbers on a simulator: what is decrypted beside the same function in float64.

Only a simulator has both the data and the results. It keeps what was encrypted, by its ciphertext,
runs functions on it in plain, and compares where a result is decrypted.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from mplang_core.ext import Diagnostic, KernelContext
from mplang_he.algebra import Algebra, Plain
from mplang_he.columns import Columns
from mplang_he.spans import Array
from mplang_he.types import EncryptedColumns

MAX_VALUES = 64
"""Values that are kept, the last ones."""

_values: OrderedDict[bytes, Array] = OrderedDict()
_lock = threading.Lock()


class PlainColumns(Algebra[Array]):
    """Arithmetic of columns in plain: numbers of 64 bits, one for each row.

    Args:
        rows: how many rows there are.
        dtype: of the numbers.
    """

    def __init__(self, rows: int, dtype: type[np.generic]) -> None:
        self._zeros = np.zeros(rows, dtype)

    def plain(self, values: Array) -> Array:
        """Return literals as they are."""
        return values

    def add(self, x: Array, y: Array) -> Array:
        """Add two columns."""
        return np.asarray(x + y)

    def sub(self, x: Array, y: Array) -> Array:
        """Subtract two columns."""
        return np.asarray(x - y)

    def negate(self, x: Array) -> Array:
        """Negate a column."""
        return np.asarray(-x)

    def multiply(self, x: Array, y: Array) -> Array:
        """Multiply two columns."""
        return np.asarray(x * y)

    def add_plain(self, x: Array, y: Plain) -> Array:
        """Add plain numbers."""
        return np.asarray(x + y)

    def multiply_plain(self, x: Array, y: Plain) -> Array:
        """Multiply by plain numbers."""
        return np.asarray(x * y)

    def total(self, terms: Iterable[Array]) -> Array:
        """Add columns."""
        return reduce(self.add, terms)

    def zero(self) -> Array:
        """Return zeros."""
        return self._zeros

    def settle(self, x: Array) -> Array:
        """Return a product, which is finished."""
        return x

    def alike(self, columns: Sequence[Array]) -> Sequence[Array]:
        """Return the columns, which are finished."""
        return columns

    def masked(self, x: Array) -> Array:
        """Return a column, which has its rows alone."""
        return x

    def result(self, x: Array) -> Array:
        """Return a result, which is finished."""
        return x

    def check(self, x: Any, kind: Any) -> None:
        """Check nothing: bounds did."""


def keep(ctx: KernelContext, value: EncryptedColumns, x: Array) -> None:
    """Keep what a value is an encryption of, if this is a simulator that checks numbers."""
    if ctx.interpreter.checks is None:
        return
    with _lock:
        _values[_name(value)] = np.asarray(x, _dtype(value))
        while len(_values) > MAX_VALUES:
            _values.popitem(last=False)


def keep_results(
    ctx: KernelContext, code: bytes, operands: Sequence[Any], results: Sequence[EncryptedColumns]
) -> None:
    """Run a function in plain, and keep what its results are encryptions of.

    Args:
        ctx: of the op.
        code: of the function.
        operands: ciphertexts, and arrays.
        results: what it gave.
    """
    if ctx.interpreter.checks is None:
        return
    from mplang_he.circuit import module_of
    from mplang_he.interpreter import ColumnInterpreter

    values: list[Columns | Array] = []
    for each in operands:
        if not isinstance(each, EncryptedColumns):
            values.append(np.asarray(each, np.float64 if each.dtype.kind == "f" else np.int64))
            continue
        x = _values.get(_name(each))
        if x is None:
            return
        axis, rows = each.type.axis, each.type.rows
        columns = np.moveaxis(x, axis, 0).reshape(rows, -1).T
        cells = np.empty(len(columns), object)
        cells[:] = list(columns)
        values.append(Columns(cells.reshape(each.type.shape), axis, rows))
    algebra = PlainColumns(results[0].type.rows, _dtype(results[0]))
    made = ColumnInterpreter(algebra).run(module_of(code), values)
    for value, each in zip(results, made, strict=True):
        assert isinstance(each, Columns)
        columns = np.stack(each.cells.ravel().tolist(), axis=-1)
        plain = columns.reshape(each.rows, *each.cells.shape)
        keep(ctx, value, np.moveaxis(plain, 0, each.axis))


def follow(
    ctx: KernelContext, x: EncryptedColumns, value: EncryptedColumns,
    function: Callable[[Array], Array],
) -> None:  # fmt: skip
    """Keep what a value is an encryption of, which is a function of what another one is of."""
    plain = _values.get(_name(x)) if ctx.interpreter.checks is not None else None
    if plain is not None:
        keep(ctx, value, function(plain))


def compare(ctx: KernelContext, value: EncryptedColumns, x: Array) -> None:
    """Compare decrypted numbers with what they are to be, and tell what is beyond its bound."""
    right = _values.get(_name(value)) if ctx.interpreter.checks is not None else None
    if right is None or not right.size:
        return
    kind = value.type
    error = float(np.abs(x.astype(right.dtype) - right).max())
    slack = 0.0 if kind.parameters.scheme == "bfv" else 2.0**-22 * float(np.abs(right).max())
    if error <= kind.error + slack:  # a result of 32 bits is rounded to them
        return
    text = (
        f"{ctx.op.opcode}: a number is off by {error:.3g}, and the bound of its type is "
        f"{kind.error:.3g}. That is a fault of mplang-he: please report the program; "
        "check_numbers=False skips this check"
    )
    ctx.interpreter.checks.tell(Diagnostic(text, ctx.op.location, "ciphertexts"))


def _name(value: EncryptedColumns) -> bytes:
    """Return the name of a value: no two ciphertexts are the same."""
    return hashlib.sha256(value.parts[0]).digest()


def _dtype(value: EncryptedColumns) -> type[np.generic]:
    return np.int64 if value.type.parameters.scheme == "bfv" else np.float64
