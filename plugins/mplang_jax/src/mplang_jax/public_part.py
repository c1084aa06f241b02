"""Public part of a traced function: what depends on none of its secret operands. Imports JAX.

Engines for secrets may compute integers without the wrap-around of their type, and have no access
to the bits of a float: random draws, hashes and checksums need both. Where such bits are public,
they are taken out of the function: what depends on literals and captured arrays alone is computed
while tracing, what depends on public operands becomes a program of ``jax.run``. A function without
such bits stays as it is.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import enable_x64
from jax._src import core
from jax._src.interpreters import partial_eval as pe

from mplang_jax.exact_bits import has_bits, hold_inexact, without_checkpoints
from mplang_jax.tracing import TracedFunction


@dataclass(frozen=True, slots=True)
class PublicPart:
    """Public part of a function, and the rest of it.

    Attributes:
        public: computes public values from public operands; ``None`` if tracing found them all.
        takes: the operands of ``public``: numbers of the operands and constants of the function.
        rest: the function; it takes its operands, its constants, then the results of ``public``.
        consts: its constants.
    """

    public: TracedFunction | None
    takes: tuple[int, ...]
    rest: TracedFunction
    consts: tuple[np.ndarray[Any, Any], ...]


def public_part(traced: TracedFunction, secret: Sequence[bool]) -> PublicPart | None:
    """Split off the public part of a function.

    Integers of public operands are computed exactly, and floats that follow from them by exact
    ops, such as uniform numbers from random bits; all else of public operands stays.

    Args:
        traced: the function.
        secret: whether each operand is secret.

    Returns:
        The parts; ``None`` if no bits that matter are public.
    """
    if not has_bits(traced.jaxpr.jaxpr):
        return None
    with enable_x64(traced.x64):
        return _public_part(traced, secret)


def _public_part(traced: TracedFunction, secret: Sequence[bool]) -> PublicPart | None:
    whole = core.ClosedJaxpr(without_checkpoints(traced.jaxpr.jaxpr), traced.jaxpr.consts)
    known, rest = _parts(whole, [True] * len(secret))
    is_integer = [aval.dtype.kind in "biu" for aval in whole.in_avals]
    unknown = [hides or not fits for hides, fits in zip(secret, is_integer, strict=True)]
    literal = has_bits(known.jaxpr)
    if all(unknown) and not literal:
        return None
    rest, folded = _fold(known, rest)
    found = _of_operands(rest, folded, unknown)
    if found is None:
        return _joined(traced, rest, folded) if literal else None
    public, takes, rest, computed = found
    number = (*range(len(secret), len(secret) + len(folded)), *range(len(secret)))
    return replace(
        _joined(traced, rest, folded, computed),
        public=_like(traced, public, public.consts),
        takes=tuple(number[i] for i in takes),
    )


def _parts(closed: Any, unknown: Sequence[bool]) -> tuple[Any, Any]:
    """Return the known part and the rest, which takes the known values first.

    Both are without what nothing needs; keys of JAX cross as their integers.
    """
    known, rest, _, _ = pe.partial_eval_jaxpr_nounits(closed, list(unknown), True)
    extra = len(known.jaxpr.outvars)
    keep = [False] * extra + [True] * sum(unknown)
    jaxpr, used = pe.dce_jaxpr(rest.jaxpr, [True] * len(rest.jaxpr.outvars), keep)
    rest = core.ClosedJaxpr(jaxpr, rest.consts)
    needed, _ = pe.dce_jaxpr(known.jaxpr, used[:extra], True)
    return _with_integer_keys(core.ClosedJaxpr(needed, known.consts), rest)


def _with_integer_keys(known: Any, rest: Any) -> tuple[Any, Any]:
    avals = known.out_avals
    impls = [
        str(aval.dtype._impl.name) if jnp.issubdtype(aval.dtype, jax.dtypes.prng_key) else ""
        for aval in avals
    ]
    if not any(impls):
        return known, rest

    def data(*args: Any) -> list[Any]:
        outs = core.eval_jaxpr(known.jaxpr, known.consts, *args)
        return [
            jax.random.key_data(out) if impl else out for out, impl in zip(outs, impls, strict=True)
        ]

    def wrapped(*args: Any) -> Any:
        given, others = args[: len(impls)], args[len(impls) :]
        values = [
            jax.random.wrap_key_data(value, impl=impl) if impl else value
            for value, impl in zip(given, impls, strict=True)
        ]
        return core.eval_jaxpr(rest.jaxpr, rest.consts, *values, *others)

    integer = jax.make_jaxpr(data)(*map(_shape, known.in_avals))
    takes = [*integer.out_avals, *rest.in_avals[len(impls) :]]
    return integer, jax.make_jaxpr(wrapped)(*map(_shape, takes))


def _shape(aval: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype)


def _fold(known: Any, rest: Any) -> tuple[Any, list[np.ndarray[Any, Any]]]:
    """Compute what depends on no operand.

    Args:
        known: a function without operands; what it captures is not a constant of its code.
        rest: a function that takes its results first.

    Returns:
        ``rest``, and the arrays that it takes first: results that differ in their elements, and
        arrays that were captured. It makes the others itself, so that no zeros are sent.
    """
    run = jax.jit(lambda *consts: core.eval_jaxpr(known.jaxpr, consts))
    found = list(map(np.asarray, run(*known.consts)))
    captured = {*known.jaxpr.constvars}
    kept = [
        (isinstance(var, core.Var) and var in captured) or not _is_splat(value)
        for var, value in zip(known.jaxpr.outvars, found, strict=True)
    ]

    def whole(*args: Any) -> Any:
        given = iter(args)
        values = [
            next(given) if is_kept else jnp.broadcast_to(value.flat[0], value.shape)
            for value, is_kept in zip(found, kept, strict=True)
        ]
        return core.eval_jaxpr(rest.jaxpr, rest.consts, *values, *given)

    folded = [value for value, is_kept in zip(found, kept, strict=True) if is_kept]
    return jax.make_jaxpr(whole)(*map(_shape, (*folded, *rest.in_avals[len(found) :]))), folded


def _of_operands(
    rest: Any, folded: Sequence[np.ndarray[Any, Any]], unknown: Sequence[bool]
) -> tuple[Any, tuple[int, ...], Any, tuple[Any, ...]] | None:
    """Take out what depends on public operands; ``None`` if that has no bits that matter.

    Returns:
        The public part; its operands, numbers of ``rest``'s; the rest, which takes all that
        ``rest`` takes, then the public results; these.
    """
    held = hold_inexact(rest, folded)
    known, secret = _parts(held, [*[False] * len(folded), *unknown])
    if not has_bits(known.jaxpr):
        return None
    hidden = [False] * len(folded) + list(unknown)
    given = [i for i, is_unknown in enumerate(hidden) if not is_unknown]
    place = dict(zip(known.jaxpr.invars, given, strict=True))
    forwarded = [
        None if isinstance(var, core.Literal) else place.get(var) for var in known.jaxpr.outvars
    ]
    jaxpr = known.jaxpr.replace(
        outvars=[var for var, i in zip(known.jaxpr.outvars, forwarded, strict=True) if i is None],
        debug_info=known.jaxpr.debug_info.with_unknown_names(),
    )
    jaxpr, used = pe.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars), False)
    takes = tuple(i for i, is_used in zip(given, used, strict=True) if is_used)
    secrets = [i for i, is_unknown in enumerate(hidden) if is_unknown]

    def whole(*args: Any) -> Any:
        results = iter(args[len(hidden) :])
        values = [next(results) if i is None else args[i] for i in forwarded]
        return core.eval_jaxpr(secret.jaxpr, secret.consts, *values, *(args[i] for i in secrets))

    computed = tuple(_shape(var.aval) for var in jaxpr.outvars)
    avals = [*map(_shape, rest.in_avals), *computed]
    return core.ClosedJaxpr(jaxpr, known.consts), takes, jax.make_jaxpr(whole)(*avals), computed


def _joined(
    traced: TracedFunction,
    rest: Any,
    folded: Sequence[np.ndarray[Any, Any]],
    computed: Sequence[Any] = (),
) -> PublicPart:
    """Return a function of folded arrays, operands and what is computed as one of the operands.

    The others become constants, those without a value last.
    """
    jaxpr, consts = rest.jaxpr, list(map(np.asarray, rest.consts))
    first, last = len(folded), len(jaxpr.invars) - len(computed)
    constvars = [*jaxpr.invars[:first], *jaxpr.constvars, *jaxpr.invars[last:]]
    closed = core.ClosedJaxpr(
        jaxpr.replace(
            constvars=constvars,
            invars=jaxpr.invars[first:last],
            debug_info=jaxpr.debug_info.with_unknown_names(),
        ),
        [*folded, *consts, *computed],
    )
    return PublicPart(None, (), _like(traced, closed, closed.consts), (*folded, *consts))


def _like(traced: TracedFunction, closed: Any, consts: Sequence[Any]) -> TracedFunction:
    made = copy.copy(traced)
    made.jaxpr, made.consts = closed, tuple(consts)
    made.operands = len(closed.jaxpr.invars)
    return made


def _is_splat(array: np.ndarray[Any, Any]) -> bool:
    """Return whether all elements are the same bits."""
    if math.prod(array.shape) == 0:
        return False
    first = array.flat[0].tobytes()
    return bool(array.tobytes() == first * array.size)
