"""Linear algebra on SPU: lowering rules of JAX's primitives in place of calls of LAPACK.

Each decomposition is a function of arrays with as many steps as the shape says, and pivots are
chosen by masks, so nothing that happens depends on data. JAX keeps its own derivatives, and its own
functions around the decompositions. Imports JAX.

References:
    Golub and Van Loan, Matrix Computations (2013), chapters 3, 4, 5 and 8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jax._src import source_info_util
from jax._src.interpreters import mlir
from jax._src.lax import linalg

from mplang_spu.linear_algebra import functions
from mplang_spu.linear_algebra.cholesky import cholesky
from mplang_spu.linear_algebra.eigh import eigh
from mplang_spu.linear_algebra.lu import lu
from mplang_spu.linear_algebra.qr import reflected, reflections
from mplang_spu.linear_algebra.svd import svd
from mplang_spu.linear_algebra.triangular import triangular_solve
from mplang_spu.target import Target

MAX_SIZE = 32
"""Largest number of rows or columns, whichever is smaller, of a matrix that SPU decomposes."""

Rule = Callable[..., Any]


def _eigh(a: Any, target: Target, *, lower: bool, **_: Any) -> Any:
    return eigh(a, target, lower=lower)


def _svd(a: Any, target: Target, *, full_matrices: bool, compute_uv: bool, **_: Any) -> Any:
    return svd(a, target, full_matrices=full_matrices, compute_uv=compute_uv)


_RULES: Mapping[Any, Rule] = {
    linalg.cholesky_p: lambda a, target: [cholesky(a, target)],
    linalg.triangular_solve_p: lambda *args, **how: [triangular_solve(*args, **how)],
    linalg.lu_p: lu,
    linalg.geqrf_p: reflections,
    linalg.householder_product_p: lambda *args: [reflected(*args)],
    linalg.eigh_p: _eigh,
    linalg.svd_p: _svd,
}


def register(target: Callable[[], Target | None]) -> None:
    """Register the lowering rules with JAX.

    Args:
        target: returns what a function is lowered for; ``None`` for a plain device, which has
            JAX's own rules.
    """
    for primitive, rule in _RULES.items():
        entry = mlir._platform_specific_lowerings["cpu"][primitive]
        chosen = _chosen(rule, entry.rule, target)
        mlir.register_lowering(primitive, chosen, platform="cpu")
    functions.patch(target)


def _chosen(rule: Rule, plain: Rule, target: Callable[[], Target | None]) -> Rule:
    def lowered(ctx: Any, *args: Any, **params: Any) -> Any:
        made_for = target()
        if made_for is None or not _takes(made_for, *ctx.avals_in, **params):
            return plain(ctx, *args, **params)  # SPU refuses calls of LAPACK, with the line
        given = mlir.lower_fun(lambda *arrays: rule(*arrays, made_for, **params))
        with source_info_util.user_context(ctx.traceback, name_stack=ctx.name_stack):
            return given(ctx, *args)

    return lowered


def _takes(target: Target, a: Any, *more: Any, subset_by_index: Any = None, **how: Any) -> bool:
    """Return whether SPU decomposes matrices: real and small ones, and all of their values."""
    is_fine = target.fxp >= 30 and target.factors >= 2.0**40
    n = min(a.shape[-2:])
    is_product = more and more[0].ndim < a.ndim  # of reflections, which are as many as factors
    fits = (
        a.dtype.kind == "f" and a.size > 0 and (more[0].shape[-1] if is_product else n) <= MAX_SIZE
    )
    return is_fine and fits and subset_by_index in (None, (0, n))
