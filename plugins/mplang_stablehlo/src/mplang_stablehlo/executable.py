"""XLA executables compiled from StableHLO text, without the original Python function."""

from __future__ import annotations

import copy
import functools
import math
import re
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax._src import pjit
from jax._src.interpreters import pxla

from mplang_core import TensorType
from mplang_stablehlo.kept_code import NOTHING, compiling, has_kept_code
from mplang_stablehlo.module import parse, parse_alone

SMALL = 1 << 14
"""Elements of an array that take less time than a call."""

QUICKLY: dict[str, str | bool] = {
    "xla_backend_optimization_level": "1",
    "xla_llvm_disable_expensive_passes": True,
}
"""Options by which XLA compiles in two thirds of the time what runs as quickly, if it is small.

Its older emitters would take another tenth less, and do not clamp bools.
"""

_LONG = re.compile(r"stablehlo\.(while|dot_general|convolution|reduce_window|scatter|custom_call)")
"""Ops that take longer than their arrays are large, or a library's time."""

_SHAPE = re.compile(r"tensor<((?:\d+x)+)")

_LOWERED = [
    each
    for module, name in ((pjit, "_pjit_lower"), (pxla, "_cached_lowering_to_hlo"))
    if (each := getattr(module, name, None)) is not None  # as JAX 0.8 calls them
]
"""JAX's caches of lowered functions, of which one has what the other has."""


def compile_for_xla(
    text: str, takes: Sequence[TensorType], gives: Sequence[TensorType]
) -> Callable[..., list[jax.Array]]:
    """Compile StableHLO for XLA; arrays of 64 bits need ``jax.enable_x64``.

    JAX compiles what it has lowered itself, so the code replaces that of a stand-in with the same
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
    is_wide = jax.dtypes.canonicalize_dtype("float64") == "float64"
    lowered = copy.copy(_stand_in(tuple(takes), tuple(gives), is_wide))
    lowered._lowering = copy.copy(lowered._lowering)
    options = QUICKLY if is_quick(text) else None
    if not has_kept_code():
        lowered._lowering._hlo = parse_alone(text)  # type: ignore[attr-defined]
        return lowered.compile(options)
    lowered._lowering._hlo = parse(NOTHING)  # type: ignore[attr-defined]
    with compiling(text):
        return lowered.compile(options)


def is_quick(text: str) -> bool:
    """Return whether a module runs in so short a time that optimization would not pay.

    It depends on the text alone, as results may differ in their last bit.

    Args:
        text: StableHLO.

    Example:
        >>> is_quick("%0 = stablehlo.add %a, %b : tensor<3x4xf32>")
        True
    """
    if _LONG.search(text):
        return False
    shapes = {*_SHAPE.findall(text)}
    return all(math.prod(map(int, shape.split("x")[:-1])) <= SMALL for shape in shapes)


@functools.lru_cache(maxsize=256)
def _stand_in(
    takes: Sequence[TensorType], gives: Sequence[TensorType], x64: bool
) -> jax.stages.Lowered:
    """Return a lowered function of a signature, without its code."""

    def stand_in(*args: jax.Array) -> list[jax.Array]:
        return [jnp.zeros(kind.shape, kind.dtype.numpy) for kind in gives]

    avals = [jax.ShapeDtypeStruct(kind.shape, kind.dtype.numpy) for kind in takes]
    lowered = jax.jit(stand_in, keep_unused=True).lower(*avals)
    lowered._lowering._hlo = None  # type: ignore[attr-defined]
    _forget_lowerings()
    return lowered


def _forget_lowerings() -> None:
    """Clear what JAX has lowered, and would keep: an MLIR context of 1 MB for each module.

    Functions that were called before stay compiled, as their executables are in other caches.
    """
    for lowered in _LOWERED:
        lowered.cache_clear()
