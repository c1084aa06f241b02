"""Results that are nothing but rounding, such as the sum of what was centred before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mplang_spu.beside import exact
from mplang_spu.beside.exact import Array
from mplang_spu.beside.flat import Flat
from mplang_spu.beside.tolerance import RELATIVE, Difference

__all__ = ["significant"]

FEWER_BITS = 2.0**-29
"""The rounding error of float64, as a part of that of float32."""


def significant(
    function: Flat, operands: Sequence[Array], wrong: dict[int, Difference]
) -> dict[int, Difference]:
    """Leave out results that have no digit in their own type either, if SPU's is as small.

    Terms that cancel each other leave their rounding errors. NumPy's are smaller than SPU's, and
    none of them means anything. What counts then is the size of the terms. Of a float64 result
    the error in NumPy is that in float32, less the bits that it has more.

    Args:
        function: what SPU ran.
        operands: the operands in plain.
        wrong: the results that are wrong, by the number of the value.
    """
    floats = [n for n in wrong if function.kinds[n].dtype.numpy.kind == "f"]
    if not floats:
        return wrong
    shown = list(range(function.inputs, len(function.kinds)))
    wide, narrow = (
        dict(zip(shown, exact.run(function.exposed(shown, (), width), operands), strict=True))
        for width in (64, 32)
    )
    wide |= dict(enumerate(operands))
    makers = {n: op for op in function.ops for n in op.results}
    left = dict(wrong)
    for n in floats:
        more = FEWER_BITS if function.kinds[n].dtype.is_64bit else 1.0
        if n in makers and _cancels(wide[n], narrow[n], more):
            terms = [wide[i] for i in makers[n].operands if wide[i].dtype.kind == "f"]
            scale = max((float(np.abs(each).max(initial=0)) for each in terms), default=0.0)
            if abs(wrong[n].found - wrong[n].exact) <= RELATIVE * scale:
                del left[n]
    return left


def _cancels(wide: Array, narrow: Array, scale: float) -> bool:
    largest = float(np.abs(wide).max(initial=0))
    with np.errstate(invalid="ignore"):
        error = np.abs(narrow - wide) * scale
    if scale != 1:
        error = error[np.isfinite(error)]  # what float32 does not hold, float64 may
    return bool(np.isfinite(largest) and np.any(error > RELATIVE * largest))
