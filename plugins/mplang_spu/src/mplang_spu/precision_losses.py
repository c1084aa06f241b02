"""Precision losses of SPU that literals and declared ranges tell before a run.

A range may be reached or not, and an interval is wider than need be. So what an interval makes
suspect is tried: the function runs in float64 on numbers within the ranges, and what is told has
happened there. Imports neither libspu nor JAX before something is suspect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np
from mplang_analysis import Interval, PrecisionLoss

from mplang_core import TensorType
from mplang_core.ext import Location, Operation
from mplang_spu.field import LARGEST_POWER
from mplang_spu.ranges import is_admitted, ranges_of_run
from mplang_spu.share_type import ShareType
from mplang_spu.target import Target

if TYPE_CHECKING:
    from mplang_spu.reference_check.flat_function import FlatFunction, Op

Array: TypeAlias = np.ndarray[Any, Any]

MAX_ELEMENTS = 4_000_000  # of all inner values of a function that is tried: a tenth of a second
WITHIN = "for numbers within the literal and declared ranges"
PRODUCTS = ("convolution", "divide", "dot_general", "multiply", "power")


class Wrong(NamedTuple):
    """What goes wrong in an op.

    Attributes:
        text: the problem and the remedy.
        number: of the value.
        lost: its wrong elements.
    """

    text: str
    number: int
    lost: Array


def losses_of_shares(op: Operation, ins: Sequence[Interval]) -> list[PrecisionLoss]:
    """Return whether the numbers that are shared fit.

    Args:
        op: an ``spu.make_shares``.
        ins: the interval of the tensor.
    """
    share: ShareType = op.attrs["share"]
    return list(_of_given(share.plain, ins[0], Target(share.protocol, share.field, share.fxp)))


def losses_of_run(op: Operation, ins: Sequence[Interval]) -> list[PrecisionLoss]:
    """Return what a function does not hold.

    Args:
        op: an ``spu.run_jax``.
        ins: the interval of each operand.
    """
    target = Target.of(op.attrs["config"])
    found: list[PrecisionLoss] = []
    for value, interval in zip(op.inputs, ins, strict=True):
        if isinstance(value.type, TensorType):  # a share was told of where it was made
            found += _of_given(value.type, interval, target)
    if op.attrs.get("public") is not None:  # its results are operands, and not known
        return found
    if not found and all(x.known for x in ins) and _is_suspect(op, ins):
        found += _of_trial(op, ins, target)
    return found


def _of_given(kind: TensorType, x: Interval, target: Target) -> Iterator[PrecisionLoss]:
    if not x.known or not kind.dtype.value.startswith("f"):
        return
    how = f"{target.field} with {target.fxp} fraction bits"
    if x.largest >= target.limit:
        why = f"{how} holds numbers below {target.limit:.1e}; scale the data down"
        yield PrecisionLoss(f"numbers up to {x.largest:g} do not fit SPU: {why}")
    elif 0 < x.largest < target.step:
        why = f"the smallest step of {how} is {target.step:.1e}; scale the data up"
        yield PrecisionLoss(f"numbers up to {x.largest:g} vanish on SPU: {why}")


def _is_suspect(op: Operation, ins: Sequence[Interval]) -> bool:
    found = ranges_of_run(op, ins)
    return bool(found.steps) or any(status != "fits" for status in found.statuses)


def _of_trial(op: Operation, ins: Sequence[Interval], target: Target) -> list[PrecisionLoss]:
    """Run the function on numbers within the ranges; return the first thing that goes wrong."""
    from mplang_spu.reference_check import reference
    from mplang_spu.reference_check.flat_function import flat_function, source_lines

    code = op.attrs["program"]["code"]
    if not is_admitted(code):  # XLA would believe it
        return []
    function = flat_function(code)
    if sum(kind.size for kind in function.kinds) > MAX_ELEMENTS:
        return []
    inner = range(function.inputs, len(function.kinds))
    variant = function.with_outputs(inner, (), 64)
    kinds = [cast(TensorType, _plain(value.type)) for value in op.inputs]
    for operands in _trials(kinds, ins):
        values = [*operands, *reference.run(variant, operands)]
        for i, wrong in enumerate(_wrong(function, values, target)):
            if wrong and reaches(function, values, wrong):
                line: Location | None = source_lines(code, op.location)[i]
                return [PrecisionLoss(wrong.text, line)]
    return []


def _plain(kind: Any) -> Any:
    return kind.plain if isinstance(kind, ShareType) else kind


def _trials(kinds: Sequence[TensorType], ins: Sequence[Interval]) -> Iterator[list[Array]]:
    """Yield operands: ends by turns, evenly between them, and all largest but one.

    None of them is constant: a program that standardizes its data need not expect that.
    """
    for weights in (_by_turns, _evenly, _largest):
        yield [_numbers(kind, x, weights(kind.size)) for kind, x in zip(kinds, ins, strict=True)]


def _by_turns(size: int) -> Array:
    turns: Array = (np.arange(size) + 1) % 2
    return turns


def _evenly(size: int) -> Array:
    return np.linspace(0.0, 1.0, size)


def _largest(size: int) -> Array:
    return np.where(np.arange(size) == 1, 0.0, 1.0)


def _numbers(kind: TensorType, x: Interval, weights: Array) -> Array:
    """Return numbers of an interval: the smallest for the weight 0, the largest for 1."""
    made = (float(x.low) * (1 - weights) + float(x.high) * weights).reshape(kind.shape)
    return made.astype(np.float64 if kind.dtype.numpy.kind == "f" else kind.dtype.numpy)


def _wrong(
    function: FlatFunction, values: Sequence[Array], target: Target
) -> Iterator[Wrong | None]:
    """Yield per op what goes wrong in it; ``None`` if nothing does."""
    from mplang_spu.reference_check.flat_function import sums_of

    sums = {number for number in sums_of(function) if number is not None}
    for i, op in enumerate(function.ops):
        if op.label == "constant":
            yield None
            continue
        found = _sum_wraps(function, i, values) if i in sums else None
        if all(_is_finite(values[number]) for number in op.operands):  # else an earlier op was
            for number in op.results:
                found = found or _overflows(op, number, values[number], target)
        yield found


def _is_finite(value: Array) -> bool:
    return bool(np.isfinite(value).all())


def _overflows(op: Op, number: int, value: Array, target: Target) -> Wrong | None:
    if value.dtype.kind != "f" or not value.size:
        return None
    lost = ~np.isfinite(value)
    if lost.any():
        what = "NaN" if np.isnan(value[lost][0]) else "infinity"
        text = (
            f"SPU's {op.label} gives {what} in float64 {WITHIN}, and SPU has neither NaN nor "
            "infinity; choose operands that give none, by jnp.where, or a narrower range"
        )
        return Wrong(text, number, lost)
    limit = _limit(op.name, target)
    lost = np.abs(value) >= limit
    if not lost.any():
        return None
    how = "Scale" if target.field == "FM128" else "Take more bits (field: FM128), or scale"
    text = (
        f"SPU's {op.label} reaches {np.abs(value).max():.3g} {WITHIN}; there {target.field} with "
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


def _sum_wraps(function: FlatFunction, i: int, values: Sequence[Array]) -> Wrong | None:
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
        f"sum reaches {int(sums[lost].flat[0])} {WITHIN}, which {kind.dtype.value} does not hold, "
        "so it may wrap; NumPy adds in 64 bits, JAX in those of its operands. Convert them first, "
        "x.astype('int64')"
    )
    return Wrong(text, op.results[0], np.asarray(lost))


def reaches(function: FlatFunction, values: Sequence[Array], wrong: Wrong) -> bool:
    """Return whether wrong elements reach a result: ``jnp.where`` may leave them out.

    With NaN, or another integer, in their place, the results are others.

    Args:
        function: the function.
        values: its operands, and all inner values.
        wrong: the elements.
    """
    from mplang_spu.reference_check import reference

    if wrong.number in function.outputs:
        return True
    value = values[wrong.number]
    other = np.where(wrong.lost, np.nan if value.dtype.kind == "f" else value ^ 1, value)
    outs = sorted({number for number in function.outputs if number >= function.inputs})
    variant = function.with_outputs(outs, [wrong.number], 64)
    after = reference.run(variant, [*values[: function.inputs], other])
    pairs = [(array, values[number]) for number, array in zip(outs, after, strict=True)]
    return not all(np.array_equal(one, before) for one, before in pairs)
