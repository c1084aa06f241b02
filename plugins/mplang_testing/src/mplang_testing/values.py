"""Values of a type: equality bit by bit, other values, and those at which functions fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mplang_core import BaseType, DType, MPType, TableType, TensorType
from mplang_core.ext import Value
from mplang_testing.sample import codec_of


def base_of(value: Value) -> BaseType:
    """Return the type of a value of a program at one party."""
    return value.type.base if isinstance(value.type, MPType) else value.type


def same(kind: BaseType, a: Any, b: Any) -> bool:
    """Return whether two values of a type are the same, bit by bit where that can be told."""
    if a is None or b is None:
        return a is b
    if isinstance(kind, TensorType):
        a, b = np.asarray(a), np.asarray(b)
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    codec = codec_of(kind)
    if codec is not None:
        (head_a, data_a), (head_b, data_b) = codec.encode(a), codec.encode(b)
        return dict(head_a) == dict(head_b) and [*map(bytes, data_a)] == [*map(bytes, data_b)]
    return bool(a == b)


def another(kind: BaseType, value: Any, random: np.random.Generator) -> Any | None:
    """Return a random value of a type and the size of another one; ``None`` if none is known."""
    if isinstance(kind, TensorType):
        return random_tensor(np.asarray(value), random)
    if isinstance(kind, TableType):
        from mplang_testing.tables import random_table

        return random_table(kind, len(value), random)
    return None


def random_tensor(like: Any, random: np.random.Generator) -> Any:
    """Return an array of random bits: of floats any value, NaN and infinities among them."""
    if like.dtype.kind == "b":
        return random.integers(0, 2, like.shape).astype(bool)
    bits = np.frombuffer(random.bytes(like.nbytes), np.uint8)
    return bits.view(like.dtype).reshape(like.shape).copy()


def extremes(dtype: np.dtype[Any]) -> list[Any]:
    """Return values at which functions of numbers fail."""
    if dtype.kind == "b":
        return [False, True]
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return [limits.min, limits.max, 0]
    limit = DType.of(dtype).numpy.type
    return [*map(limit, (np.nan, np.inf, -np.inf, 0.0)), *_finite_extremes(dtype)]


def _finite_extremes(dtype: np.dtype[Any]) -> list[Any]:
    if dtype.kind not in "fc":  # bfloat16, of which NumPy knows no limits
        return []
    limits = np.finfo(dtype)
    return [limits.max, limits.min, limits.smallest_subnormal]


RANDOM_TURNS = 5


def hard_values(
    kind: BaseType, value: Any, random: np.random.Generator
) -> Iterator[tuple[str, Any]]:
    """Yield values of a type at which functions fail, each with what is special of it."""
    if isinstance(kind, TensorType):
        array = np.asarray(value)
        for extreme in extremes(array.dtype):
            yield str(extreme), np.full_like(array, extreme)
        for _ in range(RANDOM_TURNS):
            yield "random bits", random_tensor(array, random)
    elif isinstance(kind, TableType):
        from mplang_testing.tables import hard_tables

        yield from hard_tables(kind, len(value), random)


def close(one: Any, other: Any) -> bool:
    """Return whether results are the same, apart from how floats are rounded."""
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if hasattr(one, "to_pylist"):
        return close(one.to_pylist(), other.to_pylist())
    if isinstance(one, np.ndarray | np.generic | float):
        a, b = np.asarray(one), np.asarray(other)
        if a.dtype.kind not in "fc":
            return bool(np.array_equal(a, b))
        return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-9, equal_nan=True))
    return bool(one == other)
