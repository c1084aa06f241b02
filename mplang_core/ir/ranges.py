"""What an op says of the numbers that it gives, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from mplang_core.interval import Interval
from mplang_core.ir.graph import Location, Operation

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


RangeRule: TypeAlias = Callable[[Operation, Sequence[Interval]], OpRanges]
"""Gives the ranges of an op for the intervals of its operands."""
