"""Precision losses of SPU that literals and declared ranges tell before a run.

A range may be reached or not, and an interval is wider than need be. So what an interval makes
suspect is tried: the function runs in float64 on numbers within the ranges, and what is told has
happened there. On workers, which cannot compare, it is tried on the data that the host has put, and
on usual numbers where nothing is declared. Imports neither libspu nor JAX before something is
suspect.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from mplang_analysis import DATA, TRIALS, USUAL_DATA, Interval, Sampled, kinds_of, sample_within

from mplang_core import TensorType
from mplang_core.ext import Diagnostic, Location, Operation
from mplang_spu import public_part
from mplang_spu.field import LARGEST_POWER
from mplang_spu.ranges import is_admitted, ranges_of_run, with_public_part
from mplang_spu.reference_check.wrong_elements import MAX_ELEMENTS, PRODUCTS, Wrong, reaches
from mplang_spu.share_type import ShareType, plain_of
from mplang_spu.target import Target

if TYPE_CHECKING:
    from mplang_spu.reference_check.flat_function import FlatFunction, Op, Variant

Array: TypeAlias = np.ndarray[Any, Any]

MAX_LINES = 8  # of one function, of which it is told


def losses_of_shares(op: Operation, ins: Sequence[Interval]) -> list[Diagnostic]:
    """Return whether the numbers that are shared fit.

    Args:
        op: an ``spu.make_shares``.
        ins: the interval of the tensor.
    """
    share: ShareType = op.attrs["share"]
    return list(_of_given(share.plain, ins[0], Target(share.protocol, share.field, share.fxp)))


def losses_of_run(op: Operation, ins: Sequence[Interval]) -> list[Diagnostic]:
    """Return what a function does not hold.

    Args:
        op: an ``spu.run_jax``.
        ins: the interval of each operand.
    """
    target = Target.of(op.attrs["config"])
    found: list[Diagnostic] = []
    for value, interval in zip(op.inputs, ins, strict=True):
        if isinstance(value.type, TensorType):  # a share was told of where it was made
            found += _of_given(value.type, interval, target)
    if not found and all(x.known for x in ins):
        found += _of_trial_or_failure(op, ins, target)
    return found


def _of_given(kind: TensorType, x: Interval, target: Target) -> Iterator[Diagnostic]:
    if not x.known or not kind.dtype.value.startswith("f"):
        return
    how = f"{target.field} with {target.fxp} fraction bits"
    if x.largest >= target.limit:
        why = f"{how} holds numbers below {target.limit:.1e}; scale the data down"
        yield Diagnostic(f"numbers up to {x.largest:g} do not fit SPU: {why}")
    elif 0 < x.largest < target.step:
        why = f"the smallest step of {how} is {target.step:.1e}; scale the data up"
        yield Diagnostic(f"numbers up to {x.largest:g} vanish on SPU: {why}")


def _is_suspect(op: Operation, ins: Sequence[Interval], target: Target) -> bool:
    held = [
        _steps_around(x, target.step) if kind.dtype.value.startswith("f") else x
        for kind, x in zip(_kinds(op), ins, strict=True)
    ]
    found = ranges_of_run(op, held)
    return bool(found.steps) or any(status != "fits" for status in found.statuses)


def _of_trial_or_failure(
    op: Operation, ins: Sequence[Interval], target: Target
) -> list[Diagnostic]:
    try:
        ins = with_public_part(op, ins)
        if not all(x.known for x in ins) or not _is_suspect(op, ins, target):
            return []
        return _of_trial(op, ins, target)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:300]}"
        return [Diagnostic(f"SPU's numbers could not be tried before the run: {reason}")]


def _of_trial(op: Operation, ins: Sequence[Interval], target: Target) -> list[Diagnostic]:
    """Run the function on numbers within the ranges; return what goes wrong, once per line."""
    from mplang_spu.reference_check import reference
    from mplang_spu.reference_check.flat_function import flat_function, source_lines

    code = op.attrs["program"]["code"]
    if not is_admitted(code):  # XLA would believe it
        return []
    function = flat_function(code)
    if sum(kind.size for kind in function.kinds) > MAX_ELEMENTS:
        return []
    samples = [
        x if isinstance(x, Sampled) else sample_within(kind, x)
        for kind, x in zip(_kinds(op), ins, strict=True)
    ]
    within = f"for {' and '.join(kinds_of(samples))}"
    found: dict[Location | None, Diagnostic] = {}
    for trial in range(_trials(samples)):
        operands = [_in_steps(x.draw(trial), target) for x in samples]
        values = [*operands, *reference.run(_inner_values(function), operands)]
        for i, text in _losses(function, values, target, within):
            line = source_lines(code, op.location)[i]
            if len(found) < MAX_LINES:
                found.setdefault(line, Diagnostic(text, line))
    return list(found.values())


def _kinds(op: Operation) -> Sequence[TensorType]:
    """Return the types of what libspu takes in plain: of the operands and of public results."""
    types = [value.type for value in op.inputs]
    public = public_part.results_of(op.attrs.get("public"), types)
    return [*(cast(TensorType, plain_of(kind)) for kind in types), *public]


def _steps_around(x: Interval, step: float) -> Interval:
    """Return an interval with ends that SPU holds: 0 for one below the smallest step."""
    return Interval(math.floor(x.low / step) * step, math.ceil(x.high / step) * step)


def _in_steps(numbers: Array, target: Target) -> Array:
    """Return numbers as SPU holds them: one below the smallest step is 0."""
    if numbers.dtype.kind != "f":
        return numbers
    rounded: Array = np.rint(numbers.astype(np.float64) / target.step) * target.step
    return rounded


@functools.lru_cache(maxsize=64)
def _inner_values(function: FlatFunction) -> Variant:
    """Return the function in float64, with all its values as results."""
    return function.with_outputs(range(function.inputs, len(function.kinds)), (), 64)


def _trials(samples: Sequence[Sampled]) -> int:
    """Return how often a function is tried: data that the host has are always the same."""
    return 1 if all(x.what == (DATA,) for x in samples) else TRIALS


def _losses(
    function: FlatFunction, values: Sequence[Array], target: Target, within: str
) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each op that goes wrong, and not as an earlier one did."""
    from mplang_spu.reference_check.flat_function import sums_of

    sums = {number for number in sums_of(function) if number is not None}
    lost: set[int] = set()
    first: tuple[int, str] | None = None
    for i, op in enumerate(function.ops):
        if not lost.isdisjoint(op.operands):
            lost.update(op.results)
            continue
        wrong = _sum_wraps(function, i, values, within) if i in sums else None
        if all(_is_finite(values[number]) for number in op.operands):  # else an earlier op was
            for number in op.results:
                wrong = wrong or _undefined(op, number, values[number], within)
                wrong = wrong or _overflows(op, number, values[number], target, within)
        if op.label == "constant" or wrong is None:
            continue
        if reaches(function, values, wrong):
            lost.update(op.results)
            yield i, wrong.text
        elif first is None and not _is_finite(values[wrong.number]):
            first = i, wrong.text
    if first and not lost and not all(_is_finite(values[number]) for number in function.outputs):
        yield first  # several ops make the result one that SPU lacks


def _is_finite(value: Array) -> bool:
    return bool(np.isfinite(value).all())


def _undefined(op: Op, number: int, value: Array, within: str) -> Wrong | None:
    lost = ~np.isfinite(value)
    if not lost.any():
        return None
    what = "NaN" if np.isnan(value[lost][0]) else "infinity"
    text = (
        f"SPU's {op.label} gives {what} in float64 {within}, and SPU has neither NaN nor "
        "infinity: its number is arbitrary then. Choose operands that give none, by jnp.where "
        "or jnp.clip, or declare a range of the data that leaves it out, mp.seal(x, range=…)"
    )
    return Wrong(text, number, lost)


def _overflows(op: Op, number: int, value: Array, target: Target, within: str) -> Wrong | None:
    if value.dtype.kind != "f" or not value.size or USUAL_DATA in within:
        return None  # usual data may be smaller or larger, so their sizes tell nothing
    limit = _limit(op.name, target)
    lost = np.abs(value) >= limit
    if not lost.any():
        return None
    how = "Scale" if target.field == "FM128" else "Take more bits (field: FM128), or scale"
    text = (
        f"SPU's {op.label} reaches {np.abs(value).max():.3g} {within}; there {target.field} with "
        f"{target.fxp} fraction bits holds less than {limit:.1e}, so a result may be wrong. {how} "
        "the data; mp.analysis.ranges tells all such steps"
    )
    return Wrong(text, number, lost)


def _limit(name: str, target: Target) -> float:
    if name in PRODUCTS:
        return target.factors
    if name.startswith("exponential"):
        return max(LARGEST_POWER, target.factors)
    return target.limit


def _sum_wraps(
    function: FlatFunction, i: int, values: Sequence[Array], within: str
) -> Wrong | None:
    op = function.ops[i]
    if op.label != "sum" or not op.dimensions or op.arity != 2:
        return None
    kind = function.kinds[op.results[0]]
    sums = values[op.operands[0]].astype(np.int64).sum(axis=op.dimensions)
    limits = np.iinfo(kind.dtype.numpy)
    lost = (sums < limits.min) | (sums > limits.max)
    if not lost.any():
        return None
    text = (
        f"sum reaches {int(sums[lost].flat[0])} {within}, which {kind.dtype.value} does not hold, "
        "so it may wrap; NumPy adds in 64 bits, JAX in those of its operands. Convert them first, "
        "x.astype('int64')"
    )
    return Wrong(text, op.results[0], np.asarray(lost))
