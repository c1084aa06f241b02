"""Interface by which an op tells the intervals of its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from mplang_analysis.interval import Interval
from mplang_core.ext import Location, Operation

NumberStatus: TypeAlias = Literal["", "fits", "vanishes", "overflows", "not known"]
"""Whether the engine's numbers hold a value; in the order of their severity. Empty: any number."""


@dataclass(frozen=True, slots=True)
class StepRange:
    """A step inside of an op whose numbers the engine may not hold.

    Attributes:
        name: what it is: ``multiply``.
        interval: its result.
        status: why it is listed.
        line: the user's line of it; ``None`` if only that of the op is known.
    """

    name: str
    interval: Interval
    status: NumberStatus
    line: Location | None = None


@dataclass(frozen=True, slots=True)
class OpRanges:
    """The intervals of an op's results.

    Attributes:
        outputs: one per result.
        statuses: one per result; empty where all are.
        steps: those inside of it that are to be looked at.
        declared: whether the op makes sure of the intervals.
    """

    outputs: Sequence[Interval]
    statuses: Sequence[NumberStatus] = ()
    steps: Sequence[StepRange] = ()
    declared: bool = False


@runtime_checkable
class HasRanges(Protocol):
    """An interface of ops: the intervals of the results follow from those of the operands."""

    def ranges(self, op: Operation, operands: Sequence[Interval]) -> OpRanges:
        """Return the intervals of an op's results.

        Args:
            op: the op, verified.
            operands: one interval per operand; unknown where nothing is known.
        """


@dataclass(frozen=True, slots=True)
class RangeRule:
    """A function as the interface :class:`HasRanges`, for ``OpDef(interfaces=[…])``.

    Attributes:
        rule: ``rule(op, operands)``.
    """

    rule: Callable[[Operation, Sequence[Interval]], OpRanges]

    def ranges(self, op: Operation, operands: Sequence[Interval]) -> OpRanges:
        """Return what the function does."""
        return self.rule(op, operands)
