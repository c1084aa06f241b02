"""Diagnostics of constants that decide about what SPU takes for equal. Imports JAX.

``x + 1e-5 > x`` is true, and so is ``0 < 1e-6``. Where computed numbers of that distance count as
equal, neither is on SPU.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxlib.mlir import ir

from mplang_spu.lowering.constants import BadConstant, op_index
from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.splats import direction_of
from mplang_spu.lowering.tables import table_of
from mplang_spu.lowering.term import is_float
from mplang_spu.lowering.ties import SINGLE, STEPS
from mplang_spu.target import Target

MORE = ", or take more bits (field: FM128, fxp_fraction_bits: 40)"
DEPTH = 64
NUMBERS = 64  # different ones that are looked at; more are data rather than bounds

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "EQ": operator.eq, "NE": operator.ne, "LT": operator.lt, "LE": operator.le,
    "GT": operator.gt, "GE": operator.ge,
}  # fmt: skip
_MOVES = {
    "broadcast_in_dim", "convert", "dynamic_slice", "gather", "pad", "reshape", "reverse", "slice",
    "transpose",
}  # fmt: skip
_SHAPES = ("stablehlo.broadcast_in_dim", "stablehlo.reshape")


class _Part(NamedTuple):
    """A constant that a value may be, or that is added to it."""

    number: float
    is_added: bool = False


class _Pair(NamedTuple):
    """Two numbers that an op may compare, one of which comes from a constant."""

    left: float
    right: float
    constant: float


_Known: TypeAlias = dict[ir.Value, frozenset[_Part]]


def near_constants(rewriter: Rewriter) -> list[BadConstant]:
    """Diagnose constants that decide a comparison, or a rounding, unless SPU takes it for a tie.

    Told is what float64 decides otherwise about numbers that are usual: the constant itself, where
    it may be selected, 0 beside a constant, and equal numbers to one of which it is added.
    """
    known: _Known = {}
    diagnostics: dict[int, BadConstant] = {}
    for op in rewriter.ops("compare", "floor", "ceil"):
        if is_float(op.operands[0]) and op_index(op) not in diagnostics:
            number = next(_hidden(op, rewriter.target, known), None)
            if number is not None:
                text = _text(op, number, rewriter.target)
                diagnostics[op_index(op)] = BadConstant(op_index(op), text)
    return list(diagnostics.values())


def _text(op: ir.Operation, number: float, target: Target) -> str:
    name = op.name.removeprefix("stablehlo.")
    return (
        f"the constant {number:g} reaches {name}: {target.field} with {target.fxp} fraction bits "
        f"takes numbers up to {STEPS * target.step:.1e} apart for equal, so it decides nothing; "
        f"scale the data up{MORE if target.fxp < 40 else ''}"
    )


def _hidden(op: ir.Operation, target: Target, known: _Known) -> Iterator[float]:
    """Yield the constants of pairs about which SPU decides otherwise than float64."""
    band = STEPS * target.step
    if op.name != "stablehlo.compare":
        sign = 1 if op.name == "stablehlo.ceil" else -1
        parts = _parts(op.operands[0], known)
        yield from (
            part.number for part in parts if part.is_added and 0 < sign * part.number < band
        )
        return
    decide = _COMPARE[direction_of(op)]
    for left, right, number in _pairs(op, known):
        is_near = SINGLE * max(abs(left), abs(right)) < abs(left - right) < band
        if is_near and decide(left, right) != decide(0.0, 0.0):
            yield number


def _pairs(op: ir.Operation, known: _Known) -> Iterator[_Pair]:
    """Yield numbers that a comparison may be of."""
    for i, value in enumerate(op.operands):
        numbers = _numbers(op.operands[1 - i])
        pairs = [(0.0, number, number) for number in numbers]
        for part in _parts(value, known):
            others = [0.0] if part.is_added else numbers
            pairs += [(part.number, other, part.number) for other in others]
        yield from (_Pair(a, b, n) if i == 0 else _Pair(b, a, n) for a, b, n in pairs)


def _numbers(value: ir.Value) -> list[float]:
    """Return the numbers of a constant; of any other value, none."""
    table = table_of(value)
    if table is None:
        return []
    numbers = np.unique(table[np.isfinite(table)])
    return [] if numbers.size > NUMBERS else [float(number) for number in numbers]


def _parts(value: ir.Value, known: _Known, depth: int = DEPTH) -> frozenset[_Part]:
    """Return the constants that a value may be equal to, and those that are added to it."""
    if value not in known:
        op = value.owner
        is_known = depth == 0 or not isinstance(op, ir.Operation) or not is_float(value)
        parts = frozenset[_Part]() if is_known else frozenset(_parts_of(value, known, depth - 1))
        known[value] = parts if len(parts) <= NUMBERS else frozenset()
    return known[value]


def _parts_of(value: ir.Value, known: _Known, depth: int) -> Iterator[_Part]:
    op = value.owner
    name, operands = op.name.removeprefix("stablehlo."), list(op.operands)

    def chosen(*values: ir.Value) -> Iterator[_Part]:
        for each in values:
            yield from map(_Part, _numbers(each))
            yield from _parts(each, known, depth)

    match name:
        case "select":
            yield from chosen(*operands[1:])
        case "maximum" | "minimum" | "clamp" | "concatenate":
            yield from chosen(*operands)
        case "sort":
            yield from chosen(operands[ir.OpResult(value).result_number])
        case "negate":
            yield from (part._replace(number=-part.number) for part in chosen(operands[0]))
        case "multiply":
            masked = [y for x, y in (operands, operands[::-1]) if _is_mask(x)]
            yield from (part for part in chosen(*masked) if not part.is_added)
        case "add" | "subtract":
            signs = (1, 1 if name == "add" else -1)
            for sign, each in zip(signs, operands, strict=True):
                yield from (_Part(sign * number, True) for number in _numbers(each))
        case _ if name in _MOVES:
            yield from chosen(operands[0])


def _is_mask(value: ir.Value) -> bool:
    """Return whether a float is a whole number by which others are left out."""
    op = value.owner
    while isinstance(op, ir.Operation) and op.name in _SHAPES:
        op = op.operands[0].owner
    is_converted = isinstance(op, ir.Operation) and op.name == "stablehlo.convert"
    return is_converted and not is_float(op.operands[0])
