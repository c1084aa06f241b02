"""Python operators of multi-party values, run on the device of the operands."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mplang_core.edsl.context import MPObject
from mplang_core.edsl.peval import invoke
from mplang_core.errors import TraceError
from mplang_core.feop import flatten, unflatten
from mplang_core.ir.source_line import at, trace_errors
from mplang_core.types import TensorType

BINARY = "add sub mul truediv floordiv mod divmod pow matmul and_ or_ xor lshift rshift"
COMPARISONS = "lt le gt ge eq ne"
UNARY = "neg pos abs invert"


def define_operators() -> None:
    """Define the operators, indexing and iteration of :class:`MPObject`."""
    for name in BINARY.split():
        fn = divmod if name == "divmod" else getattr(operator, name)
        _define(name.rstrip("_"), _binary(fn))
        _define(f"r{name.rstrip('_')}", _reflected(fn))
    for name in COMPARISONS.split():
        _define(name, _binary(getattr(operator, name)))
    for name in UNARY.split():
        _define(name, _unary(getattr(operator, name)))
    _define("getitem", _getitem)
    _define("iter", _iterate)


def _define(name: str, method: Callable[..., Any]) -> None:
    setattr(MPObject, f"__{name}__", method)


def _binary(fn: Callable[[Any, Any], Any]) -> Callable[[MPObject, Any], Any]:
    return lambda self, other: _combine(self, fn, self, other)


def _reflected(fn: Callable[[Any, Any], Any]) -> Callable[[MPObject, Any], Any]:
    return lambda self, other: _combine(self, fn, other, self)


def _unary(fn: Callable[[Any], Any]) -> Callable[[MPObject], Any]:
    return lambda self: invoke(fn, self)


def _combine(value: MPObject, fn: Callable[..., Any], *args: Any) -> Any:
    for arg in args:
        if "Tracer" in type(arg).__name__:
            raise TraceError(
                f"{at()}{value!s} is used inside of a function that runs on plain values; "
                "pass it to that function as an argument",
                code="T004",
            )
    return invoke(fn, *args)


def _iterate(value: MPObject) -> Iterator[Any]:
    return (_getitem(value, i) for i in range(len(value)))


def _getitem(value: MPObject, index: Any) -> Any:
    leaves, spec = flatten(index, lambda part: isinstance(part, list))
    leaves = [np.asarray(leaf) if isinstance(leaf, list) else leaf for leaf in leaves]
    _check_index(value, leaves, unflatten(spec, leaves))

    def getitem(x: Any, *values: Any) -> Any:
        given = iter(values)
        here = [next(given) if isinstance(leaf, MPObject) else leaf for leaf in leaves]
        return x[unflatten(spec, here)]

    return invoke(getitem, value, *(x for x in leaves if isinstance(x, MPObject)))


def _check_index(value: MPObject, leaves: list[Any], index: Any) -> None:
    """Check an index by NumPy's rules: engines may clamp an index out of bounds."""
    for leaf in leaves:
        ends = (leaf.start, leaf.stop, leaf.step) if isinstance(leaf, slice) else ()
        if any(isinstance(end, MPObject) for end in ends):
            raise TraceError(
                f"{at()}a slice has ends that are known while tracing; inside of a function "
                "for a device, jax.lax.dynamic_slice takes others",
                code="T002",
            )
    if isinstance(value.base_type, TensorType) and not any(
        isinstance(leaf, MPObject) for leaf in leaves
    ):
        with trace_errors(f"an index of {value!s}"):
            np.broadcast_to(np.False_, value.shape)[index]
