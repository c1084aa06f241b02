"""CKKS: columns of floats. Scales are those of their level, so that columns add up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tenseal.sealapi as seal

from mplang_he.algebra import Plain
from mplang_he.library.columns import SealColumn, SealColumns, made, state
from mplang_he.library.context import SealContext, SealObject
from mplang_he.spans import Array


class CkksColumns(SealColumns):
    """Arithmetic of columns of floats; see :class:`mplang_he.bounds.CkksBounds`."""

    def encrypted(self, values: Array) -> SealColumn:
        """Encrypt numbers, one for each row."""
        top = self.ctx.parameters.levels
        blocks = []
        for i, _ in enumerate(self.starts):
            plain = self._encoded(self.block(values, i), top, self.ctx.scales[top])
            blocks.append(made(self.encryptor.encrypt, plain))
        return SealColumn(blocks, top)

    def zero(self, level: int | None = None) -> SealColumn:
        """Return an encryption of zeros."""
        level = self.ctx.parameters.levels if level is None else level
        return SealColumn([self._zero(level, self.ctx.scales[level]) for _ in self.starts], level)

    def add_plain(self, x: SealColumn, y: Plain) -> SealColumn:
        """Add plain numbers."""

        def change(block: SealObject, i: int) -> SealObject:
            plain = self._encoded(self.block(y, i), x.level, block.scale)
            return made(self.ctx.evaluator.add_plain, block, plain)

        return self._each(x, change)

    def multiply(self, x: SealColumn, y: SealColumn) -> SealColumn:
        """Multiply two columns."""
        a, b = self._aligned(self.settle(x), self.settle(y))
        evaluator = self.ctx.evaluator
        pairs = zip(a.blocks, b.blocks, strict=True)
        blocks = [
            made(evaluator.square, p) if x is y else made(evaluator.multiply, p, q)
            for p, q in pairs
        ]
        return SealColumn(blocks, a.level, True)

    def multiply_plain(self, x: SealColumn, y: Plain) -> SealColumn:
        """Multiply by plain numbers."""
        x = self.settle(x)
        scale = self.ctx.scales[x.level]

        def change(block: SealObject, i: int) -> SealObject:
            plain = self._encoded(self.block(y, i), x.level, scale)
            if plain.is_zero():
                return self._zero(x.level, scale**2)
            return made(self.ctx.evaluator.multiply_plain, block, plain)

        return SealColumn(self._each(x, change).blocks, x.level, True)

    def masked(self, x: SealColumn) -> SealColumn:
        """Multiply by ones where there are rows, and by zeros elsewhere."""
        return self.multiply_plain(x, np.ones(self.rows))

    def settle(self, x: SealColumn) -> SealColumn:
        """Relinearize and rescale a product."""
        if not x.pending:
            return x

        def change(block: SealObject, i: int) -> SealObject:
            if block.size() > 2:
                block = made(self.ctx.evaluator.relinearize, block, self.relin)
            return self._rescaled(block, x.level)

        return SealColumn(self._each(x, change).blocks, x.level - 1)

    def _rotated(self, block: SealObject, step: int, keys: SealObject) -> SealObject:
        return made(self.ctx.evaluator.rotate_vector, block, step, keys)

    def _rescaled(self, block: SealObject, level: int) -> SealObject:
        result = made(self.ctx.evaluator.rescale_to_next, block)
        result.scale = self.ctx.scales[level - 1]
        return result

    def _aligned(self, x: SealColumn, y: SealColumn) -> tuple[SealColumn, SealColumn]:
        if state(x) != state(y):
            x, y = self.settle(x), self.settle(y)
        level = min(x.level, y.level)
        return self._lowered(x, level), self._lowered(y, level)

    def alike(self, columns: Sequence[SealColumn]) -> Sequence[SealColumn]:
        """Finish the columns of one tensor, and bring them to one level."""
        settled = [self.settle(x) for x in columns]
        level = min((x.level for x in settled), default=0)
        return [self._lowered(x, level) for x in settled]

    def _lowered(self, x: SealColumn, level: int) -> SealColumn:
        """Bring a column to a lower level, and its scale to that of the level."""
        if x.level == level:
            return x
        ctx = self.ctx
        scale = ctx.scales[level] * ctx.primes[level + 1] / ctx.scales[x.level]
        one = self._encoded(1.0, level + 1, scale)

        def change(block: SealObject, i: int) -> SealObject:
            lower = made(ctx.evaluator.mod_switch_to, block, ctx.ids[level + 1])
            return self._rescaled(made(ctx.evaluator.multiply_plain, lower, one), level + 1)

        return SealColumn(self._each(x, change).blocks, level)

    def _fresh(self, like: SealObject) -> SealObject:
        level = self.ctx.ids.index(like.parms_id())
        return self._zero(level, like.scale)

    def _zero(self, level: int, scale: float) -> SealObject:
        result = made(self.encryptor.encrypt_zero, self.ctx.ids[level])
        result.scale = scale
        return result

    def _encoded(self, numbers: Plain, level: int, scale: float) -> SealObject:
        plain = seal.Plaintext()
        if isinstance(numbers, list):
            self.ctx.encoder.encode(numbers, self.ctx.ids[level], scale, plain)
        else:
            self.ctx.encoder.encode(float(numbers), self.ctx.ids[level], scale, plain)
        return plain


def decrypted(ctx: SealContext, decryptor: SealObject, x: SealColumn) -> Array:
    """Return the numbers in the slots of a column."""
    parts = []
    for block in x.blocks:
        plain = seal.Plaintext()
        decryptor.decrypt(block, plain)
        parts.append(np.array(ctx.encoder.decode_double(plain)))
    return np.concatenate(parts)
