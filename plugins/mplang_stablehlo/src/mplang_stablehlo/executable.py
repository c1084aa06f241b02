"""XLA executables compiled from StableHLO text, without the original Python function."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax._src import pjit
from jax._src.interpreters import pxla

from mplang_core import TensorType
from mplang_stablehlo.module import artifact

_LOWERED = [
    each
    for module, name in ((pjit, "_pjit_lower"), (pxla, "_cached_lowering_to_hlo"))
    if (each := getattr(module, name, None)) is not None  # as JAX 0.8 calls them
]
"""JAX's caches of lowered functions, of which one has what the other has."""


def compile_for_xla(
    text: str, takes: Sequence[TensorType], gives: Sequence[TensorType]
) -> Callable[..., Any]:
    """Compile StableHLO for XLA; arrays of 64 bits need ``jax.enable_x64``.

    JAX loads code only as part of an export, so the code replaces that of an export with the same
    signature.

    Args:
        text: admitted StableHLO.
        takes: the types of its operands.
        gives: the types of its results.

    Returns:
        A function of arrays that returns a list of arrays.

    Example:
        >>> double = compile_for_xla('''module @main {
        ...   func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {
        ...     %0 = stablehlo.add %arg0, %arg0 : tensor<f32>
        ...     return %0 : tensor<f32>
        ...   }
        ... }''', [TensorType("f32")], [TensorType("f32")])
        >>> print(*double(jnp.float32(2)))
        4.0
    """

    def stand_in(*args: Any) -> list[Any]:
        return [jnp.zeros(kind.shape, kind.dtype.numpy) for kind in gives]

    avals = [jax.ShapeDtypeStruct(kind.shape, kind.dtype.numpy) for kind in takes]
    template = jax.export.export(jax.jit(stand_in, keep_unused=True))(*avals)
    loaded = dataclasses.replace(template, mlir_module_serialized=artifact(text))
    compiled: Callable[..., Any] = jax.jit(loaded.call).lower(*avals).compile()
    _forget_lowerings()
    return compiled


def _forget_lowerings() -> None:
    """Clear what JAX has lowered, and would keep: an MLIR context of 1 MB for each module.

    Functions that were called before stay compiled, as their executables are in other caches.
    """
    for lowered in _LOWERED:
        lowered.cache_clear()
