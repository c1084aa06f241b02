"""Cancellation: results that are rounding error only, such as a sum of centered numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mplang_spu.reference_check import reference
from mplang_spu.reference_check.flat_function import FlatFunction
from mplang_spu.reference_check.reference import Array
from mplang_spu.reference_check.tolerance import RELATIVE, Difference

__all__ = ["discard_cancellation"]


def discard_cancellation(
    function: FlatFunction, operands: Sequence[Array], wrong: dict[int, Difference]
) -> dict[int, Difference]:
    """Discard results without significant digits in float32, if SPU's error is of the terms' size.

    Terms that cancel leave their rounding errors. Those of NumPy are smaller than SPU's, but
    neither is significant. The tolerance is then relative to the size of the terms.

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
        if n in producers and _cancels(wide[n], narrow[n]):
            terms = [wide[i] for i in producers[n].operands if wide[i].dtype.kind == "f"]
            scale = max((float(np.abs(each).max(initial=0)) for each in terms), default=0.0)
            if abs(wrong[n].found - wrong[n].exact) <= RELATIVE * scale:
                del left[n]
    return left


def _cancels(wide: Array, narrow: Array) -> bool:
    largest = float(np.abs(wide).max(initial=0))
    return bool(np.isfinite(largest) and np.any(np.abs(narrow - wide) > RELATIVE * largest))
