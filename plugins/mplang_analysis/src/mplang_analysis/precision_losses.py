"""Precision losses that are certain or possible before a program runs.

They follow from literals and declared ranges alone, and from nobody's data. Told are those of
operands whose interval is declared or literal itself: one that was computed may be far too wide,
and what follows from it is for :func:`mplang_analysis.ranges`, which somebody asks for.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from mplang_analysis.interval import UNKNOWN, Interval
from mplang_analysis.interval_analysis import Numbers
from mplang_analysis.op_ranges import HasRanges, OpRanges
from mplang_analysis.op_traits import base_of
from mplang_analysis.range_inputs import Given, of_type
from mplang_analysis.sampled import (
    DECLARED,
    Sampled,
    sample_of_data,
    sample_of_unknown,
    sample_within,
)
from mplang_core import Program, TensorType
from mplang_core.ext import (
    AnyType,
    DeclaredRange,
    Diagnostic,
    Location,
    Operation,
    PublicLiteral,
    Value,
    interface_of,
)

MAX_ASKED = 3  # turns of a loop in which an engine is asked what it does not hold


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


def precision_losses(
    program: Program, data: Mapping[int, Interval] | None = None
) -> list[Diagnostic]:
    """Return what the engines of a program do not hold.

    Args:
        program: the program, verified.
        data: samples of inputs that the host has itself, by position. If it is given, each function
            is tried on these, on numbers within declared ranges, and on usual ones, zeros among
            them, where nothing is declared. Otherwise what is told follows from literals and
            declared ranges alone.

    Returns:
        The losses in the order of the program, each once.
    """
    ops = list(program.graph.walk())
    if not any(interface_of(op, HasPrecision) for op in ops):
        return []
    if data is not None:
        return list(_Tried(program, data).found)
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
        inputs: an interval per input of the program.
    """

    def __init__(
        self, program: Program, declared: bool, inputs: Sequence[Given] | None = None
    ) -> None:
        self.found: dict[Diagnostic, None] = {}
        self._declared = declared
        self._direct: set[Interval] = set()
        values = program.graph.inputs
        super().__init__(program, inputs or [Given(of_type(value.type)) for value in values])

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
            for loss in rule.losses(op, self._given(op, ins)):
                self.found[Diagnostic(loss.text, loss.line or line)] = None
        return super()._apply(op, ins, line)

    def _given(self, op: Operation, ins: Sequence[Given]) -> Sequence[Interval]:
        """Return the intervals that an engine may judge by."""
        return [x.interval if x.interval in self._direct else UNKNOWN for x in ins]


class _Tried(_Losses):
    """A run that has numbers for each operand, on which engines try their functions.

    Args:
        program: the program.
        data: samples of inputs that the host has itself, by position.
    """

    def __init__(self, program: Program, data: Mapping[int, Interval]) -> None:
        self._seeds = itertools.count()
        self._asked: Counter[int] = Counter()
        inputs = [
            self._made_up(value, data.get(i, of_type(value.type)))
            for i, value in enumerate(program.graph.inputs)
        ]
        super().__init__(program, True, inputs)

    def _made_up(self, value: Value, known: Interval) -> Given:
        kind = _plain(value.type)
        if isinstance(known, Sampled) or kind is None or kind.dtype.numpy.kind not in "fiub":
            return Given(known)
        return Given(sample_of_unknown(kind, next(self._seeds), known))

    def _step(self, op: Operation, ins: Sequence[Given], line: Location | None) -> Sequence[Given]:
        literal = interface_of(op, PublicLiteral)
        if literal is not None:
            kind = _plain(op.outputs[0].type)
            array = literal.literal(op)
            if kind is not None:
                return [Given(sample_of_data(array, kind, DECLARED), "known")]
        return super()._step(op, ins, line)

    def _apply(self, op: Operation, ins: Sequence[Given], line: Location | None) -> Sequence[Given]:
        outs = super()._apply(op, ins, line)
        return [
            self._made_up(value, out.interval) for value, out in zip(op.outputs, outs, strict=True)
        ]

    def _ask(self, op: Operation, ins: Sequence[Given]) -> OpRanges:
        """Return samples of declared ranges and from engines; else what follows without samples."""
        if interface_of(op, HasRanges) is not None:
            found = super()._ask(op, ins)
            if all(isinstance(out, Sampled) for out in found.outputs):
                return found
        bare = [Given(UNKNOWN) if _is_made_up(x.interval) else x for x in ins]
        if interface_of(op, DeclaredRange) is not None:
            bare = [Given(UNKNOWN)] * len(ins)
        found = super()._ask(op, bare)
        if not found.declared:
            return found
        kinds = [_plain(value.type) for value in op.outputs]
        outs = [
            x if kind is None or not x.known else sample_within(kind, x)
            for kind, x in zip(kinds, found.outputs, strict=True)
        ]
        return OpRanges(outs, found.statuses, found.steps, True)

    def _given(self, op: Operation, ins: Sequence[Given]) -> Sequence[Interval]:
        self._asked[id(op)] += 1
        if self._asked[id(op)] > MAX_ASKED:
            return [UNKNOWN] * len(ins)
        pairs = zip(op.inputs, ins, strict=True)
        return [self._made_up(value, x.interval).interval for value, x in pairs]


def _plain(kind: AnyType) -> TensorType | None:
    """Return the type of the numbers of a tensor or its shares."""
    base = base_of(kind)
    plain = base if isinstance(base, TensorType) else getattr(base, "plain", None)
    return plain if isinstance(plain, TensorType) else None


def _is_made_up(x: Interval) -> bool:
    return isinstance(x, Sampled) and x.is_made_up


class PrecisionDiagnosis:
    """Diagnosis of numbers that engines do not hold, for ``mplang.diagnostics``."""

    def sample(self, data: Any) -> Interval | None:
        """Return a sample of numbers that the host puts; ``None`` if it is nothing to try."""
        if not isinstance(data, np.ndarray | np.generic | int | float):
            return None
        array = np.asarray(data)
        found = sample_of_data(array, TensorType.of(array))
        return found if found.known else None

    def find(self, program: Program, samples: Mapping[int, Any] | None) -> list[Diagnostic]:
        """Return what the engines of a program do not hold."""
        return precision_losses(program, samples)


PRECISION = PrecisionDiagnosis()
