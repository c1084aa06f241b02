"""Code in float64: what NumPy gives for the same operands. Imports JAX."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
from mplang_stablehlo.executable import compile

from mplang_spu.reference_check.flat_function import FlatFunction, Variant

__all__ = ["Array", "outputs_of", "run"]

Array: TypeAlias = np.ndarray[Any, Any]


def outputs_of(function: FlatFunction, operands: Sequence[Array], width: int = 64) -> list[Array]:
    """Run a flat function with floats of that many bits."""
    return run(_at_width(function, width), operands)


def run(variant: Variant, operands: Sequence[Array]) -> list[Array]:
    """Run a variant of a flat function on XLA."""
    with jax.enable_x64(True):
        compiled = _compiled(variant)
        given = [
            np.asarray(value, kind.dtype.numpy)
            for value, kind in zip(operands, variant.takes, strict=True)
        ]
        return [np.asarray(value) for value in compiled(*given)]


@functools.lru_cache(maxsize=64)
def _at_width(function: FlatFunction, width: int) -> Variant:
    return function.with_float_width(width)


@functools.lru_cache(maxsize=64)
def _compiled(variant: Variant) -> Callable[..., Any]:
    return compile(variant.text, variant.takes, variant.gives)
