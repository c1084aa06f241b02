"""Traces: the inner values of a function, on SPU and in float64 along SPU's decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mplang_spu.reference_check import reference
from mplang_spu.reference_check.decisions import OpTrace, decision_differences, is_decision
from mplang_spu.reference_check.flat_function import FlatFunction
from mplang_spu.reference_check.reference import Array
from mplang_spu.reference_check.rerun import Setting, rerun
from mplang_spu.reference_check.tolerance import Difference, compare

__all__ = ["Run", "Trace", "trace"]


@dataclass(frozen=True, slots=True)
class Run:
    """A function that SPU ran.

    Attributes:
        function: its flat form.
        shares: libspu's share of each operand, per member.
        operands: the operands in plain.
        setting: how it ran.
    """

    function: FlatFunction
    shares: Sequence[Sequence[Any]]
    operands: Sequence[Array]
    setting: Setting

    @property
    def decisions(self) -> list[int]:
        """The numbers of the values that decisions give."""
        kinds = self.function.kinds
        return [n for op in self.function.ops if is_decision(op, kinds) for n in op.results]

    def on_spu(self, shown: Sequence[int]) -> dict[int, Array]:
        """Run it again on SPU; return some of its values by their numbers, in ascending order."""
        variant = self.function.with_outputs(shown)
        return dict(zip(shown, rerun(variant, self.shares, self.setting), strict=True))

    def in_float64(self, shown: Sequence[int], given: Mapping[int, Array]) -> dict[int, Array]:
        """Run it in float64; return some of its values.

        Args:
            shown: the numbers of the values to return, in ascending order.
            given: what is taken for values wherever they are used, in ascending order.
        """
        variant = self.function.with_outputs(shown, given, 64)
        values = reference.run(variant, [*self.operands, *given.values()])
        return dict(zip(shown, values, strict=True))


@dataclass(frozen=True, slots=True)
class Trace:
    """What became of each value.

    Attributes:
        differences: how far each value is from that of float64.
        decisions: the decisions, by the index of the op.
    """

    differences: Mapping[int, Difference]
    decisions: Mapping[int, OpTrace]


def trace(run: Run) -> Trace:
    """Run a function again, and compare each of its values."""
    function, step = run.function, run.setting.step
    inner = [n for op in function.ops for n in op.results]
    found = run.on_spu([n for op in function.ops if not op.is_literal for n in op.results])
    taken = {n: found[n] for n in run.decisions}
    along = run.in_float64(inner, taken)  # what each op gives; decisions are given themselves
    local = run.in_float64(inner, found)
    given = dict(enumerate(run.operands))
    followed, on_spu = given | along | taken, given | along | found
    off, decisions = dict.fromkeys(on_spu, Difference(0)), {}
    for i, op in enumerate(function.ops):
        if op.is_literal:
            continue
        case = OpTrace(
            op,
            [followed[n] for n in op.operands],
            [along[n] for n in op.results],
            [on_spu[n] for n in op.operands],
            [found[n] for n in op.results],
            [local[n] for n in op.results],
            step,
        )
        if is_decision(op, function.kinds):
            decisions[i] = case
            off.update(zip(op.results, decision_differences(case), strict=True))
        else:
            off.update((n, compare(found[n], along[n], step)) for n in op.results)
    return Trace(off, decisions)
