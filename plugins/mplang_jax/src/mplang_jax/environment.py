"""What the compilation of a function depends on besides the function. Imports JAX."""

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
    """Return whether an object is an array of JAX, which is immutable."""
    return isinstance(value, jax.Array)
