"""Roundings: what float64 gives where data and ops are rounded in other ways.

Two numbers that one way of rounding tells apart, and another one does not, are as good as equal.
Numbers that stay apart are not, however few steps of SPU that is: its field is too coarse for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from mplang_core import TensorType
from mplang_spu.reference_check.flat_function import FlatFunction
from mplang_spu.reference_check.reference import Array
from mplang_spu.reference_check.run import Run
from mplang_spu.reference_check.tolerance import STEPS

Values: TypeAlias = Mapping[int, Array]

TRIES = 4  # of operands that are off as a whole, and as many of elements that are off each
WHOLE = 2.5e-7  # relative distance to an integer after two roundings to float32
TIE = 1e-12  # relative distance of numbers that are equal up to rounding in float64
NEAR = 8  # steps; numbers this close count as equal on SPU
SLACK = 16  # steps per unit; numbers this close to a constant count as equal to it on SPU


class Rounding(NamedTuple):
    """Values of a function in float64, rounded in one way.

    Attributes:
        used: all values as ops use them, by number; of decisions, SPU's.
        made: what ops make of these, by number.
    """

    used: Values
    made: Values


def precision_of(kind: TensorType) -> float:
    """Return the relative distance up to which numbers of a type are equal up to rounding."""
    dtype = kind.dtype.numpy
    return {2: 2.0**-9, 4: WHOLE, 8: TIE}[dtype.itemsize] if dtype.kind == "f" else 0.0


def roundings(run: Run, decided: Values, exact: Values) -> list[Rounding]:
    """Run a function in float64 in several ways of rounding, along SPU's decisions.

    Only values that decisions use or give are kept.

    Args:
        run: what SPU ran.
        decided: what SPU decided, by ascending number.
        exact: what float64 decides, by number.

    Returns:
        The values in each way.
    """
    function, shown = run.function, _shown(run.function, decided)
    operands = dict(enumerate(run.operands))
    sizes = _errors_of_operands(run) | _errors_of_decisions(run, decided, exact)
    ways: list[Rounding] = []
    for offset in _offsets(operands | dict(decided), sizes):
        data = {n: x + offset.get(n, 0) for n, x in operands.items()}
        taken = {n: x + offset[n] if n in offset else x for n, x in decided.items()}
        wide, narrow = (run.in_floats(shown, taken, data, width) for width in (64, 32))
        made = {n: _rounded(wide[n], narrow[n], function.kinds[n]) for n in shown}
        ways.append(Rounding(data | made | taken, made))
    return ways


def _shown(function: FlatFunction, decided: Values) -> list[int]:
    """Return the numbers of the inner values that decisions use or give."""
    deciding = [op for op in function.ops if not decided.keys().isdisjoint(op.results)]
    used = {n for op in deciding for n in (*op.operands, *op.results)}
    return sorted(n for n in used if n >= function.inputs)


def _errors_of_operands(run: Run) -> dict[int, Array]:
    """Return how far each float operand may be off what it stands for.

    Shares of data are rounded to a step, but not a number of few digits: it is as it was. The
    results of an earlier run are some steps off.
    """
    config, step, errors = run.setting.config, run.setting.step, dict[int, Array]()
    for number, value in enumerate(run.operands):
        dtype = run.function.kinds[number].dtype.numpy
        if dtype.kind != "f":
            continue
        size = np.abs(value.astype(np.float64))
        error = size * float(np.finfo(dtype).eps) / 2
        if number in run.setting.computed:
            error = STEPS * step + size * max(WHOLE, SLACK * step)
        elif run.setting.secret[number]:
            has_few = size * 2.0 ** (config["fxp_fraction_bits"] // 2) % 1 == 0
            error = np.where(has_few, 0.0, np.maximum(error, step))
        errors[number] = error
    return errors


def _errors_of_decisions(run: Run, decided: Values, exact: Values) -> dict[int, Array]:
    """Return how far the floats that decisions give are off those of float64.

    What SPU has decided otherwise is further off than it takes numbers for equal.
    """
    step, errors = run.setting.step, dict[int, Array]()
    for number, value in decided.items():
        if value.dtype.kind == "f":
            size = np.abs(value)
            most = NEAR * step + size * max(WHOLE, SLACK * step)
            with np.errstate(invalid="ignore"):
                errors[number] = np.fmin(np.abs(value - exact[number]), most)
    return errors


def _offsets(values: Values, sizes: Values) -> Iterator[dict[int, Array]]:
    """Yield offsets: of all elements of an operand away from 0 or towards it, then at random."""
    rng = np.random.default_rng(0)
    for i in range(2 * TRIES):
        offset = dict[int, Array]()
        for number, size in sizes.items():
            if i < TRIES:
                one = (1, -1)[i] if i < 2 else rng.choice([-1, 1])
                offset[number] = np.where(values[number] < 0, -one, one) * size
            else:
                offset[number] = rng.choice([-1.0, 1.0], size.shape) * size
        yield offset


def _rounded(wide: Array, narrow: Array, kind: TensorType) -> Array:
    """Return float64's result with the error of ops in the type of the result."""
    if wide.dtype.kind != "f":
        return wide
    dtype = kind.dtype.numpy
    scale = float(np.finfo(dtype).eps) / float(np.finfo(np.float32).eps)
    with np.errstate(invalid="ignore", over="ignore"):
        error = (narrow.astype(np.float64) - wide) * scale
    return wide + np.where(np.isfinite(error), error, 0.0)
