"""Products that SPU gets wrong in some runs: right results do not show them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mplang_spu.reference_check import reference
from mplang_spu.reference_check.flat_function import FlatFunction
from mplang_spu.reference_check.reference import Array
from mplang_spu.reference_check.wrong_elements import MAX_ELEMENTS, PRODUCTS, Wrong, reaches
from mplang_spu.target import Target

MARGIN = 32.0
"""How much smaller than a factor of the largest product operands and results have to be."""


def beyond_products(
    function: FlatFunction, operands: Sequence[Array], results: Sequence[Array], target: Target
) -> tuple[int, float] | None:
    """Return a product that is larger than the field holds and reaches a result, and its size.

    Each such product is wrong with a probability of some percent. Inner values are computed in
    float64 if numbers of that size are about.

    Args:
        function: the function.
        operands: in plain.
        results: in float64.
        target: protocol, field and fixed point.

    Returns:
        The number of the op, and the largest number of its result; ``None`` if all products fit.
    """
    about = max(map(_largest, (*operands, *results)), default=0.0)
    if about < target.factors**0.5 / MARGIN:
        return None
    if sum(kind.size for kind in function.kinds) > MAX_ELEMENTS:
        return None
    inner = range(function.inputs, len(function.kinds))
    values = [*operands, *reference.run(function.with_outputs(inner, (), 64), operands)]
    for i, op in enumerate(function.ops):
        if op.name not in PRODUCTS:
            continue
        for number in op.results:
            value = values[number]
            if value.dtype.kind == "f" and np.isfinite(value).all():
                lost = np.abs(value) >= target.factors
                if lost.any() and reaches(function, values, Wrong("", number, lost)):
                    return i, _largest(value)
    return None


def _largest(value: Array) -> float:
    if value.dtype.kind != "f" or not value.size:
        return 0.0
    found = float(np.abs(value).max())
    return found if np.isfinite(found) else 0.0
