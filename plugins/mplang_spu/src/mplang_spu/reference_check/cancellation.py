"""Results that are nothing but rounding, such as the sum of what was centred before."""

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
    """Leave out results that have no digit in float32 either, where SPU's is as small as can be.

    Terms that cancel each other leave their rounding errors. NumPy's are smaller than SPU's, and
    none of them means anything. What counts then is the size of the terms.

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
        dict(
            zip(
                shown, reference.run(function.with_outputs(shown, (), width), operands), strict=True
            )
        )
        for width in (64, 32)
    )
    wide |= dict(enumerate(operands))
    makers = {n: op for op in function.ops for n in op.results}
    left = dict(wrong)
    for n in floats:
        if n in makers and _cancels(wide[n], narrow[n]):
            terms = [wide[i] for i in makers[n].operands if wide[i].dtype.kind == "f"]
            scale = max((float(np.abs(each).max(initial=0)) for each in terms), default=0.0)
            if abs(wrong[n].found - wrong[n].exact) <= RELATIVE * scale:
                del left[n]
    return left


def _cancels(wide: Array, narrow: Array) -> bool:
    largest = float(np.abs(wide).max(initial=0))
    return bool(np.isfinite(largest) and np.any(np.abs(narrow - wide) > RELATIVE * largest))
