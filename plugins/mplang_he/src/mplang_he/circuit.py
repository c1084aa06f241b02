"""Functions on ciphertexts, by their code: parameters, and types of results. Imports JAX late."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from mplang_stablehlo import read

from mplang_core import TensorType
from mplang_he.parameters import Parameters, ResultNeeds, Scheme, sum_steps
from mplang_he.types import HeCiphertextType, outward

if TYPE_CHECKING:
    from jaxlib.mlir import ir

    from mplang_he.bounds import ColumnBound
    from mplang_he.choice import Circuit


ROUNDING = {"f16": 2.0**-11, "f32": 2.0**-24, "f64": 2.0**-53}
"""Relative error of a number that is rounded to a type."""


@dataclass(frozen=True, slots=True)
class FunctionOperand:
    """Operand of a function.

    Attributes:
        type: of the tensor.
        low: no number is smaller.
        high: no number is larger.
        sealed: its ciphertext, if it is one already.
        encrypted: whether it is one, or is to be.
    """

    type: TensorType
    low: float
    high: float
    sealed: HeCiphertextType | None = None
    encrypted: bool = False

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self.type.shape[0 if self.sealed is None else self.sealed.axis]


@lru_cache(256)
def parameters_for(
    code: bytes, scheme: Scheme, operands: tuple[FunctionOperand, ...], wanted: ResultNeeds
) -> Parameters:
    """Return the smallest parameters that have room for a function.

    Args:
        code: of the function, compressed StableHLO.
        scheme: of the ciphertexts.
        operands: none of which is sealed.
        wanted: what results have beside their range.

    Raises:
        OpError: an op has no room, or is none of ciphertexts.
        DoesNotFitError: a result has no room.
    """
    from mplang_he.choice import choose

    return choose(scheme, _circuit(code, operands), wanted)


@lru_cache(256)
def roomy_parameters(scheme: Scheme, levels: int, limit: float) -> Parameters:
    """Return the smallest parameters that have room for some products of numbers up to a limit.

    Raises:
        ValueError: there are none.
    """
    from mplang_he.choice import with_room

    return with_room(scheme, levels, limit)


@lru_cache(256)
def results_of(
    code: bytes, parameters: Parameters, operands: tuple[FunctionOperand, ...]
) -> tuple[HeCiphertextType, ...]:
    """Return the types of a function's results.

    Args:
        code: of the function, compressed StableHLO.
        parameters: of the ciphertexts.
        operands: those that are encrypted are sealed.

    Raises:
        OpError: an op has no room, or is none of ciphertexts.
        ValueError: the code is none, or takes other operands.
    """
    from mplang_stablehlo import signature_of

    from mplang_he.bounds import bounds_of
    from mplang_he.columns import Columns

    takes, gives = signature_of(code)
    kinds = tuple(each.type for each in operands)
    if kinds != takes:
        raise ValueError(f"the code takes {[*map(str, takes)]}, got {[*map(str, kinds)]}")
    try:
        made = _circuit(code, operands).run(bounds_of(parameters))
    except (ArithmeticError, LookupError, AttributeError, AssertionError) as error:
        raise ValueError(f"its numbers cannot be bounded: {type(error).__name__}") from error
    types = []
    for kind, value in zip(gives, made, strict=True):
        if not isinstance(value, Columns):
            raise ValueError(
                "a result does not depend on encrypted operands: compute it at the party that has "
                "its operands, on its own device"
            )
        assert isinstance(kind, TensorType)
        types.append(_type(kind, parameters, value.axis, value.cells.ravel().tolist()))
    return tuple(types)


def _type(
    kind: TensorType, parameters: Parameters, axis: int, columns: Sequence[ColumnBound]
) -> HeCiphertextType:
    """Return the type of a result, by the worst of its columns."""
    from mplang_he.bounds import budget_of

    low = min((each.span.low for each in columns), default=0)
    high = max((each.span.high for each in columns), default=0)
    error = max((each.error for each in columns), default=0.0)
    is_ckks = parameters.scheme == "ckks"
    if is_ckks:  # decrypting rounds to the type
        error += ROUNDING.get(kind.dtype.value, 0.0) * max(abs(low), abs(high))
    left = min((each.level for each in columns), default=0) if is_ckks else budget_of(error)
    ends = outward(low, up=False), outward(high, up=True)
    return HeCiphertextType(
        kind, parameters, axis, min(left, 1000), *ends, outward(error, up=True) if is_ckks else 0.0
    )


def fresh(kind: TensorType, parameters: Parameters, low: float, high: float) -> HeCiphertextType:
    """Return the type of a tensor that was just encrypted, with its rows along the first axis."""
    from mplang_he.bounds import bounds_of
    from mplang_he.spans import NumberSpan

    bound = bounds_of(parameters).encrypted(NumberSpan(low, high))
    return _type(kind, parameters, 0, [bound])


def summed(kind: HeCiphertextType) -> HeCiphertextType:
    """Return the type of the sum of all rows.

    Raises:
        ValueError: there is no room for it.
    """
    from mplang_he.bounds import bounds_of
    from mplang_he.spans import NumberSpan

    bounds = bounds_of(kind.parameters)
    total = replace(bounds.kept(_bound(bounds, kind)), span=NumberSpan(0, 0))
    for _ in range(kind.blocks - 1):
        total = bounds.add(total, total)
    for _ in sum_steps(kind.parameters):
        total = bounds.add(total, bounds.rotated(total))
    sums = NumberSpan(min(0, kind.rows * kind.low), max(0, kind.rows * kind.high))
    total = bounds.fitted(replace(total, span=sums))  # on the way sums are of some of the rows
    return _type(_of_rows(kind, 1), kind.parameters, kind.axis, [bounds.result(total)])


def rolled(kind: HeCiphertextType) -> HeCiphertextType:
    """Return the type of the rows in a circle.

    Raises:
        ValueError: there is no room for it, or it has more rows than slots that rotate together.
    """
    from mplang_he.bounds import bounds_of

    if kind.rows > kind.parameters.degree // 2:
        raise ValueError(f"up to {kind.parameters.degree // 2} rows are rolled, got {kind.rows}")
    bounds = bounds_of(kind.parameters)
    part = bounds.kept(bounds.rotated(_bound(bounds, kind)))
    both = replace(bounds.add(part, part), span=part.span)
    return _type(kind.inner, kind.parameters, kind.axis, [bounds.result(both)])


def _of_rows(kind: HeCiphertextType, rows: int) -> TensorType:
    shape = list(kind.inner.shape)
    shape[kind.axis] = rows
    return TensorType(kind.inner.dtype, tuple(shape))


def _circuit(code: bytes, operands: Sequence[FunctionOperand]) -> Circuit:
    from mplang_he.choice import Circuit
    from mplang_he.columns import Columns
    from mplang_he.spans import NumberSpan, varying

    def arguments(bounds: Any) -> Sequence[Any]:
        made: list[Any] = []
        for each in operands:
            span = NumberSpan(each.low, each.high)
            if each.type.dtype.value.startswith("f"):  # products of integers have no bound
                span = NumberSpan(float(each.low), float(each.high))
            if not each.encrypted:
                made.append(varying(span, each.type.shape))
                continue
            bound = bounds.encrypted(span) if each.sealed is None else _bound(bounds, each.sealed)
            axis = 0 if each.sealed is None else each.sealed.axis
            shape = each.type.shape[:axis] + each.type.shape[axis + 1 :]
            cells = np.empty(math.prod(shape), object)
            cells[:] = [replace(bound) for _ in cells]  # a square is of one column with itself
            made.append(Columns(cells.reshape(shape), axis, each.type.shape[axis]))
        return made

    return Circuit(module_of(code), arguments, lambda parameters: is_masked(operands, parameters))


def is_masked(operands: Sequence[FunctionOperand], parameters: Parameters) -> bool:
    """Return whether slots of results without rows are hidden.

    There a function is computed, too, on what an encrypting party put there: on more rows than it
    said. That tells of operands that the evaluator has in plain.
    """
    plain = any(not each.encrypted for each in operands)
    rows = [each.rows for each in operands if each.encrypted]
    return plain and any(count % parameters.slots for count in rows)


def _bound(bounds: Any, kind: HeCiphertextType) -> ColumnBound:
    from mplang_he.bounds import ColumnBound, noise_of
    from mplang_he.spans import NumberSpan

    span = NumberSpan(kind.low, kind.high)
    if kind.parameters.scheme == "ckks":
        return ColumnBound(span, kind.error, kind.left)
    return ColumnBound(span, noise_of(kind.left))


def module_of(code: bytes) -> ir.Module:
    """Return the module of a code, of ops that ciphertexts have, with its calls inlined.

    Raises:
        OpRefusedError: it has another op.
    """
    from mplang_stablehlo.ext import prepare

    from mplang_he.admission import HE

    return prepare(HE.admit(read(code)))
