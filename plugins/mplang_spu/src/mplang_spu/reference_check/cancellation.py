"""Cancellation: results that are rounding error only, such as a sum of centered numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mplang_spu.reference_check import reference
from mplang_spu.reference_check.flat_function import FlatFunction
from mplang_spu.reference_check.reference import Array
from mplang_spu.reference_check.tolerance import RELATIVE, Difference

FLOAT64_ERROR = 2.0**-29
"""Rounding error of float64, as a fraction of that of float32."""


def discard_cancellation(
    function: FlatFunction, operands: Sequence[Array], wrong: dict[int, Difference]
) -> dict[int, Difference]:
    """Discard results without significant digits in their type, if SPU's error is the terms'.

    Terms that cancel leave their rounding errors. Those of NumPy are smaller than SPU's, but
    neither is significant. The tolerance is then relative to the size of the terms. The error of
    float64 is estimated from that of float32.

    Args:
        function: what SPU ran.
        operands: the operands in plain.
        wrong: the difference of each wrong result, by value number.

    Returns:
        The differences that remain wrong.
    """
    floats = [n for n in wrong if function.kinds[n].dtype.numpy.kind == "f"]
    if not floats:
        return wrong
    shown = list(range(function.inputs, len(function.kinds)))
    wide, narrow = (
        dict(
            zip(
                shown, reference.run(function.with_outputs(shown, (), width), operands), strict=True
            )
        )
        for width in (64, 32)
    )
    wide |= dict(enumerate(operands))
    producers = {n: op for op in function.ops for n in op.results}
    left = dict(wrong)
    for n in floats:
        precision = FLOAT64_ERROR if function.kinds[n].dtype.is_64bit else 1.0
        if n in producers and _cancels(wide[n], narrow[n], precision):
            terms = [wide[i] for i in producers[n].operands if wide[i].dtype.kind == "f"]
            scale = max((float(np.abs(each).max(initial=0)) for each in terms), default=0.0)
            if abs(wrong[n].found - wrong[n].exact) <= RELATIVE * scale:
                del left[n]
    return left


def _cancels(wide: Array, narrow: Array, scale: float) -> bool:
    largest = float(np.abs(wide).max(initial=0))
    with np.errstate(invalid="ignore"):
        error = np.abs(narrow - wide) * scale
    if scale != 1:
        error = error[np.isfinite(error)]  # float64 may hold what float32 does not
    return bool(np.isfinite(largest) and np.any(error > RELATIVE * largest))
