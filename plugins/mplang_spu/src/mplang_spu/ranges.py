"""Range analysis of the dialect ``spu``: intervals, and whether the field holds them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from mplang_analysis import UNKNOWN, Interval, OpRanges, StepRange
from mplang_stablehlo import read

from mplang_core import TensorType
from mplang_core.ext import Location, Operation
from mplang_spu.field import Field
from mplang_spu.share_type import MAX_CODE, ShareType

if TYPE_CHECKING:
    from jaxlib.mlir import ir
    from mplang_stablehlo.intervals import AnalysisResult


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
        ins: the interval of each operand.

    Returns:
        Intervals and statuses of the results, and the steps that the field does not hold.
    """
    from mplang_stablehlo.intervals import fixed_point, intervals

    outs = [cast("ShareType", value.type) for value in op.outputs]
    if not outs:
        return OpRanges([])
    field = Field(outs[0].target)
    if op.attrs.get("public") is not None:
        return OpRanges([UNKNOWN] * len(outs), ["not known"] * len(outs))
    try:
        module = _module(op.attrs["program"]["code"])
    except ValueError:  # SPU refuses it
        return OpRanges([UNKNOWN] * len(outs), ["not known"] * len(outs))
    found = intervals(module, ins, fixed_point(field.target.fxp))
    statuses = [
        field.holds(x, _is_float(kind.plain)) for x, kind in zip(found.results, outs, strict=True)
    ]
    return OpRanges(found.results, statuses, list(_steps(op, found, field)))


def is_admitted(code: bytes) -> bool:
    """Return whether SPU runs a code; XLA may not be given it either before that is known."""
    try:
        _module(code)
    except ValueError:
        return False
    return True


@functools.lru_cache(maxsize=32)  # loops repeat the same code
def _module(code: bytes) -> ir.Module:
    from mplang_stablehlo.intervals import prepare

    from mplang_spu.lowering import SPU

    return prepare(SPU.admit(read(code, MAX_CODE)))


def _steps(op: Operation, found: AnalysisResult, field: Field) -> Iterator[StepRange]:
    from mplang_stablehlo.intervals import op_number

    from mplang_spu.range_check import check_step

    for step in found.steps:
        status = check_step(step, field)
        if status != "fits":
            yield StepRange(step.name, step.results[0], status, _line(op, op_number(step.op)))


def _line(op: Operation, number: int) -> Location | None:
    """Return the user's line of an op, if this process traced the code."""
    from mplang_stablehlo.source_lines import lines_of

    lines = lines_of(op.attrs["program"]["code"], op.location)
    return lines[number] if lines else None


def _is_float(kind: TensorType) -> bool:
    return kind.dtype.value.startswith("f")
