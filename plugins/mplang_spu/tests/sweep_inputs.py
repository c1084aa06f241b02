"""Operands of the sweep: eight types, four shapes, three inputs."""

from __future__ import annotations

import numpy as np

DTYPES = ("float32", "int32", "uint32", "bool", "int64", "uint8", "int8", "float64")
SHAPES: dict[str, tuple[int, ...]] = {"8": (8,), "3x4": (3, 4), "scalar": (), "empty": (0,)}
SQUARE = {"3x3": (3, 3)}
"""The shape of functions that take none of the others: those of square matrices."""
INPUTS = ("ordinary", "ties", "edges")

DOMAINS = ((-3.0, 3.0), (0.1, 0.9), (1.1, 3.0))
"""Ranges of ordinary floats; the first where JAX gives neither NaN nor infinity is taken."""


def operands(
    dtype: str, shape: tuple[int, ...], kind: str, count: int, domain: int = 0
) -> list[np.ndarray]:
    """Return operands of a kind of :data:`INPUTS`; each differs from the others."""
    size = max(1, int(np.prod(shape)))
    made = []
    for i in range(count):
        if kind == "ordinary":
            numbers = _ordinary(np.random.default_rng(i), dtype, domain)
        elif kind == "ties":
            numbers = np.roll(np.array([0, 1, 1, 0, 2, 2, 0, 1]).astype(dtype), i)
        else:
            numbers = np.roll(edges(dtype), i)
        made.append(np.resize(numbers, size)[: int(np.prod(shape))].reshape(shape))
    return made


def _ordinary(rng: np.random.Generator, dtype: str, domain: int) -> np.ndarray:
    if dtype == "bool":
        return rng.permutation([True, False, True, True, False, False, True, False])
    if dtype.startswith("float"):
        low, high = DOMAINS[domain]
        return rng.permutation(np.linspace(low, high, 12)).astype(dtype)
    numbers = rng.permutation(12) + 1
    signs = rng.choice([1, -1] if domain == 0 and dtype.startswith("i") else [1], 12)
    return (numbers * signs).astype(dtype)


def edges(dtype: str) -> np.ndarray:
    """Return numbers at the edges of a type, all of which SPU holds."""
    if dtype == "bool":
        return np.zeros(8, bool)
    if dtype.startswith("float"):
        small = np.finfo(dtype).smallest_subnormal
        return np.array([-0.0, small, -300.7, 0.0, 2.0**31, -(2.0**-30), 1e7, -(2.0**33)], dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.array([low, high, 0, 1, high // 3, low // 3, high - 1, 7], dtype)
