"""What a function traced by JAX depends on besides itself. Imports JAX."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import jax
from jax._src.config import trace_context


def settings() -> Hashable:
    """Return the settings of JAX that change how a function is traced."""
    found: Hashable = trace_context()
    return found


def is_fixed(value: Any) -> bool:
    """Return whether an object is an array of JAX, or one of its functions, such as a jitted one.

    Arrays of JAX are immutable; functions are taken not to change, as JAX itself takes them.
    """
    package = type(value).__module__.partition(".")[0]
    return isinstance(value, jax.Array) or (callable(value) and package in ("jax", "jaxlib"))
