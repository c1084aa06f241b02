"""Passes over rounding, conversion to integers, and integer division.

Fixed-point numbers are some steps off: 6.0 may be 5.999, and 924/7 just below 132. A number that
close below an integer counts as the integer. Imports JAX.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mplang_spu.lowering.arithmetic import times
from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.splats import splat_of
from mplang_spu.lowering.term import Term, is_float, numpy_type, replace, where

STEPS = 4
"""Distance below an integer, in steps, within which a number counts as the integer."""


def round_floats(rewriter: Rewriter) -> None:
    """Rewrite rounding, ``remainder`` and integer conversion to be exact at integers.

    The floor of a quotient is corrected by its remainder. From 32 fraction bits on, libspu converts
    negative numbers to the integer below, not towards zero.
    """
    for op in rewriter.ops(*_WRITERS):
        operand = op.operands[0]
        if not is_float(operand) or all(splat_of(each) is not None for each in op.operands):
            continue
        write = _WRITERS[op.name.removeprefix("stablehlo.")]
        if op.name == "stablehlo.convert" and not _to_integer(op):
            continue
        with rewriter.before(op):
            replace(op, write(rewriter, op))


def _to_integer(op: ir.Operation) -> bool:
    element = ir.RankedTensorType(op.results[0].type).element_type
    return not isinstance(element, ir.FloatType) and element.width > 1


def _floor(rewriter: Rewriter, op: ir.Operation) -> Term:
    quotient = _divided(op.operands[0])
    if quotient is not None:
        return _floor_of(rewriter, *quotient)[0]
    x = Term(op.operands[0])
    return _floor_term(x + _band(rewriter, x))


def _ceil(rewriter: Rewriter, op: ir.Operation) -> Term:
    quotient = _divided(op.operands[0])
    if quotient is not None:
        return -_floor_of(rewriter, -quotient[0], quotient[1])[0]
    x = Term(op.operands[0])
    return Term(hlo.ceil((x - _band(rewriter, x)).value))


def _remainder(rewriter: Rewriter, op: ir.Operation) -> Term:
    x, y = map(Term, op.operands)
    negative, constant = x < 0.0, splat_of(op.operands[1])
    size = y.magnitude() if constant is None else y.like(abs(constant))
    found = _floor_of(rewriter, where(negative, -x, x), size)[1]
    return where(negative, -found, found)


def _round_even(rewriter: Rewriter, op: ir.Operation) -> Term:
    """Round to the nearest integer, ties to even."""
    low, above, middle = _nearest(rewriter, op)
    odd = low - _floor_term(low * 0.5 + _band(rewriter, low)) * 2.0 > 0.5
    return low + where(above | (middle & odd), 1.0, low.like(0))


def _round_away(rewriter: Rewriter, op: ir.Operation) -> Term:
    """Round to the nearest integer, ties away from zero."""
    low, above, middle = _nearest(rewriter, op)
    return low + where(above | (middle & (low > -0.5)), 1.0, low.like(0))


def _nearest(rewriter: Rewriter, op: ir.Operation) -> tuple[Term, Term, Term]:
    """Return the floor, whether the number is above the midpoint to the next integer, and at it."""
    quotient = _divided(op.operands[0])
    if quotient is None:
        x = Term(op.operands[0])
        low, size = _floor_term(x + _band(rewriter, x)), x.like(1)
        rest = x - low
    else:
        low, rest = _floor_of(rewriter, *quotient)
        size = quotient[1]
        rest = where(size < 0.0, -rest, rest)
        size = size.magnitude()
    over, band = rest + rest - size, _band(rewriter, rest) * 4.0
    above = over > band
    return low, above, (over > -band) & ~above


def _floor_term(x: Term) -> Term:
    return Term(hlo.floor(x.value))


def _convert(rewriter: Rewriter, op: ir.Operation) -> Term:
    """Round towards zero: the floor of the size, with the sign; beyond the type, its limit.

    libspu would cut the bits off, and of an unsigned type -1 is the largest number.
    """
    element = ir.RankedTensorType(op.results[0].type).element_type
    x = Term(op.operands[0])
    quotient = _divided(op.operands[0])
    if quotient is not None:
        dividend, divisor = quotient
        negative = (dividend < 0.0) ^ (divisor < 0.0)
        size = _floor_of(rewriter, dividend.magnitude(), divisor.magnitude())[0]
    else:
        negative = x < 0.0
        size = where(negative, -x, x) + _band(rewriter, x)
    size = _at_most(rewriter, size, element, negative)
    if element.is_unsigned:
        return where(negative, 0, size.to(element))
    found = size.to(element)
    return where(negative, -found, found)


def _at_most(rewriter: Rewriter, size: Term, element: ir.Type, negative: Term) -> Term:
    """Return a size, or the largest one of a type; a negative number may be one larger."""
    bits = element.width - (not element.is_unsigned)
    single = size.kind.element_type
    if 2.0**bits >= min(rewriter.target.limit, float(np.finfo(numpy_type(single)).max)):
        return size
    beyond, one = (rewriter.public(number, single) for number in (2.0**bits, 1))
    largest = size.like(beyond) - one  # whatever bits the type has for 2^63 - 1
    if not element.is_unsigned:
        largest = largest + negative.to(single)
    return where(size > largest, largest, size)


_WRITERS: dict[str, Callable[[Rewriter, ir.Operation], Term]] = {
    "floor": _floor,
    "ceil": _ceil,
    "round_nearest_afz": _round_away,
    "round_nearest_even": _round_even,
    "remainder": _remainder,
    "convert": _convert,
}


def _band(rewriter: Rewriter, x: Term) -> Term:
    return rewriter.public(STEPS * rewriter.target.step, x.kind.element_type)


def _divided(value: ir.Value) -> tuple[Term, Term] | None:
    """Return dividend and divisor of a quotient."""
    op = value.owner
    if not isinstance(op, ir.Operation) or op.name != "stablehlo.divide":
        return None
    return Term(op.operands[0]), Term(op.operands[1])


def _floor_of(rewriter: Rewriter, x: Term, y: Term) -> tuple[Term, Term]:
    """Return the floor of ``x / y``, and the remainder, which has the sign of ``y``.

    An integer times a float is exact in the ring, and so is the remainder.
    """
    band = _band(rewriter, x)
    quotient = _floor_term(x / y + band)
    whole = quotient.to(rewriter.integer).to(x.kind.element_type)
    rest = x - whole * y
    upward = where(y < 0.0, -rest, rest)
    size = y.magnitude()
    low, high = upward < -band, upward > size - band
    change = where(high, 1.0, where(low, -1.0, x.like(0.0)))
    upward = where(high, upward - size, where(low, upward + size, upward))
    upward = where(upward < band, 0.0, upward)  # a multiple up to rounding
    return quotient + change, where(y < 0.0, -upward, upward)


def divide_integers(rewriter: Rewriter) -> None:
    """Rewrite integer division and remainder to corrected division of floats.

    libspu divides integers as floats, with the relative error of floats: 10^9 // 10 is 99,336,133
    in FM64.
    """
    known: dict[tuple[ir.Value, ir.Value], tuple[Term, Term]] = {}
    for op in rewriter.ops("divide", "remainder"):
        if is_float(op.results[0]) or all(splat_of(each) is not None for each in op.operands):
            continue
        pair = op.operands[0], op.operands[1]
        with rewriter.before(op):
            if pair not in known or op.parent != rewriter.main:
                known[pair] = _divide(rewriter, *map(Term, pair))
            replace(op, known[pair][0 if op.name == "stablehlo.divide" else 1])


def _divide(rewriter: Rewriter, x: Term, y: Term) -> tuple[Term, Term]:
    """Return integer quotient and remainder, rounded towards zero; by 0, all ones and the dividend.

    They are computed in a signed type that holds both operands: a compiler assumes that an unsigned
    number is not below 0.
    """
    element = x.kind.element_type
    a, b = (term.to(rewriter.integer) for term in (x, y))
    negative = [] if element.is_unsigned else [term < 0 for term in (a, b)]
    if negative:
        a, b = a.magnitude(), b.magnitude()
    number, power = splat_of(y.value), _power_of_two(rewriter, y)
    constant = abs(int(number)) if number else None
    quotient, rest = (
        _quotient(rewriter, a, b, element.width - (not element.is_unsigned), constant)
        if power is None
        else _shifted(rewriter, a, b, power)
    )
    if negative:
        quotient = where(negative[0] ^ negative[1], -quotient, quotient)
        rest = where(negative[0], -rest, rest)
    if not number:  # by zero, XLA gives a number of ones in binary, and the dividend as the rest
        ones = rewriter.public(2**element.width - 1 if element.is_unsigned else -1, element)
        return where(y.equals(0), ones, quotient.to(element)), rest.to(element)
    return quotient.to(element), rest.to(element)


def _quotient(
    rewriter: Rewriter, a: Term, b: Term, bits: int, constant: int | None
) -> tuple[Term, Term]:
    """Return the quotient of positive integers, and the remainder.

    Each iteration divides the rest as floats, in units of a power of two if the quotient would not
    fit otherwise. If the rest does not fit either, the divisor is large, and both are scaled down.
    """
    single = ir.F32Type.get()
    total, rest = a.like(0), a
    for turn in _turns(rewriter, bits):
        dividend, divisor = _scaled_down(rewriter, rest.to(single), turn.unit), b.to(single)
        if constant is not None:
            found = times(rewriter, dividend, 1 / constant, precise=0)
        else:
            if turn.excess > 0:
                large = dividend > 2.0**turn.room
                dividend, divisor = (
                    where(large, _scaled_down(rewriter, each, turn.excess), each)
                    for each in (dividend, divisor)
                )
            found = dividend / divisor
        found = found.to(a.kind.element_type) * (1 << turn.unit)
        total, rest = total + found, rest - found * b
    low, high = rest < 0, rest >= b  # it is off by one at most
    total = total + where(high, 1, where(low, -1, a.like(0)))
    return total, rest - where(high, b, where(low, -b, a.like(0)))


def _scaled_down(rewriter: Rewriter, x: Term, power: int) -> Term:
    return times(rewriter, x, 2.0**-power) if power else x


def _power_of_two(rewriter: Rewriter, y: Term) -> int | None:
    """Return the exponent of a power-of-two divisor, if the product by its reciprocal is exact."""
    number = splat_of(y.value)
    if number is None or not 0 < int(number) < 2 ** (rewriter.target.fxp // 2):
        return None
    power = int(number).bit_length() - 1
    fits = 2.0 ** (y.kind.element_type.width - 1) < rewriter.target.factors
    return power if int(number) == 1 << power and fits else None


def _shifted(rewriter: Rewriter, a: Term, b: Term, power: int) -> tuple[Term, Term]:
    single = ir.F32Type.get()
    scaled = rewriter.scaled(a.to(single), 2.0**-power)
    quotient = (scaled + _band(rewriter, scaled)).to(a.kind.element_type)
    return quotient, a - quotient * b


@dataclass(frozen=True, slots=True)
class _Turn:
    """One iteration of a division; all numbers are exponents of two.

    Attributes:
        unit: unit of the quotient.
        room: maximum size of a dividend.
        excess: how much larger the rest may be, in units.
    """

    unit: int
    room: int
    excess: int


def _turns(rewriter: Rewriter, bits: int) -> list[_Turn]:
    """Return the iterations for dividends of ``bits`` bits."""
    target = rewriter.target
    room, exact = int(math.log2(target.factors)) - 1, target.fxp - 2
    bits = min(bits, int(math.log2(target.limit)))
    left, turns = bits, list[_Turn]()
    while left > 0:
        unit = max(0, left - room)
        turns.append(_Turn(unit, room, bits - unit - room))
        left = max(left - exact, unit + 1 if unit else 0)
    return turns
