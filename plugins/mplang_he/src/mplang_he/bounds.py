"""ColumnBounds of ciphertexts that nobody has yet: sizes of numbers, levels, errors and noise.

Norms are those of the canonical embedding, and hold but for one in 2**55 of independent
coefficients (six standard deviations), as in the papers that they are of.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
from mplang_stablehlo.ext import ElementType

from mplang_he.algebra import Algebra, Plain
from mplang_he.parameters import ERROR, Parameters
from mplang_he.spans import Array, NumberSpan, spans_of

FLOAT = 2.0**-46
"""Relative error of encoding and decoding in floats of 64 bits, which transform 2**15 numbers."""

SCALE = 0.98
"""The scale of a level, as part of that of the parameters, at least: see ``prime_bits``."""

LARGEST = {"f16": 65504.0, "f32": 3.4028234e38, "f64": 1.797e308}
"""The largest float of a type, about."""

BUDGET = 2
"""Bits of noise budget of BFV that a result has at least."""


MASK = np.array([NumberSpan(0, 0), NumberSpan(1, 1)], object)
"""Plain numbers, one for each row, by which what is in other slots is hidden."""


class DoesNotFitError(ValueError):
    """Raised if the parameters have no room for a number, a product or its noise."""


@dataclass(frozen=True, slots=True)
class ColumnBound:
    """Bounds of a column.

    Attributes:
        span: its numbers.
        error: of CKKS how far off they are at most; of BFV the invariant noise at most.
        level: products that it can still be part of, of CKKS.
        pending: whether it is a product that is not finished.
    """

    span: NumberSpan
    error: float
    level: int = 0
    pending: bool = False

    @property
    def size(self) -> float:
        """How large a number is at most, with its error."""
        return self.span.largest + self.error


def span_of(y: Plain) -> tuple[NumberSpan, bool]:
    """Return the span of a plain operand, and whether it has a number for each row."""
    if isinstance(y, NumberSpan):
        return y, False
    span = reduce(lambda a, b: a | b, np.asarray(y, object).ravel().tolist())
    assert isinstance(span, NumberSpan)
    return span, True


class ColumnBounds(Algebra[ColumnBound]):
    """Base of CKKS and BFV.

    Args:
        parameters: of the scheme.
        draft: whether they are not yet chosen, so that everything fits.
    """

    bounded = True

    def __init__(self, parameters: Parameters, *, draft: bool = False) -> None:
        n = parameters.degree
        self.parameters, self.draft = parameters, draft
        weight = 2 * n / 3  # of a secret of independent ternary coefficients
        self.fresh = 8 * math.sqrt(2) * ERROR * n + 6 * ERROR * math.sqrt(n)
        self.fresh += 16 * ERROR * math.sqrt(weight * n)
        self.encoding = 6 * math.sqrt(n / 12)
        self.rounding = math.sqrt(n / 3) * (3 + 8 * math.sqrt(weight))
        digits = len(parameters.primes) - 1
        larger = 2.0 ** (max(parameters.primes) - parameters.primes[-1])
        self.switching = 8 * ERROR * n / math.sqrt(3) * digits * larger + self.rounding

    def alike(self, columns: Sequence[ColumnBound]) -> Sequence[ColumnBound]:
        """Finish the columns of one tensor."""
        return [self.settle(x) for x in columns]

    def plain(self, values: Array) -> Array:
        """Return literals as spans."""
        return spans_of(values)

    @abstractmethod
    def encrypted(self, span: NumberSpan) -> ColumnBound:
        """Return what is known of a fresh ciphertext."""

    def zero(self) -> ColumnBound:
        """Return an encryption of zeros."""
        return self.encrypted(NumberSpan(0, 0))

    def check_float(self, span: NumberSpan, kind: ElementType) -> None:
        """Check that floats are within their type."""
        if not span.largest <= LARGEST.get(kind.name, 0.0):
            raise DoesNotFitError(f"numbers up to {span.largest:.4g} do not fit in {kind.name}")

    @abstractmethod
    def fitted(self, x: ColumnBound) -> ColumnBound:
        """Return a column, for which there is room.

        Raises:
            DoesNotFitError: there is none.
        """

    def kept(self, x: ColumnBound) -> ColumnBound:
        """Multiply by ones in some rows, and by zeros elsewhere."""
        return self.settle(replace(self.multiply_plain(x, MASK), span=x.span))

    @abstractmethod
    def rotated(self, x: ColumnBound) -> ColumnBound:
        """Move numbers to other slots, of a column that is finished."""

    def total(self, terms: Iterable[ColumnBound]) -> ColumnBound:
        """Add columns."""
        return reduce(self.add, terms)

    def sub(self, x: ColumnBound, y: ColumnBound) -> ColumnBound:
        """Subtract two columns."""
        return self.add(x, self.negate(y))

    def negate(self, x: ColumnBound) -> ColumnBound:
        """Negate a column."""
        return replace(x, span=-x.span)

    def check(self, x: ColumnBound | Plain, kind: ElementType) -> None:
        """Check that integers are within their type: ciphertexts do not wrap as it does."""
        span = x.span if isinstance(x, ColumnBound) else x
        if kind.is_float:
            self.check_float(span, kind)
            return
        if not (kind.limits.low <= span.low and span.high <= kind.limits.high):
            raise DoesNotFitError(
                f"numbers from {span.low:,} to {span.high:,} do not fit in {kind.name}: convert "
                "operands to a wider type before, or declare narrower ranges"
            )


def _product(x: ColumnBound, y: ColumnBound) -> NumberSpan:
    return x.span.squared() if x is y else x.span * y.span


@dataclass(slots=True)
class DraftSizes:
    """The largest numbers that a draft has come by, by level and whether they are products."""

    largest: dict[tuple[int, bool], float] = field(default_factory=dict)

    def record(self, x: ColumnBound) -> ColumnBound:
        """Record a column, and return it."""
        at = x.level, x.pending
        self.largest[at] = max(self.largest.get(at, 0.0), x.size)
        return x

    @property
    def depth(self) -> int:
        """How many products one after the other there are."""
        return -min((level for level, _ in self.largest), default=0)

    def head(self) -> float:
        """Return how large numbers are where there is least room for them."""
        last = [(-self.depth, False), (1 - self.depth, True)]
        return max((self.largest.get(at, 0.0) for at in last), default=0.0)


class CkksBounds(ColumnBounds):
    """Errors and levels of CKKS (Cheon, Kim, Kim, Song, ASIACRYPT 2017, lemmas 1 to 4)."""

    def __init__(self, parameters: Parameters, *, draft: bool = False) -> None:
        super().__init__(parameters, draft=draft)
        self.seen = DraftSizes()
        self.scale = SCALE * 2.0**parameters.plain
        self.rescaling = 1.01 * self.rounding / self.scale

    def encrypted(self, span: NumberSpan) -> ColumnBound:
        """Return what is known of a fresh ciphertext."""
        error = (self.fresh + self.encoding) / self.scale + span.largest * FLOAT
        return self.fitted(ColumnBound(span, error, 0 if self.draft else self.parameters.levels))

    def add(self, x: ColumnBound, y: ColumnBound) -> ColumnBound:
        """Add two columns, at the lower level of both."""
        x, y = self._aligned(x, y)
        fresh = self.fresh / self.scale ** (2 if x.pending else 1)  # if what is added shows
        error = x.error + y.error + fresh
        return self.fitted(replace(x, span=x.span + y.span, error=error))

    def add_plain(self, x: ColumnBound, y: Plain) -> ColumnBound:
        """Add plain numbers."""
        span, rows = span_of(y)
        error = x.error + self._encoded(span, rows, self.scale * (self.scale if x.pending else 1))
        return self.fitted(replace(x, span=x.span + span, error=error))

    def multiply(self, x: ColumnBound, y: ColumnBound) -> ColumnBound:
        """Multiply two columns."""
        a, b = self._aligned(self.settle(x), self.settle(y))
        error = a.error * b.size + b.error * a.span.largest + self.switching / self.scale**2
        return self._multiplied(a, ColumnBound(_product(x, y), error, a.level, True))

    def multiply_plain(self, x: ColumnBound, y: Plain) -> ColumnBound:
        """Multiply by plain numbers."""
        x = self.settle(x)
        span, rows = span_of(y)
        error = x.error * span.largest + x.size * self._encoded(span, rows, self.scale)
        error += self.fresh / self.scale**2  # of zeros, which are encrypted anew
        return self._multiplied(x, ColumnBound(x.span * span, error, x.level, True))

    def settle(self, x: ColumnBound) -> ColumnBound:
        """Rescale a product, which takes a level."""
        if not x.pending:
            return x
        return self.fitted(ColumnBound(x.span, x.error + self.rescaling, x.level - 1))

    def masked(self, x: ColumnBound) -> ColumnBound:
        """Multiply by ones where there are rows."""
        return self.kept(x)

    def rotated(self, x: ColumnBound) -> ColumnBound:
        """Move numbers to other slots, of a column that is finished."""
        return replace(x, error=x.error + 1.01 * self.switching / self.scale)

    def result(self, x: ColumnBound) -> ColumnBound:
        """Return what is known of a result, to which an encryption of zero is added."""
        x = self.settle(x)
        return replace(x, error=x.error + self.fresh / self.scale + x.size * FLOAT)

    def _encoded(self, span: NumberSpan, rows: bool, scale: float) -> float:
        return (self.encoding if rows else 1.0) / scale + span.largest * FLOAT

    def _aligned(self, x: ColumnBound, y: ColumnBound) -> tuple[ColumnBound, ColumnBound]:
        if x.pending != y.pending or x.level != y.level:
            x, y = self.settle(x), self.settle(y)
        level = min(x.level, y.level)
        return self._lowered(x, level), self._lowered(y, level)

    def alike(self, columns: Sequence[ColumnBound]) -> Sequence[ColumnBound]:
        """Finish the columns of one tensor, and bring them to one level."""
        settled = [self.settle(x) for x in columns]
        level = min((x.level for x in settled), default=0)
        return [self.fitted(self._lowered(x, level)) for x in settled]

    def _lowered(self, x: ColumnBound, level: int) -> ColumnBound:
        if x.level == level:
            return x
        return replace(x, level=level, error=x.error + x.size / self.scale + self.rescaling)

    def _multiplied(self, x: ColumnBound, made: ColumnBound) -> ColumnBound:
        if not self.draft and x.level < 1:
            raise DoesNotFitError(
                f"it is one product more than its parameters have levels for "
                f"({self.parameters.levels})"
            )
        return self.fitted(made)

    def fitted(self, x: ColumnBound) -> ColumnBound:
        """Return a column, whose numbers fit in the modulus of its level."""
        if self.draft:
            return self.seen.record(x)
        primes, scale = self.parameters.primes, self.parameters.plain
        have = sum(primes[: x.level + 1]) - (2 * scale if x.pending else scale) - 1.5
        if math.log2(max(x.size, 2.0**-1000)) > have:
            raise DoesNotFitError(
                f"numbers up to {x.size:.4g} do not fit in its modulus, which has room for "
                f"{2.0**have:.4g}"
            )
        return x


class BfvBounds(ColumnBounds):
    """Noise of BFV (Costache, Laine, Player, ESORICS 2020, section 3)."""

    def __init__(self, parameters: Parameters, *, draft: bool = False) -> None:
        super().__init__(parameters, draft=draft)
        n, t = parameters.degree, 2.0**parameters.plain
        modulus = 2.0 ** (sum(parameters.primes[:-1]) - 0.01 * len(parameters.primes))
        self.unit = t / modulus
        self.growth = t * math.sqrt(3 * n + 2 * n * n)
        self.products = self.unit * math.sqrt(3 * n + 2 * n * n + 4 * n**3 / 3)
        self.vector = t * self.encoding
        self.added = self.unit * n  # rounding of what is added

    def encrypted(self, span: NumberSpan) -> ColumnBound:
        """Return what is known of a fresh ciphertext."""
        return ColumnBound(span, self.unit * self.fresh + self.added)

    def add(self, x: ColumnBound, y: ColumnBound) -> ColumnBound:
        """Add two columns."""
        noise = x.error + y.error + self.unit * self.fresh
        return ColumnBound(x.span + y.span, noise, pending=x.pending or y.pending)

    def add_plain(self, x: ColumnBound, y: Plain) -> ColumnBound:
        """Add plain numbers."""
        return replace(x, span=x.span + span_of(y)[0], error=x.error + self.added)

    def multiply(self, x: ColumnBound, y: ColumnBound) -> ColumnBound:
        """Multiply two columns."""
        a, b = self.settle(x).error, self.settle(y).error
        noise = self.growth * (a + b) + 3 * a * b + self.products
        return self.fitted(ColumnBound(_product(x, y), noise, pending=True))

    def multiply_plain(self, x: ColumnBound, y: Plain) -> ColumnBound:
        """Multiply by plain numbers."""
        span, rows = span_of(y)
        x = self.settle(x)
        by = self.vector if rows else max(span.largest, 1.0)
        return self.fitted(ColumnBound(x.span * span, x.error * by + self.unit * self.fresh))

    def check_float(self, span: NumberSpan, kind: ElementType) -> None:
        """Refuse floats."""
        raise DoesNotFitError("BFV has integers alone, and the function has floats")

    def settle(self, x: ColumnBound) -> ColumnBound:
        """Relinearize a product."""
        if not x.pending:
            return x
        return self.fitted(ColumnBound(x.span, x.error + self.unit * self.switching))

    def rotated(self, x: ColumnBound) -> ColumnBound:
        """Move numbers to other slots, of a column that is finished."""
        return self.fitted(replace(x, error=x.error + self.unit * self.switching))

    def masked(self, x: ColumnBound) -> ColumnBound:
        """Add random numbers where there are no rows."""
        return replace(x, error=x.error + self.added)

    def result(self, x: ColumnBound) -> ColumnBound:
        """Return what is known of a result, to which an encryption of zero is added."""
        x = self.settle(x)
        return self.fitted(replace(x, error=x.error + self.unit * self.fresh))

    def fitted(self, x: ColumnBound) -> ColumnBound:
        """Return a column, whose noise leaves a budget."""
        if not self.draft and budget_of(x.error) < BUDGET:
            raise DoesNotFitError(
                f"its noise leaves {budget_of(x.error)} bits of budget, and {BUDGET} are needed"
            )
        return x


def budget_of(noise: float) -> int:
    """Return the bits of noise budget that an invariant noise leaves at least."""
    return math.floor(-math.log2(2 * noise)) if noise > 0 else 1000


def noise_of(budget: int) -> float:
    """Return the noise that leaves a budget; the inverse of :func:`budget_of`."""
    return 2.0 ** -(budget + 1)


def bounds_of(parameters: Parameters) -> ColumnBounds:
    """Return the bounds of a scheme."""
    return CkksBounds(parameters) if parameters.scheme == "ckks" else BfvBounds(parameters)
