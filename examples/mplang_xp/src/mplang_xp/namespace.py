"""Arrays without data, and the namespace of functions on them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from mplang_xp.code import Ref, function, write
from mplang_xp.functions import CONSTANTS, DTYPES, FUNCTIONS, OPERATORS


class Recorder:
    """Record of the calls on arrays without data.

    The type of each result is found by calling NumPy on ones.

    Args:
        operands: the shape and dtype of each operand.

    Attributes:
        inputs: the operands.
        consts: the arrays that the function captured; operands after the inputs.
    """

    def __init__(self, operands: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]) -> None:
        self.inputs = [Array(np.ones(shape, dtype)) for shape, dtype in operands]
        self.consts: list[Array] = []
        self._calls: list[tuple[str, Any, Any]] = []
        self._results: list[Array] = []

    def call(self, name: str, args: Any, kwargs: Any) -> Array:
        """Record a call and return its result."""
        args, kwargs = self._lifted(list(args)), self._lifted(kwargs)
        result = Array(np.asarray(function(name)(*_samples(args), **_samples(kwargs))))
        self._calls.append((name, args, kwargs))
        self._results.append(result)
        return result

    def _lifted(self, part: Any) -> Any:
        if not isinstance(part, np.ndarray):
            return _mapped(self._lifted, part)
        self.consts.append(Array(part))
        return self.consts[-1]

    def code(self, outputs: Sequence[Any]) -> bytes:
        """Return the code of the calls.

        Raises:
            TypeError: an output is not an array of this record.
        """
        known = [*self.inputs, *self.consts, *self._results]
        numbers = {id(array): i for i, array in enumerate(known)}
        for array in outputs:
            if id(array) not in numbers:
                raise TypeError(f"it returns a {type(array).__name__}, expected arrays made here")

        def refer(part: Any) -> Any:
            return Ref(numbers[id(part)]) if isinstance(part, Array) else _mapped(refer, part)

        steps = [(name, refer(args), refer(kwargs)) for name, args, kwargs in self._calls]
        return write(steps, [numbers[id(array)] for array in outputs])


def _mapped(fn: Callable[[Any], Any], part: Any) -> Any:
    if type(part) in (tuple, list):
        return type(part)(map(fn, part))
    return {key: fn(item) for key, item in part.items()} if type(part) is dict else part


def _samples(part: Any) -> Any:
    return part.sample if isinstance(part, Array) else _mapped(_samples, part)


recorder: ContextVar[Recorder] = ContextVar("mplang_xp_recorder")
"""The record of the function that is compiled now."""


def _call(name: str, *args: Any, **kwargs: Any) -> Array:
    return recorder.get().call(name, args, kwargs)


class Array:
    """Array without data: what a function gets in place of its arguments.

    Attributes:
        sample: an array of its type.
    """

    __array_ufunc__ = None  # np.ndarray + Array is Array.__radd__

    def __init__(self, sample: np.ndarray[Any, Any]) -> None:
        self.sample = sample

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return tuple(self.sample.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        dtype: np.dtype[Any] = self.sample.dtype
        return dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.sample.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.sample.size

    @property
    def T(self) -> Array:  # noqa: N802 (the standard's name)
        """The transposed matrix."""
        return _call("matrix_transpose", self)

    def __array_namespace__(self, api_version: str | None = None) -> Namespace:
        return xp

    def __getitem__(self, index: Any) -> Array:
        return _call("getitem", self, index)

    def __neg__(self) -> Array:
        return _call("negative", self)

    def __abs__(self) -> Array:
        return _call("abs", self)

    def __invert__(self) -> Array:
        return _call("bitwise_invert", self)

    def __bool__(self) -> bool:
        raise TypeError("the truth of an array is not known yet; use xp.where")

    def __len__(self) -> int:
        return len(self.sample)

    __hash__ = object.__hash__


def _binary(name: str) -> Callable[[Array, Any], Array]:
    return lambda self, other: _call(name, self, other)


def _reflected(name: str) -> Callable[[Array, Any], Array]:
    return lambda self, other: _call(name, other, self)


for _operator, _name in OPERATORS.items():
    setattr(Array, f"__{_operator}__", _binary(_name))
    setattr(Array, f"__r{_operator}__", _reflected(_name))


class Namespace:
    """The functions, dtypes and constants of the standard, as attributes."""

    __array_api_version__ = "2024.12"

    def __getattr__(self, name: str) -> Any:
        if name in DTYPES:
            return np.dtype(name)
        if name in CONSTANTS:
            return getattr(np, name)
        if name not in FUNCTIONS:
            raise AttributeError(f"no function {name!r}, whose result has a shape that is known")
        return functools.partial(_call, name)


xp = Namespace()
"""The namespace; ``x.__array_namespace__()`` of an array is the same."""
