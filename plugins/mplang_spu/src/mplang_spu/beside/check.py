"""Check of what SPU gave against float64, in a simulator, where all shares are at hand."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mplang_core import TensorType
from mplang_core.ir import Location
from mplang_core.simp import Finding
from mplang_spu.beside import exact
from mplang_spu.beside.blame import Fault, blame, fault_of
from mplang_spu.beside.exact import Array
from mplang_spu.beside.flat import Flat, flat, lines_in, sums_of
from mplang_spu.beside.message import message, wrapped
from mplang_spu.beside.plain import plain
from mplang_spu.beside.rerun import Setting
from mplang_spu.beside.rounding import significant
from mplang_spu.beside.tolerance import Difference, compare
from mplang_spu.beside.trace import Run

__all__ = ["Job", "check"]


@dataclass(frozen=True, slots=True)
class Job:
    """One run of an SPU function.

    Attributes:
        code: its StableHLO, compressed.
        line: of the user, where the function is called.
        setting: how it ran.
        public: the operands that all know, by index.
        given: libspu's share of each operand, per member.
        made: libspu's share of each result, per member.
    """

    code: bytes
    line: Location | None
    setting: Setting
    public: Mapping[int, Array]
    given: Sequence[Sequence[Any]]
    made: Sequence[Sequence[Any]]


def check(job: Job, told: set[Any]) -> Finding | None:
    """Compare the results of a job with those of float64.

    Args:
        job: what ran.
        told: which code was found wrong at which line before; it is not examined again.

    Returns:
        The op that gave a wrong number, or what kept it from being checked.
    """
    key = hashlib.sha256(job.code).digest(), job.line
    if key in told:
        return None
    try:
        finding = _check(job)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:300]}"
        finding = Finding(f"SPU's numbers could not be checked: {reason}", "check", job.line)
    if finding is not None:
        told.add(key)
    return finding


def _check(job: Job) -> Finding | None:
    function = flat(job.code)
    kinds = function.kinds
    operands = [
        job.public[i] if i in job.public else _plain(job, job.given, i, kinds[i])
        for i in range(function.inputs)
    ]
    expected = exact.outputs_of(function, operands)
    found: dict[int, Array] = {}
    wrong: dict[int, Difference] = {}
    for i, (number, value) in enumerate(zip(function.outputs, expected, strict=True)):
        result = _plain(job, job.made, i, kinds[number])
        difference = compare(result, value, job.setting.step)
        if difference.is_wrong:
            found[number], wrong[number] = result, difference
    if wrong:
        wrong = significant(function, operands, wrong)
    if not wrong:
        return _wrapped(job, function)
    try:
        fault = blame(Run(function, job.given, operands, job.setting), found, wrong)
    except Exception:  # libspu cannot return each inner value, say; the result is wrong anyhow
        fault = fault_of(function, wrong)
    return None if fault is None else _finding(job, function, fault, wrong)


def _wrapped(job: Job, function: Flat) -> Finding | None:
    """Find a sum that its integer type does not hold; NumPy adds in 64 bits, JAX does not."""
    if job.setting.config["field"] == "FM32":
        return None
    for i, (number, maker) in enumerate(zip(function.outputs, sums_of(function), strict=True)):
        if maker is None:
            continue
        kind, pieces = function.kinds[number], [of_member[i] for of_member in job.made]
        sums, held = plain(pieces, kind, job.setting.config, wide=True), np.iinfo(kind.dtype.numpy)
        outside = sums[(sums < held.min) | (sums > held.max)]
        if outside.size:
            word, line = function.ops[maker].word, lines_in(job.code, job.line)[maker]
            return Finding(wrapped(word, kind, int(outside[0])), word, line or job.line)
    return None


def _plain(job: Job, pieces: Sequence[Sequence[Any]], i: int, kind: TensorType) -> Array:
    return plain([of_member[i] for of_member in pieces], kind, job.setting.config)


def _finding(job: Job, function: Flat, fault: Fault, wrong: Mapping[int, Difference]) -> Finding:
    if fault.op is None:
        word, line = "result", None
    else:
        word, line = function.ops[fault.op].word, lines_in(job.code, job.line)[fault.op]
    result = None if fault.number in wrong else fault_of(function, wrong).difference
    text = message(word, function.kinds[fault.number], fault.difference, job.setting, result)
    return Finding(text, word, line or job.line)
