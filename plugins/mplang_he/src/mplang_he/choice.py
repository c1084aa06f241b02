"""Choice of parameters: the smallest ones that have room for a function. Imports JAX."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from mplang_he.algebra import Algebra
from mplang_he.bounds import BfvBounds, CkksBounds, ColumnBound, ColumnBounds, DoesNotFitError
from mplang_he.columns import Columns
from mplang_he.interpreter import ColumnInterpreter, OpError, Value, all_columns
from mplang_he.parameters import (
    BFV_PRIMES,
    MAX_PRIME,
    MODULUS_BITS,
    Parameters,
    ResultNeeds,
    Scheme,
    plain_modulus,
    prime_bits,
)
from mplang_he.spans import NumberSpan

MAX_SCALE = 50

GOOD_SCALE = 35
"""Bits of the scale of what is encrypted for no function that is known."""

Arguments = Callable[[Any], Sequence[Value]]
"""Returns the arguments of a function, of columns that bounds made."""


class Circuit(NamedTuple):
    """A function with what is known of its operands.

    Attributes:
        module: with its calls inlined, and its ops numbered.
        arguments: makes them.
        masked: whether slots without rows are hidden, by parameters.
    """

    module: ir.Module
    arguments: Arguments
    masked: Callable[[Parameters], bool] = lambda parameters: False

    def run(self, bounds: ColumnBounds) -> list[Value]:
        """Run it on bounds, and finish its results.

        Raises:
            OpError: an op does not fit.
        """
        made = ColumnInterpreter(bounds).run(self.module, self.arguments(bounds))
        if self.masked(bounds.parameters):
            made = [each.map(bounds.masked) if isinstance(each, Columns) else each for each in made]
        return [finished(bounds, each) if isinstance(each, Columns) else each for each in made]


def finished(algebra: Algebra[Any], x: Columns) -> Columns:
    """Return a tensor whose columns are finished, at one level, and randomized anew."""
    columns = algebra.alike(x.cells.ravel().tolist())
    return x.like([algebra.result(each) for each in columns])


def choose(scheme: Scheme, circuit: Circuit, wanted: ResultNeeds) -> Parameters:
    """Return the smallest parameters that have room for a function.

    Args:
        scheme: of the ciphertexts.
        circuit: the function.
        wanted: what results are to have.

    Raises:
        OpError: there are none; says which op does not fit in the largest ones.
    """
    return _ckks(circuit, wanted) if scheme == "ckks" else _bfv(circuit, wanted)


def with_room(scheme: Scheme, levels: int, limit: float) -> Parameters:
    """Return the smallest parameters that have room for some products of numbers up to a limit.

    Args:
        scheme: of the ciphertexts.
        levels: how many products there are one after the other.
        limit: how large all results are.

    Raises:
        DoesNotFitError: there are none.
    """
    span = NumberSpan(-limit, limit)
    for degree in MODULUS_BITS:
        if scheme == "ckks":
            made = ckks_parameters(degree, levels, limit)
            if made is not None and made.plain >= GOOD_SCALE:
                return made
            continue
        bits = plain_modulus(degree, math.ceil(limit))
        if bits is not None:
            made = Parameters("bfv", degree, tuple(BFV_PRIMES[degree]), bits)
            if _has_room(BfvBounds(made), span, levels):
                return made
    raise DoesNotFitError(
        f"no parameters have room for {levels} successive products of numbers up to {limit:g}"
    )


def _has_room(bounds: BfvBounds, span: NumberSpan, levels: int) -> bool:
    """Return whether noise leaves a budget after some products."""
    try:
        _multiplied(bounds, bounds.encrypted(span), levels)
    except DoesNotFitError:
        return False
    return True


def _multiplied(bounds: BfvBounds, x: ColumnBound, times: int) -> ColumnBound:
    """Return a column after some products."""
    for _ in range(times):
        x = bounds.settle(bounds.multiply(x, x))
    return bounds.result(x)


def ckks_parameters(degree: int, levels: int, largest: float) -> Parameters | None:
    """Return parameters of CKKS with a number of levels, or ``None``.

    Args:
        degree: of the polynomials.
        levels: how many products there are one after the other.
        largest: how large numbers are.
    """
    if not math.isfinite(largest):
        return None
    head = max(2, math.ceil(math.log2(max(largest, 1.0)) + 2.2))
    scale = min((MODULUS_BITS[degree] - 2 * head) // (levels + 2), MAX_PRIME - head, MAX_SCALE)
    if scale < prime_bits(degree):
        return None
    return Parameters("ckks", degree, (scale + head, *[scale] * levels, scale + head), scale)


def _ckks(circuit: Circuit, wanted: ResultNeeds) -> Parameters:
    error: ValueError = DoesNotFitError("no parameters have room for it")
    for degree, most in MODULUS_BITS.items():
        draft = CkksBounds(Parameters("ckks", degree, (36, 36, 36), 36), draft=True)
        results = circuit.run(draft)
        levels, largest = draft.seen.depth + wanted.spare, draft.seen.head()
        largest = max(largest, _spare_room(results, wanted))
        error = DoesNotFitError(
            f"it has {levels} successive products, of numbers up to {largest:.4g}: no "
            f"modulus of {most} bits has room for that"
        )
        made = ckks_parameters(degree, levels, largest)
        if made is None:
            continue
        try:
            worst = max(map(_relative, all_columns(circuit.run(CkksBounds(made)))), default=0.0)
        except (OpError, DoesNotFitError) as reason:
            error = reason
            continue
        if worst <= wanted.precision:
            return made
        error = DoesNotFitError(
            f"its result may be off by {worst:.2g} of the largest number that its ranges allow, "
            f"and {wanted.precision:g} is the most: say it by precision: of the device"
        )
    raise error


def _spare_room(results: Sequence[Value], wanted: ResultNeeds) -> float:
    """Return how large numbers may become in what comes after a function, sums of rows at least."""
    if not wanted.spare:
        return 0.0
    rows = max((each.rows for each in results if isinstance(each, Columns)), default=1)
    largest = max((each.span.largest for each in all_columns(results)), default=0)
    return max(wanted.limit, float(rows * largest))


def _relative(x: ColumnBound) -> float:
    """Return how far off a result may be, as part of the largest number; of zeros as it is."""
    return x.error / (x.span.largest or 1.0)


def _bfv(circuit: Circuit, wanted: ResultNeeds) -> Parameters:
    draft = BfvBounds(Parameters("bfv", 32768, tuple(BFV_PRIMES[32768]), 24), draft=True)
    results = circuit.run(draft)
    largest = max((int(each.span.largest) for each in all_columns(results)), default=0)
    largest = max(largest, math.ceil(_spare_room(results, wanted)))
    error: ValueError = DoesNotFitError(
        f"its results have {largest.bit_length()} bits, and a plain modulus has {MAX_PRIME - 2} at "
        "most: declare narrower ranges"
    )
    for degree, primes in BFV_PRIMES.items():
        bits = plain_modulus(degree, largest)
        if bits is None:
            continue
        made = Parameters("bfv", degree, tuple(primes), bits)
        try:
            bounds = BfvBounds(made)
            for each in all_columns(circuit.run(bounds)):
                _multiplied(bounds, each, wanted.spare)
        except (OpError, DoesNotFitError) as reason:
            error = reason
        else:
            return made
    raise error
