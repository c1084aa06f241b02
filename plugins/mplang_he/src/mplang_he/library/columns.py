"""Real columns: one of SEAL's ciphertexts for each block of rows."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import tenseal.sealapi as seal

from mplang_he.algebra import Algebra, Plain
from mplang_he.library.context import SealContext, SealObject
from mplang_he.spans import Array


@dataclass(frozen=True, slots=True, eq=False)
class SealColumn:
    """Encrypted numbers. Its ciphertexts are never changed.

    Attributes:
        blocks: a ciphertext for each block of rows.
        level: of CKKS, as :class:`mplang_he.bounds.ColumnBound` has it.
        pending: whether it is a product that is not finished.
    """

    blocks: list[SealObject]
    level: int = 0
    pending: bool = False


class SealColumns(Algebra[SealColumn]):
    """Base of CKKS and BFV.

    Args:
        ctx: of the parameters.
        rows: how many rows there are.
        public: the public key.
        relin: the keys by which products are relinearized, where there are any.
    """

    def __init__(
        self, ctx: SealContext, rows: int, public: SealObject, relin: SealObject = None
    ) -> None:
        self.ctx, self.rows = ctx, rows
        self.encryptor = seal.Encryptor(ctx.seal, public)
        self.relin = relin
        slots = ctx.parameters.slots
        self.starts = range(0, rows, slots)

    def alike(self, columns: Sequence[SealColumn]) -> Sequence[SealColumn]:
        """Finish the columns of one tensor."""
        return [self.settle(x) for x in columns]

    def plain(self, values: Array) -> Array:
        """Return literals as they are."""
        return values

    def check(self, x: SealObject, kind: SealObject) -> None:
        """Check nothing: bounds did."""

    def add(self, x: SealColumn, y: SealColumn) -> SealColumn:
        """Add two columns."""
        return self._sum([x, y], self.ctx.evaluator.add)

    def sub(self, x: SealColumn, y: SealColumn) -> SealColumn:
        """Subtract two columns."""
        return self._sum([x, y], self.ctx.evaluator.sub)

    def total(self, terms: Iterable[SealColumn]) -> SealColumn:
        """Add columns, at least one."""
        more = iter(terms)
        first, *rest = itertools.islice(more, 2)
        total = self.add(first, rest[0]) if rest else first
        for term in more:
            if state(total) == state(term):
                self._accumulate(total.blocks, term.blocks)
            else:
                total = self.add(total, term)
        return total

    def negate(self, x: SealColumn) -> SealColumn:
        """Negate a column."""
        return self._each(x, lambda block, _: made(self.ctx.evaluator.negate, block))

    @abstractmethod
    def encrypted(self, values: Array) -> SealColumn:
        """Encrypt numbers, one for each row."""

    def kept(self, x: SealColumn, mask: Array) -> SealColumn:
        """Keep the numbers of some rows, and make all others zeros."""
        return self.settle(self.multiply_plain(x, mask))

    def rotated(self, x: SealColumn, step: int, keys: SealObject) -> SealColumn:
        """Move numbers to the slot that is a step before; step 0 exchanges the halves of BFV."""
        return self._each(x, lambda block, _: self._rotated(block, step, keys))

    def summed(self, x: SealColumn, steps: Sequence[int], keys: SealObject) -> SealColumn:
        """Return the sum of all rows, in each slot."""
        x = self.kept(x, np.ones(self.rows, np.int64))
        total = SealColumn([x.blocks[0]], *state(x))
        for block in x.blocks[1:]:
            total = self.add(total, SealColumn([block], *state(x)))
        for step in steps:
            total = self.add(total, self.rotated(total, step, keys))
        return total

    def rolled(self, x: SealColumn, by: int, keys: SealObject) -> SealColumn:
        """Return the rows in a circle, the one at ``by`` first; of one block."""
        first = (np.arange(self.rows) < self.rows - by).astype(np.int64)
        front = self.kept(self.rotated(x, by, keys), first)
        return self.add(front, self.kept(self.rotated(x, by - self.rows, keys), 1 - first))

    @abstractmethod
    def _rotated(self, block: SealObject, step: int, keys: SealObject) -> SealObject:
        """Move numbers of one ciphertext to other slots."""

    def result(self, x: SealColumn) -> SealColumn:
        """Finish a result, and randomize it anew."""
        x = self.settle(x)
        zero = self.zero(x.level).blocks[: len(x.blocks)]  # a sum of all rows has one block
        return self.add(x, SealColumn(zero, x.level))

    @abstractmethod
    def zero(self, level: int | None = None) -> SealColumn:
        """Return an encryption of zeros."""

    @abstractmethod
    def _aligned(self, x: SealColumn, y: SealColumn) -> tuple[SealColumn, SealColumn]:
        """Return two columns in one state, so that they add up."""

    @abstractmethod
    def _fresh(self, like: SealObject) -> SealObject:
        """Return an encryption of zero in place of a ciphertext that shows its numbers."""

    def _sum(self, terms: Sequence[SealColumn], combine: SealObject) -> SealColumn:
        x, y = self._aligned(*terms)
        blocks = [self._combined(combine, a, b) for a, b in zip(x.blocks, y.blocks, strict=True)]
        return SealColumn(blocks, *state(x))

    def _accumulate(self, sums: list[SealObject], blocks: Sequence[SealObject]) -> None:
        """Add to sums that nobody else has."""
        for i, block in enumerate(blocks):
            try:
                self.ctx.evaluator.add_inplace(sums[i], block)
            except RuntimeError as error:
                sums[i] = self._hidden(error, block, sums[i])

    def _combined(self, combine: SealObject, x: SealObject, y: Plain) -> SealObject:
        result = seal.Ciphertext()
        try:
            combine(x, y, result)
        except RuntimeError as error:
            return self._hidden(error, x, result)
        return result

    def _hidden(self, error: RuntimeError, like: SealObject, result: SealObject) -> SealObject:
        """Return a result that SEAL refuses after it has made it: all can read what is in it.

        That is so where what hides two operands is the same, as in x - (x + 1).
        """
        if "transparent" not in str(error):
            raise error
        fresh = self._fresh(like)
        self.ctx.evaluator.add_inplace(fresh, result)
        return fresh

    def _each(self, x: SealColumn, change: SealObject) -> SealColumn:
        return SealColumn([change(block, i) for i, block in enumerate(x.blocks)], *state(x))

    def block(self, y: SealObject, i: int) -> SealObject:
        """Return the plain numbers of a block: one, or a list of them."""
        values = np.asarray(y)
        if not values.ndim:
            return values.item()
        start = self.starts[i]
        return values[start : start + self.ctx.parameters.slots].tolist()


def state(x: SealColumn) -> tuple[int, bool]:
    """Return what columns have alike that are added."""
    return x.level, x.pending


def made(function: SealObject, *operands: SealObject) -> SealObject:
    """Return what a function of SEAL writes into its last operand."""
    result = seal.Ciphertext()
    function(*operands, result)
    return result
