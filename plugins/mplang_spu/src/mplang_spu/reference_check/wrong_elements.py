"""Wrong elements of inner values, and whether they reach a result. Imports JAX when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from mplang_spu.reference_check.flat_function import FlatFunction

Array: TypeAlias = np.ndarray[Any, Any]

MAX_ELEMENTS = 4_000_000  # of all inner values of a function that is tried: a tenth of a second
PRODUCTS = ("convolution", "divide", "dot_general", "multiply", "power")


class Wrong(NamedTuple):
    """Wrong elements of an op.

    Attributes:
        text: the problem and the remedy.
        number: of the value.
        lost: its wrong elements.
    """

    text: str
    number: int
    lost: Array


def reaches(function: FlatFunction, values: Sequence[Array], wrong: Wrong) -> bool:
    """Return whether wrong elements reach a result: ``jnp.where`` may leave them out.

    With others in their place, NaN if they are numbers, the results are others.

    Args:
        function: the function.
        values: its operands, and all inner values.
        wrong: the elements.
    """
    from mplang_spu.reference_check import reference

    if wrong.number in function.outputs:
        return True
    value = values[wrong.number]
    instead = np.where(np.isnan(value), 0.7, np.nan) if value.dtype.kind == "f" else value ^ 1
    other = np.where(wrong.lost, instead, value)
    outs = sorted({number for number in function.outputs if number >= function.inputs})
    variant = function.with_outputs(outs, [wrong.number], 64)
    after = reference.run(variant, [*values[: function.inputs], other])
    pairs = [(array, values[number]) for number, array in zip(outs, after, strict=True)]
    return not all(map(_are_equal, *zip(*pairs, strict=True)))


def _are_equal(one: Array, other: Array) -> bool:
    """Return whether arrays are equal up to the rounding of differently compiled code."""
    if one.dtype.kind != "f":
        return np.array_equal(one, other)
    return np.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True)
