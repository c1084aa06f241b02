"""Passes over what makes integers: rounding, conversion, and division with a remainder.

Numbers of the fixed point are off by some steps: 6.0 may be 5.999, and 924/7 just below 132. What
lies that little below an integer counts as it. Imports JAX.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mplang_spu.lowering.arithmetic import times
from mplang_spu.lowering.draft import Draft
from mplang_spu.lowering.splats import splat_of
from mplang_spu.lowering.term import Term, is_float, replace, where

__all__ = ["divide_integers", "round_floats"]

STEPS = 4
"""How many steps below an integer a number still counts as it."""


def round_floats(draft: Draft) -> None:
    """Write ``floor``, ``ceil``, ``remainder`` and conversion to integers, right at integers.

    A quotient is held against what was divided: its floor is corrected by the remainder. From 32
    fraction bits on, libspu converts negative numbers to the integer below, not towards zero.
    """
    for op in draft.ops(*_WRITERS):
        operand = op.operands[0]
        if not is_float(operand) or all(splat_of(each) is not None for each in op.operands):
            continue
        write = _WRITERS[op.name.removeprefix("stablehlo.")]
        if op.name == "stablehlo.convert" and not _to_integer(op):
            continue
        with draft.before(op):
            replace(op, write(draft, op))


def _to_integer(op: ir.Operation) -> bool:
    element = ir.RankedTensorType(op.results[0].type).element_type
    return not isinstance(element, ir.FloatType) and element.width > 1


def _floor(draft: Draft, op: ir.Operation) -> Term:
    quotient = _divided(op.operands[0])
    if quotient is not None:
        return _floor_of(draft, *quotient)[0]
    x = Term(op.operands[0])
    return _floor_term(x + _band(draft, x))


def _ceil(draft: Draft, op: ir.Operation) -> Term:
    quotient = _divided(op.operands[0])
    if quotient is not None:
        return -_floor_of(draft, -quotient[0], quotient[1])[0]
    x = Term(op.operands[0])
    return Term(hlo.ceil((x - _band(draft, x)).value))


def _remainder(draft: Draft, op: ir.Operation) -> Term:
    x, y = map(Term, op.operands)
    negative, constant = x < 0.0, splat_of(op.operands[1])
    size = y.magnitude() if constant is None else y.like(abs(constant))
    found = _floor_of(draft, where(negative, -x, x), size)[1]
    return where(negative, -found, found)


def _round_even(draft: Draft, op: ir.Operation) -> Term:
    """Round to the nearest integer, and what is in the middle to the even one."""
    low, above, middle = _nearest(draft, op)
    odd = low - _floor_term(low * 0.5 + _band(draft, low)) * 2.0 > 0.5
    return low + where(above | (middle & odd), 1.0, low.like(0))


def _round_away(draft: Draft, op: ir.Operation) -> Term:
    """Round to the nearest integer, and what is in the middle away from zero."""
    low, above, middle = _nearest(draft, op)
    return low + where(above | (middle & (low > -0.5)), 1.0, low.like(0))


def _nearest(draft: Draft, op: ir.Operation) -> tuple[Term, Term, Term]:
    """Return the floor, whether the number is above the middle to the next, or in it."""
    quotient = _divided(op.operands[0])
    if quotient is None:
        x = Term(op.operands[0])
        low, size = _floor_term(x + _band(draft, x)), x.like(1)
        rest = x - low
    else:
        low, rest = _floor_of(draft, *quotient)
        size = quotient[1]
        rest = where(size < 0.0, -rest, rest)
        size = size.magnitude()
    over, band = rest + rest - size, _band(draft, rest) * 4.0
    above = over > band
    return low, above, (over > -band) & ~above


def _floor_term(x: Term) -> Term:
    return Term(hlo.floor(x.value))


def _convert(draft: Draft, op: ir.Operation) -> Term:
    """Round towards zero: the floor of the size, with the sign."""
    element = ir.RankedTensorType(op.results[0].type).element_type
    x = Term(op.operands[0])
    quotient = _divided(op.operands[0])
    if quotient is not None:
        dividend, divisor = quotient
        negative = (dividend < 0.0) ^ (divisor < 0.0)
        size = _floor_of(draft, dividend.magnitude(), divisor.magnitude())[0].to(element)
    else:
        negative = x < 0.0
        size = (where(negative, -x, x) + _band(draft, x)).to(element)
    return where(negative, -size, size)


_WRITERS: dict[str, Callable[[Draft, ir.Operation], Term]] = {
    "floor": _floor,
    "ceil": _ceil,
    "round_nearest_afz": _round_away,
    "round_nearest_even": _round_even,
    "remainder": _remainder,
    "convert": _convert,
}


def _band(draft: Draft, x: Term) -> Term:
    return draft.public(STEPS * draft.target.step, x.kind.element_type)


def _divided(value: ir.Value) -> tuple[Term, Term] | None:
    """Return what was divided by what, where a value is a quotient."""
    op = value.owner
    if not isinstance(op, ir.Operation) or op.name != "stablehlo.divide":
        return None
    return Term(op.operands[0]), Term(op.operands[1])


def _floor_of(draft: Draft, x: Term, y: Term) -> tuple[Term, Term]:
    """Return the floor of ``x / y``, and the remainder, which has the sign of ``y``.

    An integer times a float is exact in the ring, and so the remainder.
    """
    band = _band(draft, x)
    quotient = _floor_term(x / y + band)
    whole = quotient.to(draft.integer).to(x.kind.element_type)
    rest = x - whole * y
    upward = where(y < 0.0, -rest, rest)
    size = y.magnitude()
    low, high = upward < -band, upward > size - band
    change = where(high, 1.0, where(low, -1.0, x.like(0.0)))
    upward = where(high, upward - size, where(low, upward + size, upward))
    upward = where(upward < band, 0.0, upward)  # some step beside a multiple
    return quotient + change, where(y < 0.0, -upward, upward)


def divide_integers(draft: Draft) -> None:
    """Divide integers, with a remainder, by floats that are corrected.

    libspu divides integers as floats, and their quotient is off by its relative error: 10^9 // 10
    is 99,336,133 in FM64.
    """
    known: dict[tuple[ir.Value, ir.Value], tuple[Term, Term]] = {}
    for op in draft.ops("divide", "remainder"):
        if is_float(op.results[0]) or all(splat_of(each) is not None for each in op.operands):
            continue
        pair = op.operands[0], op.operands[1]
        with draft.before(op):
            if pair not in known or op.parent != draft.main:
                known[pair] = _divide(draft, *map(Term, pair))
            replace(op, known[pair][0 if op.name == "stablehlo.divide" else 1])


def _divide(draft: Draft, x: Term, y: Term) -> tuple[Term, Term]:
    """Return quotient and remainder, towards zero, as integers.

    Signed ones of a width that holds both: a compiler knows that an unsigned one is not below 0.
    """
    element = x.kind.element_type
    a, b = (term.to(draft.integer) for term in (x, y))
    negative = [] if element.is_unsigned else [term < 0 for term in (a, b)]
    if negative:
        a, b = a.magnitude(), b.magnitude()
    number, power = splat_of(y.value), _power_of_two(draft, y)
    constant = abs(int(number)) if number else None
    quotient, rest = (
        _quotient(draft, a, b, element.width - (not element.is_unsigned), constant)
        if power is None
        else _shifted(draft, a, b, power)
    )
    if negative:
        quotient = where(negative[0] ^ negative[1], -quotient, quotient)
        rest = where(negative[0], -rest, rest)
    return quotient.to(element), rest.to(element)


def _quotient(draft: Draft, a: Term, b: Term, bits: int, constant: int | None) -> tuple[Term, Term]:
    """Return the quotient of positive integers, and what remains of ``a``.

    Each turn divides what is left as floats, in units of a power of two where the quotient would
    not fit otherwise. What is left may not fit either; then the divisor is large, and both are
    scaled down.
    """
    single = ir.F32Type.get()
    total, rest = a.like(0), a
    for turn in _turns(draft, bits):
        dividend, divisor = _scaled_down(draft, rest.to(single), turn.unit), b.to(single)
        if constant is not None:
            found = times(draft, dividend, 1 / constant, precise=0)
        else:
            if turn.excess > 0:
                large = dividend > 2.0**turn.room
                dividend, divisor = (
                    where(large, _scaled_down(draft, each, turn.excess), each)
                    for each in (dividend, divisor)
                )
            found = dividend / divisor
        found = found.to(a.kind.element_type) * (1 << turn.unit)
        total, rest = total + found, rest - found * b
    low, high = rest < 0, rest >= b  # it is off by one at most
    total = total + where(high, 1, where(low, -1, a.like(0)))
    return total, rest - where(high, b, where(low, -b, a.like(0)))


def _scaled_down(draft: Draft, x: Term, power: int) -> Term:
    return times(draft, x, 2.0**-power) if power else x


def _power_of_two(draft: Draft, y: Term) -> int | None:
    """Return the exponent of a constant divisor by which a product is exact."""
    number = splat_of(y.value)
    if number is None or not 0 < int(number) < 2 ** (draft.target.fxp // 2):
        return None
    power = int(number).bit_length() - 1
    fits = 2.0 ** (y.kind.element_type.width - 1) < draft.target.factors
    return power if int(number) == 1 << power and fits else None


def _shifted(draft: Draft, a: Term, b: Term, power: int) -> tuple[Term, Term]:
    single = ir.F32Type.get()
    scaled = draft.scaled(a.to(single), 2.0**-power)
    quotient = (scaled + _band(draft, scaled)).to(a.kind.element_type)
    return quotient, a - quotient * b


@dataclass(frozen=True, slots=True)
class _Turn:
    """One division of what is left of a dividend, all numbers being exponents of two.

    Attributes:
        unit: of the quotient that is found.
        room: for a dividend.
        excess: by how much what is left, in units, may be larger than that.
    """

    unit: int
    room: int
    excess: int


def _turns(draft: Draft, bits: int) -> list[_Turn]:
    """Return the turns for dividends of so many bits."""
    target = draft.target
    room, exact = int(math.log2(target.factors)) - 1, target.fxp - 2
    bits = min(bits, int(math.log2(target.limit)))
    left, turns = bits, list[_Turn]()
    while left > 0:
        unit = max(0, left - room)
        turns.append(_Turn(unit, room, bits - unit - room))
        left = max(left - exact, unit + 1 if unit else 0)
    return turns
