"""BFV: columns of integers, which are exact modulo the plain modulus."""

from __future__ import annotations

from typing import Any

import numpy as np
import tenseal.sealapi as seal

from mplang_he.library.columns import Array, Column, SealColumns, made
from mplang_he.library.context import Context


class BfvColumns(SealColumns):
    """Arithmetic of columns of integers; see :class:`mplang_he.bounds.BfvBounds`."""

    def encrypted(self, values: Array) -> Column:
        """Encrypt numbers, one for each row."""
        blocks = []
        for i, _ in enumerate(self.starts):
            blocks.append(made(self.encryptor.encrypt, self._encoded(self.block(values, i))))
        return Column(blocks)

    def zero(self, level: int | None = None) -> Column:
        """Return an encryption of zeros."""
        return Column([self._fresh(None) for _ in self.starts])

    def add_plain(self, x: Column, y: Any) -> Column:
        """Add plain numbers."""

        def change(block: Any, i: int) -> Any:
            plain = self._encoded(self.block(y, i))
            return made(self.ctx.evaluator.add_plain, block, plain)

        return self._each(x, change)

    def multiply(self, x: Column, y: Column) -> Column:
        """Multiply two columns."""
        a, b = self.settle(x), self.settle(y)
        evaluator = self.ctx.evaluator
        pairs = zip(a.blocks, b.blocks, strict=True)
        blocks = [
            made(evaluator.square, p) if x is y else made(evaluator.multiply, p, q)
            for p, q in pairs
        ]
        return Column(blocks, pending=True)

    def multiply_plain(self, x: Column, y: Any) -> Column:
        """Multiply by plain numbers."""

        def change(block: Any, i: int) -> Any:
            numbers = self.block(y, i)
            minus = not isinstance(numbers, list) and numbers < 0  # t - 1 adds the noise of t
            plain = self._encoded(-numbers if minus else numbers)
            if plain.is_zero():
                return self._fresh(None)
            product = made(self.ctx.evaluator.multiply_plain, block, plain)
            return made(self.ctx.evaluator.negate, product) if minus else product

        return self._each(self.settle(x), change)

    def settle(self, x: Column) -> Column:
        """Relinearize a product."""
        if not x.pending:
            return x

        def change(block: Any, i: int) -> Any:
            if block.size() == 2:
                return block
            return made(self.ctx.evaluator.relinearize, block, self.relin)

        return Column(self._each(x, change).blocks)

    def _aligned(self, x: Column, y: Column) -> tuple[Column, Column]:
        pending = x.pending or y.pending
        return Column(x.blocks, 0, pending), Column(y.blocks, 0, pending)

    def _fresh(self, like: Any) -> Any:
        return made(self.encryptor.encrypt_zero)

    def _encoded(self, numbers: Any) -> Any:
        t = self.ctx.plain
        if not isinstance(numbers, list):
            return seal.Plaintext(f"{numbers % t:X}")  # a constant polynomial has it in all slots
        plain = seal.Plaintext()
        self.ctx.encoder.encode([(x + t // 2) % t - t // 2 for x in numbers], plain)
        return plain


def decrypted(ctx: Context, decryptor: Any, x: Column) -> tuple[Array, int]:
    """Return the numbers in the slots of a column, and the noise budget that is left."""
    parts, budgets = [], []
    for block in x.blocks:
        budgets.append(decryptor.invariant_noise_budget(block))
        plain = seal.Plaintext()
        decryptor.decrypt(block, plain)
        parts.append(np.array(ctx.encoder.decode_int64(plain), np.int64))
    return np.concatenate(parts), min(budgets)
