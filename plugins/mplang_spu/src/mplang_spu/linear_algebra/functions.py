"""Functions of ``jnp.linalg`` around decompositions, without infinities. Imports JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax._src.lax import linalg
from jax._src.numpy import linalg as jnp_linalg

from mplang_spu.linear_algebra.matrices import diagonal, product, transposed


def patch(is_for_spu: Callable[[], Any]) -> None:
    """Replace functions where they are traced for SPU; derivatives stay JAX's."""
    written = {"_det": _det, "_slogdet_lu": _slogdet, "_pinv": _pinv}
    for name, ours in written.items():
        custom = getattr(jnp_linalg, name)
        custom.fun = _chosen(ours, custom.fun, is_for_spu)


def _chosen(
    ours: Callable[..., Any], plain: Callable[..., Any], is_for_spu: Callable[[], Any]
) -> Callable[..., Any]:
    def fun(*args: Any, **kwargs: Any) -> Any:
        return (ours if is_for_spu() else plain)(*args, **kwargs)

    return fun


def _det(a: Array) -> Array:
    """Multiply the pivots: the exponential of JAX's sum of logarithms is up to 10 % off."""
    factors, pivots, _ = linalg.lu(a)
    found = diagonal(factors).prod(-1)
    return jnp.where(_is_odd(pivots), -found, found)


def _slogdet(a: Array) -> tuple[Array, Array]:
    """Return sign and logarithm; of singular matrices 0, and no infinity, which SPU lacks."""
    factors, pivots, _ = linalg.lu(a)
    sizes = diagonal(factors)
    sign = jnp.sign(sizes).prod(-1)
    return jnp.where(_is_odd(pivots), -sign, sign), jnp.log(jnp.abs(sizes)).sum(-1)


def _is_odd(pivots: Array) -> Array:
    is_exchanged = pivots != jnp.arange(pivots.shape[-1], dtype=pivots.dtype)
    return is_exchanged.sum(-1) % 2 == 1


def _pinv(a: Array, rtol: Any = None, hermitian: bool = False) -> Array:
    """Leave small singular values out, which JAX divides infinity by."""
    if rtol is None:
        rtol = 10.0 * max(a.shape[-2:]) * float(np.finfo(a.dtype).eps)
    u, s, vh = jnp_linalg.svd(a, full_matrices=False, hermitian=hermitian)
    is_kept = s > jnp.asarray(rtol, s.dtype)[..., None] * s[..., :1]
    inverse = jnp.where(is_kept, 1 / jnp.where(is_kept, s, 1), 0)
    return product(transposed(vh), inverse[..., None] * transposed(u))
