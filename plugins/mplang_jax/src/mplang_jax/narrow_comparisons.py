"""Comparisons of float32 with constants of 64 bits that no float32 is. Imports JAX.

JAX narrows such a constant without a word, NumPy and mplang widen the data: 1.1 of float32 is not
1.1, and equals no element of ``jnp.array([1.1, 2.0])``. That is told.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from jax._src import source_info_util
from jax.extend.core import Literal

from mplang_core.ext import Location, caller

_COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge", "lt_to", "le_to"}
_COPIES = {
    "broadcast_in_dim",
    "concatenate",
    "copy",
    "dynamic_slice",
    "expand_dims",
    "gather",
    "reshape",
    "rev",
    "select_n",
    "slice",
    "sort",
    "squeeze",
    "transpose",
}
_HERE = os.path.dirname(__file__)
_NARROW = "narrow"  # data of float32, in float64

Known = dict[Any, Any]
"""By variable: a number of a constant that no float32 is, or ``_NARROW``."""

Warned = tuple[str, int, str]
"""File, line and text of a warning."""


def narrow_comparisons(jaxpr: Any, consts: Sequence[Any]) -> tuple[Warned, ...]:
    """Return what to warn of for each such comparison.

    Args:
        jaxpr: of a function, with 64-bit types.
        consts: the arrays that it captures.

    Returns:
        File, line and text per comparison.
    """
    known = {var: _unfit(const) for var, const in zip(jaxpr.constvars, consts, strict=True)}
    warned = []
    for eqn, number in _found(jaxpr, known):
        line = _line_of(eqn) or caller() or Location("<mplang>", 1)
        text = (
            f"{eqn.primitive.name} compares float32 with a constant of 64 bits: {number!r} is not "
            f"an float32, the nearest is {float(np.float32(number))!r}, so the two are never "
            "equal. Write jnp.float32(...) around the constant, or begin with data of float64"
        )
        warned.append((line.file, line.line, text))
    return tuple(warned)


def _found(jaxpr: Any, known: Known) -> Iterator[tuple[Any, float]]:
    """Yield the comparisons of a jaxpr and the number in each."""

    def of(var: Any) -> Any:
        return _unfit(var.val) if isinstance(var, Literal) else known.get(var)

    for eqn in jaxpr.eqns:
        name, given = eqn.primitive.name, [of(var) for var in eqn.invars]
        numbers = [each for each in given if isinstance(each, float)]
        if name in _COMPARISONS and _NARROW in given and numbers:
            yield eqn, numbers[0]
        elif name == "convert_element_type":
            known[eqn.outvars[0]] = _converted(eqn, given[0])
        elif name in _COPIES:
            known.update(dict.fromkeys(eqn.outvars, next(filter(None, given), None)))
        for inner in _inner(eqn):
            body = getattr(inner, "jaxpr", inner)
            count = len(body.invars)
            inside = dict(zip(body.invars, given[-count:], strict=True)) if count else {}
            yield from _found(body, inside)
            if len(body.outvars) == len(eqn.outvars):
                pairs = zip(eqn.outvars, body.outvars, strict=True)
                known.update({out: inside.get(var) for out, var in pairs if not _is_literal(var)})


def _inner(eqn: Any) -> list[Any]:
    """Return the functions in an equation that take its last operands; conditions take others."""
    found = []
    for name, value in eqn.params.items():
        several = value if isinstance(value, tuple | list) else (value,)
        if name != "cond_jaxpr":
            found += [each for each in several if hasattr(each, "eqns") or hasattr(each, "jaxpr")]
    fits: Callable[[Any], bool] = lambda each: (  # noqa: E731
        len(getattr(each, "jaxpr", each).invars) <= len(eqn.invars)
    )
    return list(filter(fits, found))


def _converted(eqn: Any, given: Any) -> Any:
    """Return what is known of numbers of another type."""
    source, target = eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype
    if target != np.float64:
        return None
    is_constant = _is_literal(eqn.invars[0]) or isinstance(given, float)
    return _NARROW if source == np.float32 and not is_constant else given


def _is_literal(var: Any) -> bool:
    return isinstance(var, Literal)


def _unfit(value: Any) -> float | None:
    """Return a number of a float64 constant that no float32 is."""
    array = np.asarray(value)
    if array.dtype != np.float64:
        return None
    with np.errstate(over="ignore"):
        differs = (array.astype(np.float32) != array) & np.isfinite(array)
    return float(array[differs].flat[0]) if differs.any() else None


def _line_of(eqn: Any) -> Location | None:
    """Return the innermost line that is neither of JAX nor of this package."""
    for frame in source_info_util.user_frames(eqn.source_info.traceback):
        if not frame.file_name.startswith(_HERE):
            return Location(frame.file_name, frame.start_line)
    return None
