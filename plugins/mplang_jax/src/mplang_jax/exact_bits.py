"""Bits in jaxprs: where the wrap-around of integers matters, and which floats are exact."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jax._src import core
from jax._src.interpreters import mlir, partial_eval as pe
from jax._src.lax import lax

from mplang_jax.x64 import inner_jaxprs

_ON_BITS = """
bitcast_convert_type clz nextafter population_count random_bits random_clone random_fold_in
random_gamma random_seed random_split random_unwrap random_wrap reduce_precision
rng_bit_generator shift_left shift_right_arithmetic shift_right_logical threefry2x32
"""
"""Primitives on the bits of numbers."""

_MAY_LEAVE = """
add add_any cumprod cumsum dot_general integer_pow mul neg not pow reduce_prod reduce_sum
scatter-add scatter-mul sub
"""
"""Primitives whose result may leave the type of their operands."""

_FACTOR = 1 << 16
"""Smallest factor that is one of a hash or of a random generator, and not one of an index."""

_SAME_EVERYWHERE = """
abs add and argmax argmin bitcast_convert_type broadcast_in_dim ceil clamp concatenate
convert_element_type copy copy_p dynamic_slice dynamic_update_slice eq expand_dims floor gather
ge gt is_finite iota le lt max min ne neg nextafter or pad reduce_max reduce_min
reduce_precision reshape rev round select_n sign slice sort split squeeze stop_gradient sub
transpose
"""
"""Primitives on floats that give the same bits on every processor.

A product may be one rounding with the sum that takes it, or two; see :func:`_is_exact`.
"""

_BITS, _ARITHMETIC, _EXACT = (
    frozenset(names.split()) for names in (_ON_BITS, _MAY_LEAVE, _SAME_EVERYWHERE)
)
_CHECKPOINTS = ("checkpoint", "remat2")
_MOVES = ("broadcast_in_dim", "convert_element_type", "copy", "reshape", "squeeze")
_REWRITTEN = frozenset({"cond", "jit", "pjit", "scan"})


def has_bits(jaxpr: Any) -> bool:
    """Return whether a jaxpr works on the bits of numbers, or on integers that may wrap around.

    Sums of int32 and int64 do not count: they are indices and counters nearly always.

    Args:
        jaxpr: the jaxpr.
    """
    return any(map(_has_bits, jaxpr.eqns))


def _has_bits(eqn: Any) -> bool:
    name = eqn.primitive.name
    if name in _BITS:
        return True
    if name == "convert_element_type":
        return _dtype(eqn.invars[0]).kind in "iu" and _is_narrow(_dtype(eqn.outvars[0]))
    if name in _ARITHMETIC:
        return _may_wrap(eqn)
    return any(has_bits(getattr(inner, "jaxpr", inner)) for inner in inner_jaxprs(eqn))


def _may_wrap(eqn: Any) -> bool:
    dtype = _dtype(eqn.outvars[0])
    if _is_narrow(dtype):
        return True
    if dtype.kind != "i" or eqn.primitive.name not in ("mul", "integer_pow"):
        return False
    literals = [var.val for var in eqn.invars if isinstance(var, core.Literal)]
    return any(abs(int(value)) >= _FACTOR for value in literals if np.ndim(value) == 0)


def _is_narrow(dtype: Any) -> bool:
    return bool(dtype.kind == "u" or (dtype.kind == "i" and dtype.itemsize < 4))


def _dtype(var: Any) -> Any:
    found = getattr(var.aval, "dtype", None)
    return found if isinstance(found, np.dtype) else np.dtype(bool)


def without_checkpoints(jaxpr: Any) -> Any:
    """Return a jaxpr with the equations of functions of ``jax.checkpoint`` in place of their calls.

    JAX computes the known values of such a function again in its unknown part. No derivative is
    left to be taken here, so nothing is lost.

    Args:
        jaxpr: the jaxpr.
    """
    if not any(map(_checkpoints, jaxpr.eqns)):
        return jaxpr
    eqns: list[Any] = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in _CHECKPOINTS:
            eqns += _inlined(eqn)
        elif eqn.primitive.name in _REWRITTEN and _checkpoints(eqn):
            eqns.append(_mapped(eqn, without_checkpoints))
        else:
            eqns.append(eqn)
    return jaxpr.replace(eqns=eqns)


def _checkpoints(eqn: Any) -> bool:
    return eqn.primitive.name in _CHECKPOINTS or any(
        _checkpoints(each)
        for inner in inner_jaxprs(eqn)
        for each in getattr(inner, "jaxpr", inner).eqns
    )


def _inlined(call: Any) -> list[Any]:
    inner = without_checkpoints(call.params["jaxpr"])
    new = dict(zip(inner.invars, call.invars, strict=True))

    def read(var: Any) -> Any:
        return var if isinstance(var, core.Literal) else new[var]

    eqns = []
    for eqn in inner.eqns:
        outs = [core.Var(var.aval) for var in eqn.outvars]
        eqns.append(eqn.replace(invars=[*map(read, eqn.invars)], outvars=outs))
        new.update(zip(eqn.outvars, outs, strict=True))
    given = [read(var) for var in inner.outvars]
    copies = zip(given, call.outvars, strict=True)
    return [*eqns, *(_identity(lax.copy_p, x, out) for x, out in copies)]


def _mapped(eqn: Any, change: Callable[[Any], Any]) -> Any:
    """Return a call, loop or branch whose inner functions are changed."""
    params = dict(eqn.params)

    def changed(closed: Any) -> Any:
        return core.ClosedJaxpr(change(closed.jaxpr), closed.consts)

    if eqn.primitive.name == "cond":
        params["branches"] = tuple(map(changed, params["branches"]))
    else:
        params["jaxpr"] = changed(params["jaxpr"])
    return eqn.replace(params=params)


hold = core.Primitive("mplang_hold")
"""Identity whose result is not known to JAX's partial evaluation."""

hold.def_impl(lambda x: x)
hold.def_abstract_eval(lambda x: x)
mlir.register_lowering(hold, lambda ctx, x: [x])


def _partial_eval(trace: Any, x: Any) -> Any:
    return trace.instantiate_const(x)


pe.custom_partial_eval_rules[hold] = _partial_eval


def hold_inexact(closed: Any, consts: Sequence[Any]) -> Any:
    """Hold the operands of ops on floats that may differ between processors.

    Args:
        closed: a closed jaxpr.
        consts: the values of its first operands.

    Returns:
        The jaxpr, with :data:`hold` before such ops.
    """
    values = dict(zip(closed.jaxpr.invars, consts, strict=False))
    return core.ClosedJaxpr(_held(closed.jaxpr, values), closed.consts)


def _held(jaxpr: Any, values: Mapping[Any, Any]) -> Any:
    eqns: list[Any] = []
    values = dict(values)
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in _MOVES and (known := _value(eqn.invars[0], values)) is not None:
            values[eqn.outvars[0]] = known
        if eqn.primitive.name in _REWRITTEN:
            eqns.append(_inside(eqn, values))
        elif _is_exact(eqn, values):
            eqns.append(eqn)
        else:
            holds = [
                _identity(hold, var, core.Var(var.aval))
                for var in eqn.invars
                if not isinstance(var, core.Literal)
            ]
            names = {each.invars[0]: each.outvars[0] for each in holds}
            given = [var if isinstance(var, core.Literal) else names[var] for var in eqn.invars]
            eqns += [*holds, eqn.replace(invars=given)]
    return jaxpr.replace(eqns=eqns)


def _identity(primitive: Any, var: Any, out: Any) -> Any:
    return core.new_jaxpr_eqn([var], [out], primitive, {}, core.no_effects)


def _inside(eqn: Any, values: Mapping[Any, Any]) -> Any:
    """Return a call, loop or branch whose inner functions hold; they know fixed operands."""
    name, params = eqn.primitive.name, dict(eqn.params)
    fixed = eqn.invars[: params["num_consts"]] if name == "scan" else eqn.invars
    fixed = fixed[1:] if name == "cond" else fixed

    def held(closed: Any) -> Any:
        known = {
            inner: _value(outer, values)
            for inner, outer in zip(closed.jaxpr.invars, fixed, strict=False)
        }
        made = {inner: value for inner, value in known.items() if value is not None}
        return core.ClosedJaxpr(_held(closed.jaxpr, made), closed.consts)

    if name == "cond":
        params["branches"] = tuple(map(held, params["branches"]))
    else:
        params["jaxpr"] = held(params["jaxpr"])
    return eqn.replace(params=params)


def _value(var: Any, values: Mapping[Any, Any]) -> Any:
    return np.asarray(var.val) if isinstance(var, core.Literal) else values.get(var)


def _is_exact(eqn: Any, values: Mapping[Any, Any]) -> bool:
    name = eqn.primitive.name
    if not _has_floats(eqn):
        return True
    if name == "mul":  # a product that needs no rounding is the same with or without
        return any(_scales(_value(var, values)) for var in eqn.invars)
    return name in _EXACT


def _has_floats(eqn: Any) -> bool:
    if any(_dtype(var).kind in "fcV" for var in (*eqn.invars, *eqn.outvars)):
        return True
    inner = [getattr(each, "jaxpr", each) for each in inner_jaxprs(eqn)]
    return any(_has_floats(each) for jaxpr in inner for each in jaxpr.eqns)


def _scales(value: Any) -> bool:
    """Return whether a product by this is exact: all its elements are powers of two."""
    if value is None:
        return False
    mantissa, exponent = np.frexp(np.asarray(value, np.float64))
    return bool(((np.abs(mantissa) == 0.5) & (np.abs(exponent) < 8)).all())
