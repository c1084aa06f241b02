"""Environment that a function traced by JAX depends on. Imports JAX."""

from __future__ import annotations

from collections.abc import Hashable

from jax._src.array import ArrayImpl
from jax._src.config import trace_context


def jax_settings() -> Hashable:
    """Return the settings of JAX that change how a function is traced."""
    found: Hashable = trace_context()
    return found


def is_fixed(value: object) -> bool:
    """Return whether an object is an array of JAX, or one of its functions, such as a jitted one.

    Arrays of JAX are immutable; functions are taken not to change, as JAX itself takes them.
    """
    kind = type(value)  # isinstance(value, jax.Array) would ask it for its aval
    made_by_jax = str(kind.__module__).partition(".")[0] in ("jax", "jaxlib")
    return kind is ArrayImpl or (made_by_jax and callable(value))
