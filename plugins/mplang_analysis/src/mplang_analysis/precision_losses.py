"""Precision losses that are certain or possible before a program runs.

They follow from literals and declared ranges alone, and from nobody's data. Told are those of
operands whose interval is declared or literal itself: one that was computed may be far too wide,
and what follows from it is for :func:`mplang_analysis.ranges`, which somebody asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from mplang_analysis.interval import UNKNOWN, Interval
from mplang_analysis.interval_analysis import Numbers
from mplang_analysis.op_ranges import HasRanges, OpRanges
from mplang_analysis.range_inputs import Given, of_type
from mplang_core import Program
from mplang_core.ext import (
    DeclaredRange,
    Diagnostic,
    Location,
    Operation,
    PublicLiteral,
    interface_of,
)


@runtime_checkable
class HasPrecision(Protocol):
    """An interface of ops: what their engine does not hold of literals and declared ranges."""

    def losses(self, op: Operation, operands: Sequence[Interval]) -> Sequence[Diagnostic]:
        """Return the losses of an op.

        Args:
            op: the op, verified.
            operands: one interval per operand: literal or declared; unknown for any other.
        """


@dataclass(frozen=True, slots=True)
class PrecisionRule:
    """A function as the interface :class:`HasPrecision`, for ``OpDef(interfaces=[…])``.

    Attributes:
        rule: ``rule(op, operands)``.
    """

    rule: Callable[[Operation, Sequence[Interval]], Sequence[Diagnostic]]

    def losses(self, op: Operation, operands: Sequence[Interval]) -> Sequence[Diagnostic]:
        """Return what the function does."""
        return self.rule(op, operands)


def precision_losses(program: Program) -> list[Diagnostic]:
    """Return what the engines of a program do not hold, by literals and declared ranges alone.

    Args:
        program: the program, verified.

    Returns:
        The losses in the order of the program, each once.
    """
    ops = list(program.graph.walk())
    if not any(interface_of(op, HasPrecision) for op in ops):
        return []
    return list(_Losses(program, any(map(_declares, ops))).found)


def _declares(op: Operation) -> bool:
    """Return whether an op checks a range, or is a source that may."""
    is_source = not op.inputs and interface_of(op, PublicLiteral) is None
    return bool(interface_of(op, DeclaredRange) or (is_source and interface_of(op, HasRanges)))


class _Losses(Numbers):
    """A run on intervals that asks each engine for what it does not hold.

    Args:
        program: the program.
        declared: whether it has ranges; without them no interval but that of a literal is known.
    """

    def __init__(self, program: Program, declared: bool) -> None:
        self.found: dict[Diagnostic, None] = {}
        self._declared = declared
        self._direct: set[Interval] = set()
        super().__init__(program, [Given(of_type(value.type)) for value in program.graph.inputs])

    def _step(self, op: Operation, ins: Sequence[Given], line: Location | None) -> Sequence[Given]:
        outs = super()._step(op, ins, line)
        if interface_of(op, PublicLiteral) is not None:
            self._direct.update(out.interval for out in outs)
        return outs

    def _ask(self, op: Operation, ins: Sequence[Given]) -> OpRanges:
        if not self._declared:
            return OpRanges([UNKNOWN] * len(op.outputs))
        found = super()._ask(op, ins)
        if found.declared:
            self._direct.update(found.outputs)
        return found

    def _apply(self, op: Operation, ins: Sequence[Given], line: Location | None) -> Sequence[Given]:
        rule = interface_of(op, HasPrecision)
        if rule is not None:
            given = [x.interval if x.interval in self._direct else UNKNOWN for x in ins]
            for loss in rule.losses(op, given):
                self.found[Diagnostic(loss.text, loss.line or line)] = None
        return super()._apply(op, ins, line)
