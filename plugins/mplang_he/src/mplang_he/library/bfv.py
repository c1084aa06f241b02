"""BFV: columns of integers, which are exact modulo the plain modulus."""

from __future__ import annotations

import secrets

import numpy as np
import tenseal.sealapi as seal

from mplang_he.algebra import Plain
from mplang_he.library.columns import SealColumn, SealColumns, made
from mplang_he.library.context import SealContext, SealObject
from mplang_he.spans import Array


class BfvColumns(SealColumns):
    """Arithmetic of columns of integers; see :class:`mplang_he.bounds.BfvBounds`."""

    def encrypted(self, values: Array) -> SealColumn:
        """Encrypt numbers, one for each row."""
        blocks = []
        for i, _ in enumerate(self.starts):
            blocks.append(made(self.encryptor.encrypt, self._encoded(self.block(values, i))))
        return SealColumn(blocks)

    def zero(self, level: int | None = None) -> SealColumn:
        """Return an encryption of zeros."""
        return SealColumn([self._fresh(None) for _ in self.starts])

    def add_plain(self, x: SealColumn, y: Plain) -> SealColumn:
        """Add plain numbers."""

        def change(block: SealObject, i: int) -> SealObject:
            plain = self._encoded(self.block(y, i))
            return made(self.ctx.evaluator.add_plain, block, plain)

        return self._each(x, change)

    def multiply(self, x: SealColumn, y: SealColumn) -> SealColumn:
        """Multiply two columns."""
        a, b = self.settle(x), self.settle(y)
        evaluator = self.ctx.evaluator
        pairs = zip(a.blocks, b.blocks, strict=True)
        blocks = [
            made(evaluator.square, p) if x is y else made(evaluator.multiply, p, q)
            for p, q in pairs
        ]
        return SealColumn(blocks, pending=True)

    def multiply_plain(self, x: SealColumn, y: Plain) -> SealColumn:
        """Multiply by plain numbers."""

        def change(block: SealObject, i: int) -> SealObject:
            numbers = self.block(y, i)
            minus = not isinstance(numbers, list) and numbers < 0  # t - 1 adds the noise of t
            plain = self._encoded(-numbers if minus else numbers)
            if plain.is_zero():
                return self._fresh(None)
            product = made(self.ctx.evaluator.multiply_plain, block, plain)
            return made(self.ctx.evaluator.negate, product) if minus else product

        return self._each(self.settle(x), change)

    def masked(self, x: SealColumn) -> SealColumn:
        """Add random numbers where there are no rows."""
        empty = len(self.starts) * self.ctx.parameters.slots - self.rows
        noise = [secrets.randbelow(self.ctx.plain) for _ in range(empty)]
        return self.add_plain(x, np.array([0] * self.rows + noise))

    def settle(self, x: SealColumn) -> SealColumn:
        """Relinearize a product."""
        if not x.pending:
            return x

        def change(block: SealObject, i: int) -> SealObject:
            if block.size() == 2:
                return block
            return made(self.ctx.evaluator.relinearize, block, self.relin)

        return SealColumn(self._each(x, change).blocks)

    def _rotated(self, block: SealObject, step: int, keys: SealObject) -> SealObject:
        if step == 0:
            return made(self.ctx.evaluator.rotate_columns, block, keys)
        return made(self.ctx.evaluator.rotate_rows, block, step, keys)

    def _aligned(self, x: SealColumn, y: SealColumn) -> tuple[SealColumn, SealColumn]:
        pending = x.pending or y.pending
        return SealColumn(x.blocks, 0, pending), SealColumn(y.blocks, 0, pending)

    def _fresh(self, like: SealObject) -> SealObject:
        return made(self.encryptor.encrypt_zero)

    def _encoded(self, numbers: Plain) -> SealObject:
        t = self.ctx.plain
        if not isinstance(numbers, list):
            return seal.Plaintext(f"{numbers % t:X}")  # a constant polynomial has it in all slots
        plain = seal.Plaintext()
        self.ctx.encoder.encode([(x + t // 2) % t - t // 2 for x in numbers], plain)
        return plain


def decrypted(ctx: SealContext, decryptor: SealObject, x: SealColumn) -> tuple[Array, int]:
    """Return the numbers in the slots of a column, and the noise budget that is left."""
    parts, budgets = [], []
    for block in x.blocks:
        budgets.append(decryptor.invariant_noise_budget(block))
        plain = seal.Plaintext()
        decryptor.decrypt(block, plain)
        parts.append(np.array(ctx.encoder.decode_int64(plain), np.int64))
    return np.concatenate(parts), min(budgets)
