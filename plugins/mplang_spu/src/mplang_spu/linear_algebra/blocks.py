"""Steps of elimination, some columns at a time, as loops. Imports JAX."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

WIDTH = 8
"""Columns that one loop eliminates.

A loop computes all that its first step needs in each step: one for all columns would multiply
three times as much as is needed, one for each column takes XLA ten seconds to compile.
"""


def blocks(steps: int) -> Iterator[tuple[int, int]]:
    """Yield the first column and the number of columns of each block."""
    for start in range(0, steps, WIDTH):
        yield start, min(WIDTH, steps - start)


def repeated(
    step: Callable[[Any, Array], tuple[Any, Any]], state: Any, count: int
) -> tuple[Any, Any]:
    """Run ``state, result = step(state, k)`` in a loop; return the state, and the results.

    The results are stacked in the last dimension.
    """
    state, results = lax.scan(step, state, jnp.arange(count, dtype=jnp.int32))
    return state, jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), results)


def at(x: Array, k: Array) -> Array:
    """Return the elements at a public place of the last dimension."""
    return lax.dynamic_index_in_dim(x, k, axis=-1, keepdims=False)


def places(x: Array) -> Array:
    """Return the places in the last dimension."""
    return jnp.arange(x.shape[-1], dtype=jnp.int32)
