"""Need for 64-bit types: values of 64 bits, and numbers changed by narrowing. Imports JAX."""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import Literal

from mplang_core import BaseType, FeSignature
from mplang_core.ext import flatten, free_variables

_JAX = os.path.dirname(jax.__file__) + os.sep
_SCIPY = os.path.join(_JAX, "_src", "scipy", "")


def has_64_bits(fn: Callable[..., Any], signature: FeSignature, consts: Sequence[Any]) -> bool:
    """Return whether an array or NumPy scalar of 64 bits is an argument or captured.

    Args:
        fn: the function.
        signature: its arguments; the literals among them count.
        consts: the arrays that it captures, as JAX found them.

    Returns:
        Whether one has 64 bits and at least one element.
    """
    literals, _ = flatten((signature.args, dict(signature.kwargs)))
    given = [leaf for leaf in literals if not isinstance(leaf, BaseType)]
    inner = inspect.unwrap(fn)
    if isinstance(inner, FunctionType) and not inner.__code__.co_filename.startswith(_JAX):
        given += free_variables(inner)
    return any(_is_wide(value) and np.size(value) for value in (*given, *consts))


def _is_wide(value: Any) -> bool:
    if inspect.getattr_static(type(value), "dtype", None) is None:
        return False  # it is not asked: it may answer to any name
    dtype = getattr(value, "dtype", None)
    if not isinstance(dtype, np.dtype) or hasattr(value, "base_type"):
        return False
    return _is_wide_dtype(dtype)


def _is_wide_dtype(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iufc" and dtype.itemsize == (16 if dtype.kind == "c" else 8)


def is_same_without(jaxpr: Any) -> bool:
    """Return whether a jaxpr with 64-bit types is that without: all its values are small floats.

    Integers may have been cut from a Python number, where JAX refuses it without 64-bit types.

    Args:
        jaxpr: the jaxpr with 64-bit types.
    """
    return all(map(_is_small_float, (*jaxpr.invars, *jaxpr.constvars, *jaxpr.outvars))) and all(
        all(map(_is_small_float, (*eqn.invars, *eqn.outvars)))
        and all(is_same_without(getattr(each, "jaxpr", each)) for each in inner_jaxprs(eqn))
        for eqn in jaxpr.eqns
    )


def _is_small_float(var: Any) -> bool:
    dtype = getattr(var.aval, "dtype", None)
    if not isinstance(dtype, np.dtype):
        return False  # of keys
    return dtype.kind == "b" or (dtype.kind in "fcV" and not _is_wide_dtype(dtype))


def loses_precision(wide: Any, narrow: Any) -> bool:
    """Return whether a number in the user's code differs without 64-bit types.

    Rounding a Python float is not a loss: it takes the type of the other operand. JAX's own
    functions are excluded, since their numbers follow the type. In a function that draws random
    numbers of 64 bits only because such types are enabled, rounding any float is not a loss: JAX
    draws other numbers then. Nor is it in JAX's copy of SciPy if an operand is of bools: its
    constants have the type that bools are converted to, which is then that of most bits.

    Args:
        wide: the jaxpr with 64-bit types.
        narrow: the jaxpr without.

    Returns:
        Whether a literal differs.
    """
    before, after = list(_literals(wide)), list(_literals(narrow))
    if len(before) == len(after):
        lost = [x for x, y in zip(before, after, strict=True) if not _kept(x.literal, y.literal)]
    else:
        lost = [number for number in before if not _fits(number.literal)]
    if lost and _draws_64_bits(wide):
        return not all(map(_is_float, lost))
    if any(var.aval.dtype == bool for var in wide.invars):
        return not all(_is_float(number) and _is_in_scipy(number) for number in lost)
    return bool(lost)


def _draws_64_bits(jaxpr: Any) -> bool:
    return any(
        eqn.params["bit_width"] == 64
        if eqn.primitive.name == "random_bits"
        else any(_draws_64_bits(getattr(each, "jaxpr", each)) for each in inner_jaxprs(eqn))
        for eqn in jaxpr.eqns
    )


class _Number(NamedTuple):
    """Literal in a jaxpr, and the equation that takes it; ``None`` if it is a result."""

    literal: Any
    eqn: Any


def _is_float(number: _Number) -> bool:
    return np.asarray(number.literal.val).dtype.kind in "fc"


def _is_in_scipy(number: _Number) -> bool:
    if number.eqn is None or number.eqn.source_info.traceback is None:
        return False
    frames = number.eqn.source_info.traceback.frames
    inside = itertools.takewhile(lambda frame: frame.file_name.startswith(_JAX), frames)
    return any(frame.file_name.startswith(_SCIPY) for frame in inside)


def _kept(before: Any, after: Any) -> bool:
    x, y = np.asarray(before.val), np.asarray(after.val)
    rounds = before.aval.weak_type or x.dtype == y.dtype
    with np.errstate(all="ignore"):
        same = y == (x.astype(y.dtype) if rounds and y.dtype.kind in "fc" else x)
    return bool(same | ((x != x) & (y != y)))


def _fits(literal: Any) -> bool:
    x, weak = np.asarray(literal.val), literal.aval.weak_type
    if not _is_wide(x) or (weak and x.dtype.kind in "fc"):
        return True
    with np.errstate(all="ignore"):
        back = x.astype(np.dtype(f"{x.dtype.kind}{x.dtype.itemsize // 2}"))
    return bool((back == x) | (x != x))


def _literals(jaxpr: Any) -> Iterator[_Number]:
    """Yield the numeric literals of a jaxpr, and of its inner functions that are not JAX's own."""
    for eqn in jaxpr.eqns:
        yield from (_Number(var, eqn) for var in eqn.invars if _is_number(var))
        for inner in inner_jaxprs(eqn):
            body = getattr(inner, "jaxpr", inner)
            if not _is_of_jax(body):
                yield from _literals(body)
    yield from (_Number(var, None) for var in jaxpr.outvars if _is_number(var))


def _is_number(var: Any) -> bool:
    return isinstance(var, Literal) and isinstance(getattr(var.aval, "dtype", None), np.dtype)


def _is_of_jax(jaxpr: Any) -> bool:
    file = getattr(getattr(jaxpr, "debug_info", None), "func_filename", None)
    return file is None or file.startswith(_JAX)


def inner_jaxprs(eqn: Any) -> list[Any]:
    """Return the functions, branches and loop bodies in an equation of a jaxpr."""
    found = []
    for value in eqn.params.values():
        several = value if isinstance(value, tuple | list) else (value,)
        found += [item for item in several if hasattr(item, "eqns") or hasattr(item, "jaxpr")]
    return found
