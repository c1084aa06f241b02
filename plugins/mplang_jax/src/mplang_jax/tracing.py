"""Tracing of functions with JAX, with captured arrays as operands. Imports JAX."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import numpy as np
from jax import enable_x64, stages
from jax._src import config, core, source_info_util
from jax.extend.core import Literal
from mplang_stablehlo.ext import lowering_in_shared_context

from mplang_core import FeSignature, TensorType
from mplang_core.ext import TraceError, at, flatten
from mplang_jax import trace_errors
from mplang_jax.captured_state import CapturedState
from mplang_jax.narrow_comparisons import narrow_comparisons
from mplang_jax.structure import key_of as structural_key
from mplang_jax.x64 import has_64_bits, inner_jaxprs, is_same_without, loses_precision


class TracedFunction:
    """Function traced by JAX.

    Without 64-bit types JAX narrows 64-bit values silently, so the function is traced with them.
    They stay enabled if the function needs them: if an operand, a literal or a captured value has
    64 bits, if the function asks for such a type, or if a number would be lost. Else it is traced
    again without them, unless they made no difference; what the first call changed is restored
    before.

    Args:
        fn: the function.
        signature: its arguments.
        operands: the types of the arrays among them.

    Attributes:
        x64: whether 64-bit types are enabled.
        jaxpr: what was traced, with the arrays that it captures.
        consts: these.
        operands: the number of the operands.
        out_tree: the structure of its results.
        warned: file, line and text of each warning about it.
    """

    def __init__(
        self, fn: Callable[..., Any], signature: FeSignature, operands: Sequence[TensorType]
    ) -> None:
        self._fn, self._signature, self._types = fn, signature, operands
        self.operands = len(operands)
        self.out_tree: Any = None
        self._stage: stages.Traced | None = None
        wide = any(kind.dtype.is_64bit for kind in operands)
        self.jaxpr, self.x64 = self._choose(wide or bool(jax.config.read("jax_enable_x64")))
        if any(isinstance(const, core.Tracer) for const in self.jaxpr.consts):
            raise TraceError(f"{at()}{trace_errors.LEAKED}", code="T004")
        self.consts = tuple(np.asarray(const) for const in self.jaxpr.consts)
        self.warned = narrow_comparisons(self.jaxpr.jaxpr, self.consts) if self.x64 else ()

    def _choose(self, wide: bool) -> tuple[Any, bool]:
        if wide:
            with enable_x64(True):
                return self._trace(), True
        before = self._state()
        with_64_bits = self._attempt()
        if with_64_bits is None:
            before.restore()
            with enable_x64(False):
                return self._trace(), False  # raises the same error without 64-bit types
        if has_64_bits(self._fn, self._signature, with_64_bits.consts):
            return with_64_bits, True
        if is_same_without(with_64_bits.jaxpr):
            return with_64_bits, False
        after = self._state()
        before.restore()
        without = self._without_64_bits()
        if without is None or loses_precision(with_64_bits.jaxpr, without.jaxpr):
            after.restore()
            return with_64_bits, True
        return without, False

    def _state(self) -> CapturedState:
        literals, _ = flatten((self._signature.args, dict(self._signature.kwargs)))
        return CapturedState(self._fn, literals)

    def _without_64_bits(self) -> Any:
        """Trace without 64-bit types; return ``None`` if the function asks for one."""
        refuse = config.explicit_x64_dtypes(config.ExplicitX64Mode.ERROR)
        try:
            with enable_x64(False), refuse:
                return self._trace()
        except OverflowError:
            raise  # with 64-bit types, JAX truncates a number too large for the other operand
        except ValueError:
            return None

    def _attempt(self) -> Any:
        with enable_x64(True):
            try:
                return self._trace()
            except Exception:
                return None

    def _flat(self, *leaves: Any) -> list[Any]:
        outs = self._fn(*self._signature.fill(leaves), **self._signature.kwargs)
        flat, self.out_tree = flatten(outs)
        for leaf in flat:
            if not _is_array(leaf):
                name = getattr(self._fn, "__name__", type(self._fn).__name__)
                raise TraceError(f"{at()}{name} returns {_described(leaf)}", code="T006")
        return flat

    def _trace(self) -> Any:
        avals = [jax.ShapeDtypeStruct(kind.shape, kind.dtype.numpy) for kind in self._types]

        @functools.wraps(self._fn)
        def flat(*leaves: Any) -> list[Any]:
            return self._flat(*leaves)

        flat.__signature__ = inspect.signature(self._flat)  # type: ignore[attr-defined]
        stage = jax.jit(flat, keep_unused=True).trace(*avals)  # with the user's name in its errors
        jaxpr = stage.jaxpr
        if len(jaxpr.in_avals) > len(avals):  # values of another trace, which JAX makes operands
            raise TraceError(f"{at()}{trace_errors.LEAKED}", code="T004")
        if not _hides_consts(jaxpr.jaxpr):
            self._stage = stage
            return jaxpr
        inlined = lambda *args: _run(jaxpr.jaxpr, jaxpr.consts, args)  # noqa: E731
        return jax.make_jaxpr(inlined)(*avals)

    @property
    def key(self) -> Hashable:
        """Key of what is lowered; ``None`` if it has a part that is not compared."""
        structure = structural_key(self.jaxpr.jaxpr, __file__)
        kinds = tuple((const.shape, const.dtype) for const in self.consts)
        return None if structure is None else (structure, kinds, self.x64, self.operands)

    def lower(self) -> str:
        """Return StableHLO with source lines; it takes the operands, then the consts."""
        with enable_x64(self.x64), lowering_in_shared_context():
            text: str = self._with_consts().lower().as_text(debug_info=True)
        return text

    def _with_consts(self) -> stages.Traced:
        """Return what JAX lowers: what was traced, or a function of operands and consts."""
        if self._stage is not None and self._stage.jaxpr is self.jaxpr and not self.consts:
            return self._stage
        split = self.operands

        def with_consts(*args: Any) -> Any:
            return jax.core.eval_jaxpr(self.jaxpr.jaxpr, args[split:], *args[:split])

        avals = [*self.jaxpr.in_avals, *self.consts]
        shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
        return jax.jit(with_consts, keep_unused=True).trace(*shapes)


def _is_array(leaf: Any) -> bool:
    if isinstance(leaf, core.Tracer) or hasattr(leaf, "__jax_array__"):
        return True  # values of a program have it, and tell themselves what to do
    return bool(core.valid_jaxtype(leaf))


def _described(leaf: Any) -> str:
    kind = "a function" if inspect.isroutine(leaf) else f"a {type(leaf).__name__}"
    return (
        f"{kind}; a function that JAX compiles returns arrays and numbers, in tuples, lists, "
        "dicts, dataclasses and registered classes; see jax.tree_util.register_pytree_node"
    )


_CALLS = frozenset(
    {"checkpoint", "closed_call", "composite", "core_call", "custom_jvp_call", "custom_vjp_call"}
    | {"custom_vjp_call_jaxpr", "jit", "pjit", "remat2"}
)
"""Primitives that call one function. No derivative is left to be taken when this runs."""


def _hides_consts(jaxpr: Any) -> bool:
    """Return whether an inner function or loop body of a jaxpr captures arrays."""
    return any(map(_has_hidden, jaxpr.eqns))


def _has_hidden(eqn: Any) -> bool:
    return any(map(_hides, inner_jaxprs(eqn)))


def _hides(inner: Any) -> bool:
    return bool(getattr(inner, "consts", ())) or _hides_consts(getattr(inner, "jaxpr", inner))


def _run(jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Evaluate a jaxpr such that arrays captured by inner functions become its constants."""
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, map(jax.numpy.asarray, consts), strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def read(var: Any) -> Any:
        return var.val if isinstance(var, Literal) else env[var]

    for eqn in jaxpr.eqns:
        ins = [read(var) for var in eqn.invars]
        names = source_info_util.current_name_stack() + eqn.source_info.name_stack
        place = source_info_util.user_context(eqn.source_info.traceback, name_stack=names)
        with place, eqn.ctx.manager:
            outs = _run_inner(eqn, ins) if _has_hidden(eqn) else _bind(eqn, ins)
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(var) for var in jaxpr.outvars]


def _bind(eqn: Any, ins: list[Any]) -> Sequence[Any]:
    functions, params = eqn.primitive.get_bind_params(eqn.params)
    outs: Any = eqn.primitive.bind(*functions, *ins, **params)
    return outs if eqn.primitive.multiple_results else [outs]


def _run_inner(eqn: Any, ins: list[Any]) -> list[Any]:
    params, inner = eqn.params, [_as_function(inner) for inner in inner_jaxprs(eqn)]
    match eqn.primitive.name:
        case name if name in _CALLS:
            return inner[0](*ins)
        case "scan":
            fixed, rest = ins[: params["num_consts"]], ins[params["num_consts"] :]
            size = params["num_carry"]

            def step(carry: Any, x: Any) -> tuple[Any, Any]:
                outs = inner[0](*fixed, *carry, *x)
                return outs[:size], outs[size:]

            how = {name: params[name] for name in ("length", "reverse", "unroll")}
            carry, ys = jax.lax.scan(step, rest[:size], rest[size:], **how)
            return [*carry, *ys]
        case "while":
            split = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
            of_cond, of_body, state = ins[: split[0]], ins[split[0] : split[1]], ins[split[1] :]
            cond, body = _as_function(params["cond_jaxpr"]), _as_function(params["body_jaxpr"])
            return jax.lax.while_loop(
                lambda s: cond(*of_cond, *s)[0], lambda s: body(*of_body, *s), state
            )
        case "cond":
            outs: list[Any] = jax.lax.switch(ins[0], inner, *ins[1:])
            return outs
        case name:
            raise TypeError(
                f"a function inside of {name} closes over arrays; pass them to it as arguments"
            )


def _as_function(inner: Any) -> Callable[..., list[Any]]:
    jaxpr, consts = getattr(inner, "jaxpr", inner), getattr(inner, "consts", ())
    return lambda *args: _run(jaxpr, consts, args)
