"""Tracing a function with JAX so that the arrays it closes over are operands. Imports JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import enable_x64
from jax.extend.core import Literal

from mplang_core import FeSignature, TensorType
from mplang_core.feop import flatten

__all__ = ["Traced"]


class Traced:
    """A function as JAX traced it.

    Args:
        fn: the function.
        signature: its arguments.
        operands: the types of those that are arrays.

    Attributes:
        x64: whether it was traced with 64-bit types.
        consts: the arrays that it closes over.
        out_tree: how its results are nested.
    """

    def __init__(
        self, fn: Callable[..., Any], signature: FeSignature, operands: Sequence[TensorType]
    ) -> None:
        self._fn, self._signature, self._operands = fn, signature, operands
        self.out_tree: Any = None
        wide = any(kind.dtype.is_64bit for kind in operands)
        self.x64 = wide or bool(jax.config.read("jax_enable_x64")) or self._closes_over_64_bits()
        with enable_x64(self.x64):
            self._jaxpr = self._trace()
        self.consts = tuple(np.asarray(const) for const in self._jaxpr.consts)

    def _flat(self, *leaves: Any) -> list[Any]:
        outs = self._fn(*self._signature.fill(leaves), **self._signature.kwargs)
        flat, self.out_tree = flatten(outs)
        return flat

    def _trace(self) -> Any:
        avals = [jax.ShapeDtypeStruct(kind.shape, kind.dtype.numpy) for kind in self._operands]
        traced = jax.make_jaxpr(self._flat)(*avals)
        if not _hides_consts(traced.jaxpr):
            return traced
        inlined = lambda *args: _run(traced.jaxpr, traced.consts, args)  # noqa: E731
        return jax.make_jaxpr(inlined)(*avals)

    def _closes_over_64_bits(self) -> bool:
        """Look with 64-bit types on; without them JAX narrows before anyone can see it."""
        with enable_x64(True):
            try:
                consts = self._trace().consts
            except Exception:
                return False  # what is wrong will be told without them, too
        return any(np.dtype(const.dtype).itemsize == 8 and np.size(const) for const in consts)

    def lower(self) -> str:
        """Return the StableHLO of a function of the operands, then the consts."""
        split = len(self._operands)

        def with_consts(*args: Any) -> Any:
            return jax.core.eval_jaxpr(self._jaxpr.jaxpr, args[split:], *args[:split])

        with enable_x64(self.x64):
            avals = [*self._jaxpr.in_avals, *self.consts]
            shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
            text: str = jax.jit(with_consts, keep_unused=True).lower(*shapes).as_text()
        return text


def _hides_consts(jaxpr: Any) -> bool:
    """Tell whether a jitted function in it closes over arrays."""
    return any(
        inner.consts or _hides_consts(inner.jaxpr) for inner in map(_jitted, jaxpr.eqns) if inner
    )


def _jitted(eqn: Any) -> Any:
    return eqn.params.get("jaxpr") if eqn.primitive.name in ("jit", "pjit") else None


def _run(jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Evaluate a jaxpr, jitted functions that close over arrays in place, so they surface."""
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, map(jax.numpy.asarray, consts), strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def read(var: Any) -> Any:
        return var.val if isinstance(var, Literal) else env[var]

    for eqn in jaxpr.eqns:
        ins = [read(var) for var in eqn.invars]
        inner = _jitted(eqn)
        if inner and (inner.consts or _hides_consts(inner.jaxpr)):
            outs = _run(inner.jaxpr, inner.consts, ins)
        else:
            outs = eqn.primitive.bind(*ins, **eqn.params)
            outs = outs if eqn.primitive.multiple_results else [outs]
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(var) for var in jaxpr.outvars]
