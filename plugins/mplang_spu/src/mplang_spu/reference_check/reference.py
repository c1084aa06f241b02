"""Reference execution of flat functions by XLA or the interpreter, with floats of 64 or 32 bits."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
from mplang_stablehlo.ext import compile_for_xla, interpreted

from mplang_spu.reference_check.flat_function import FlatFunction, Variant

Array: TypeAlias = np.ndarray[Any, Any]


def outputs_of(function: FlatFunction, operands: Sequence[Array], width: int = 64) -> list[Array]:
    """Run a flat function with all floats of one width.

    Args:
        function: the function.
        operands: its operands in plain.
        width: 64 or 32 bits.

    Returns:
        Its results.
    """
    return run(_at_width(function, width), operands)


def run(variant: Variant, operands: Sequence[Array]) -> list[Array]:
    """Run a variant of a flat function.

    Args:
        variant: the module.
        operands: converted to the types that it takes.

    Returns:
        Its results.
    """
    with jax.enable_x64(True):
        execute = _executable(variant)
        given = [
            np.asarray(value, kind.dtype.numpy)
            for value, kind in zip(operands, variant.takes, strict=True)
        ]
        return [np.asarray(value) for value in execute(*given)]


@functools.lru_cache(maxsize=64)
def _at_width(function: FlatFunction, width: int) -> Variant:
    return function.with_float_width(width)


@functools.lru_cache(maxsize=64)
def _executable(variant: Variant) -> Callable[..., Any]:
    parts = variant.text, variant.takes, variant.gives
    return interpreted(*parts) or compile_for_xla(*parts)
