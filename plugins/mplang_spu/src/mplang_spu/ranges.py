"""Range analysis of the dialect ``spu``: intervals, and whether the field holds them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from mplang_analysis import (
    TRIALS,
    UNKNOWN,
    HasRanges,
    Interval,
    OpRanges,
    Sampled,
    StepRange,
    kinds_of,
)
from mplang_stablehlo import ComputesHere, read

from mplang_core import TensorType
from mplang_core.ext import Location, Operation, Value, interface_of
from mplang_spu import public_part
from mplang_spu.field import Field
from mplang_spu.reference_check.wrong_elements import MAX_ELEMENTS
from mplang_spu.share_type import MAX_CODE, ShareType, plain_of

if TYPE_CHECKING:
    from jaxlib.mlir import ir
    from mplang_stablehlo.ext import AnalysisResult


def ranges_of_shares(op: Operation, ins: Sequence[Interval]) -> OpRanges:
    """Return the interval of the shared tensor, and whether the field holds it.

    Args:
        op: an ``spu.make_shares``.
        ins: the interval of the tensor.

    Returns:
        Per share the tensor's interval and status.
    """
    share: ShareType = op.attrs["share"]
    count = len(op.outputs)
    field = Field(share.target)
    return OpRanges([ins[0]] * count, [field.holds(ins[0], _is_float(share.plain))] * count)


def ranges_of_reconstruct(op: Operation, ins: Sequence[Interval]) -> OpRanges:
    """Return the interval of the reconstructed tensor.

    Args:
        op: an ``spu.reconstruct``.
        ins: the interval of each share.

    Returns:
        The interval of the tensor.
    """
    return OpRanges([ins[0]])


def ranges_of_run(op: Operation, ins: Sequence[Interval]) -> OpRanges:
    """Interpret the code on intervals, in fixed point.

    Args:
        op: an ``spu.run_jax``.
        ins: the interval of each operand, also as :func:`with_public_part` returns them.

    Returns:
        Intervals and statuses of the results, and the steps that the field does not hold.
    """
    from mplang_stablehlo.ext import fixed_point, intervals

    outs = [cast("ShareType", value.type) for value in op.outputs]
    if not outs:
        return OpRanges([])
    field = Field(outs[0].target)
    try:
        module = module_of(op.attrs["program"]["code"])
    except ValueError:  # SPU refuses it
        return OpRanges([UNKNOWN] * len(outs), ["not known"] * len(outs))
    ins = with_public_part(op, ins)
    found = intervals(module, ins, fixed_point(field.target.fxp))
    statuses = [
        field.holds(x, _is_float(kind.plain)) for x, kind in zip(found.results, outs, strict=True)
    ]
    results = _samples(op, ins, found.results) or found.results
    return OpRanges(results, statuses, list(_steps(op, found, field)))


def with_public_part(op: Operation, ins: Sequence[Interval]) -> Sequence[Interval]:
    """Return the intervals of what libspu takes: of the operands and of public results.

    Public results that depend on samples are samples.

    Args:
        op: an ``spu.run_jax``.
        ins: the interval of each operand; returned as they are if the others are there.
    """
    public = op.attrs.get("public")
    if public is None or len(ins) > len(op.inputs):
        return ins
    takes = [op.inputs[i].type for i in public["takes"]]
    kinds = public_part.results_of(public, [value.type for value in op.inputs])
    outs = tuple(map(Value, kinds))
    run = Operation("jax.run", tuple(map(Value, takes)), outs, public["program"])
    rule, given = interface_of(run, HasRanges), [ins[i] for i in public["takes"]]
    found = [UNKNOWN] * len(outs) if rule is None else rule.ranges(run, given).outputs
    return [*ins, *(_public_samples(run, given, found) or found)]


def _public_samples(
    run: Operation, given: Sequence[Interval], found: Sequence[Interval]
) -> Sequence[Interval]:
    """Return the results of the public part with numbers, if its operands have some."""
    engine = interface_of(run, ComputesHere)
    samples = [x for x in given if isinstance(x, Sampled)]
    sizes = sum(cast(TensorType, value.type).size for value in run.outputs)
    if engine is None or len(samples) < len(given) or sizes > MAX_ELEMENTS:
        return ()

    @functools.cache
    def computed(trial: int) -> Sequence[np.ndarray[Any, Any]]:
        kinds = [cast(TensorType, value.type).dtype.numpy for value in run.inputs]
        drawn = [x.draw(trial).astype(kind) for x, kind in zip(samples, kinds, strict=True)]
        return engine.compute(run, drawn)

    return [
        Sampled(
            *(_ends(i, computed) if not x.known else (x.low, x.high)),
            kinds_of(samples),
            lambda trial, i=i: computed(trial)[i],  # type: ignore[misc]
        )
        for i, x in enumerate(found)
    ]


def _ends(i: int, computed: Callable[[int], Sequence[np.ndarray[Any, Any]]]) -> tuple[float, float]:
    """Return the least and the largest number of a result: those of random bits have no rule."""
    arrays = [computed(trial)[i] for trial in range(TRIALS)]
    if not arrays[0].size:
        return 0, 0
    return min(x.min().item() for x in arrays), max(x.max().item() for x in arrays)


def _samples(
    op: Operation, ins: Sequence[Interval], results: Sequence[Interval]
) -> Sequence[Interval]:
    """Return the results with numbers, if all operands have some; they are made when needed."""
    samples = [x for x in ins if isinstance(x, Sampled)]
    code = op.attrs["program"]["code"]
    if len(samples) < len(ins) or not ins:
        return ()

    @functools.cache
    def run(trial: int) -> Sequence[np.ndarray[Any, Any]]:
        from mplang_spu.reference_check import reference
        from mplang_spu.reference_check.flat_function import flat_function

        function = flat_function(code)
        if sum(kind.size for kind in function.kinds) > MAX_ELEMENTS:
            return [np.zeros(plain_of(value.type).shape) for value in op.outputs]
        return reference.outputs_of(function, [x.draw(trial) for x in samples])

    what = kinds_of(samples)
    return [
        Sampled(x.low, x.high, what, lambda trial, i=i: run(trial)[i])  # type: ignore[misc]
        for i, x in enumerate(results)
    ]


def is_admitted(code: bytes) -> bool:
    """Return whether SPU runs a code; XLA may not be given it either before that is known."""
    try:
        module_of(code)
    except ValueError:
        return False
    return True


@functools.lru_cache(maxsize=32)  # loops repeat the same code
def module_of(code: bytes) -> ir.Module:
    """Return the inlined module of a code, its ops numbered.

    Raises:
        ValueError: SPU refuses it.
    """
    from mplang_stablehlo.ext import prepare

    from mplang_spu.lowering import SPU

    return prepare(SPU.admit(read(code, MAX_CODE)))


def _steps(op: Operation, found: AnalysisResult, field: Field) -> Iterator[StepRange]:
    from mplang_stablehlo.ext import op_number

    from mplang_spu.range_check import check_step

    for step in found.steps:
        status = check_step(step, field)
        if status != "fits":
            yield StepRange(step.name, step.results[0], status, line_in(op, op_number(step.op)))


def line_in(op: Operation, number: int) -> Location | None:
    """Return the user's line of an op of a code, if this process traced it.

    Args:
        op: an ``spu.run_jax``.
        number: of the op in its code, see :func:`module_of`.
    """
    from mplang_stablehlo.ext import lines_of

    lines = lines_of(op.attrs["program"]["code"], op.location)
    return lines[number] if lines else None


def _is_float(kind: TensorType) -> bool:
    return kind.dtype.value.startswith("f")
