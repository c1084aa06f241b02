"""Comparison of SPU's results with float64, in a simulator, where all shares are available."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mplang_core import TensorType
from mplang_core.ext import Diagnostic, Location
from mplang_spu.reference_check import reference
from mplang_spu.reference_check.cancellation import discard_cancellation
from mplang_spu.reference_check.fault_localization import Fault, locate_fault, worst_fault
from mplang_spu.reference_check.flat_function import (
    FlatFunction,
    flat_function,
    source_lines,
    sums_of,
)
from mplang_spu.reference_check.message import beyond, message, wrapped
from mplang_spu.reference_check.random_errors import beyond_products
from mplang_spu.reference_check.reconstruction import reconstruct_tensor
from mplang_spu.reference_check.reference import Array
from mplang_spu.reference_check.rerun import Setting
from mplang_spu.reference_check.run import Run
from mplang_spu.reference_check.search_budget import SearchBudget, shown
from mplang_spu.reference_check.tolerance import Difference, compare
from mplang_spu.target import Target


@dataclass(frozen=True, slots=True)
class Job:
    """One run of an SPU function.

    Attributes:
        code: the compressed StableHLO.
        line: the user's line that calls the function.
        setting: the configuration of the run.
        public: the operands that all members know, by index.
        given: libspu's share of each operand, per member.
        made: libspu's share of each result, per member.
        seconds: that the run took.
    """

    code: bytes
    line: Location | None
    setting: Setting
    public: Mapping[int, Array]
    given: Sequence[Sequence[Any]]
    made: Sequence[Sequence[Any]]
    seconds: float = 0.0


def check(job: Job, reported: set[Any], budget: float = 1.0) -> Diagnostic | None:
    """Compare the results of a job with float64.

    Args:
        job: the run.
        reported: code and line of earlier findings, which are not examined again; updated.
        budget: how long the op that gave a wrong number may be searched for, in times of the run.

    Returns:
        The op that gave a wrong number, or the reason why the check failed; ``None`` if all is
        correct.
    """
    key = hashlib.sha256(job.code).digest(), job.line
    if key in reported:
        return None
    try:
        finding = _check(job, budget)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:300]}"
        finding = Diagnostic(f"SPU's numbers could not be checked: {reason}", job.line, "check")
    if finding is not None:
        reported.add(key)
    return finding


def _check(job: Job, ratio: float) -> Diagnostic | None:
    function = flat_function(job.code, job.setting.config["fxp_fraction_bits"])
    kinds = function.kinds
    operands = [
        job.public[i] if i in job.public else _reconstruct(job, job.given, i, kinds[i])
        for i in range(function.inputs)
    ]
    expected = reference.outputs_of(function, operands)
    found: dict[int, Array] = {}
    wrong: dict[int, Difference] = {}
    for i, (number, value) in enumerate(zip(function.outputs, expected, strict=True)):
        result = _reconstruct(job, job.made, i, kinds[number])
        difference = compare(result, value, job.setting.step)
        if difference.is_wrong:
            found[number], wrong[number] = result, difference
    if wrong:
        wrong = discard_cancellation(function, operands, wrong)
    if not wrong:
        return _wrapped(job, function) or _beyond(job, function, operands, expected)
    budget = SearchBudget(ratio, job.seconds, len(function.ops))
    if not budget.suffices:
        return _finding(job, function, worst_fault(function, wrong), wrong, budget.left_out)
    try:
        with shown(job.line):
            fault = locate_fault(Run(function, job.given, operands, job.setting), found, wrong)
    except Exception:  # e.g. libspu cannot return an inner value; the result is wrong anyway
        fault = worst_fault(function, wrong)
    return None if fault is None else _finding(job, function, fault, wrong)


def _wrapped(job: Job, function: FlatFunction) -> Diagnostic | None:
    """Find a sum that its integer type does not hold; NumPy adds in 64 bits, JAX does not."""
    if job.setting.config["field"] == "FM32":
        return None
    for i, (number, op) in enumerate(zip(function.outputs, sums_of(function), strict=True)):
        if op is None:
            continue
        kind, pieces = function.kinds[number], [of_member[i] for of_member in job.made]
        sums = reconstruct_tensor(pieces, kind, job.setting.config, wide=True)
        limits = np.iinfo(kind.dtype.numpy)
        outside = sums[(sums < limits.min) | (sums > limits.max)]
        if outside.size:
            label, line = function.ops[op].label, source_lines(job.code, job.line)[op]
            return Diagnostic(wrapped(label, kind, int(outside[0])), line or job.line, label)
    return None


def _beyond(
    job: Job, function: FlatFunction, operands: Sequence[Array], results: Sequence[Array]
) -> Diagnostic | None:
    """Find a product that the field does not hold, and that was right by chance."""
    target = Target.of(job.setting.config)
    found = beyond_products(function, operands, results, target)
    if found is None:
        return None
    label, line = function.ops[found[0]].label, source_lines(job.code, job.line)[found[0]]
    return Diagnostic(beyond(label, found[1], job.setting), line or job.line, label)


def _reconstruct(job: Job, pieces: Sequence[Sequence[Any]], i: int, kind: TensorType) -> Array:
    return reconstruct_tensor([of_member[i] for of_member in pieces], kind, job.setting.config)


def _finding(
    job: Job,
    function: FlatFunction,
    fault: Fault,
    wrong: Mapping[int, Difference],
    left_out: str = "",
) -> Diagnostic:
    if fault.op is None:
        label, line = "result", None
    else:
        label, line = function.ops[fault.op].label, source_lines(job.code, job.line)[fault.op]
    result = None if fault.number in wrong else worst_fault(function, wrong).difference
    text = message(label, function.kinds[fault.number], fault.difference, job.setting, result)
    return Diagnostic(text + left_out, line or job.line, label)
