"""Whether sums on shares fit: they wrap where 64 bits do not hold them, and nobody would see it.

Owners share the absolute values of their sums in limbs as well. The same products of limbs, which
are small, tell how large a sum can be at most; that it is too large is one bit of the result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import reduce

import jax.numpy as jnp
from jax import Array

from mplang_joins.across.limbs import SPARE
from mplang_joins.across.plan import Product, SharePlan, Total
from mplang_joins.across.spread import bits_of_spread


def by_row(a: Array, b: Array) -> Array:
    """Return the products of two sides' numbers of each row, for each pair of their groups.

    Args:
        a: ``[groups of one side, rows]``.
        b: ``[groups of the other, rows]``.

    Returns:
        ``[groups of both, rows]``; those of the second one run fastest.
    """
    return (a[:, None, :] * b[None, :, :]).reshape(-1, a.shape[1])


def over_rows(a: Array, b: Array) -> Array:
    """Return the sums over all rows of :func:`by_row`, by a product of matrices."""
    return jnp.matmul(a, b.T).reshape(-1)


def fit(joined: Sequence[Sequence[Array]], plan: SharePlan) -> Array | None:
    """Return whether all sums of integers fit; ``None`` if there are none.

    Args:
        joined: of each side the factors: numbers, and behind them limbs of their absolute values.
        plan: which sums.
    """
    bits: dict[Total, int] = {}
    for wanted in (each for each in plan.wanted if each.function not in ("min", "max")):
        whole, of_mean = plan.most
        bits[wanted.total] = min(
            bits.get(wanted.total, whole), of_mean if wanted.function == "mean" else whole
        )
        if wanted.squares is not None and wanted.known is not None:
            known, squares = bits_of_spread(joined[0][0].shape[-1])
            bits[wanted.known] = min(bits.get(wanted.known, whole), known)
            bits[wanted.squares] = min(bits.get(wanted.squares, whole), squares)
        elif wanted.known is not None:
            divisor = of_mean - (10 ** (wanted.total.scale or 0)).bit_length()
            most = divisor if wanted.function == "mean" else whole
            bits[wanted.known] = min(bits.get(wanted.known, whole), most)
    if plan.rows is not None:
        bits.setdefault(plan.rows, plan.most[0])
    over = [
        each
        for total, most in bits.items()
        if total.scale is not None
        for each in _over(joined, total, most, plan.width)
    ]
    return ~jnp.any(jnp.concatenate(over)) if over else None


def _over(
    joined: Sequence[Sequence[Array]], total: Total, most: int, width: int
) -> Iterator[Array]:
    """Yield where a part of a sum has too many bits."""
    spare = SPARE + (len(total.products) - 1).bit_length()
    for product in total.products:
        left = most - spare - (abs(product.times) - 1).bit_length()
        for power, part in _parts(joined, product).items():
            yield part >= 2 ** max(0, left - width * power)


def _parts(joined: Sequence[Sequence[Array]], product: Product) -> dict[int, Array]:
    """Return the sum of products of absolute values as digits of a limb's base, by their power."""
    sides = [_limbs(side[i]) for side, i in zip(joined, product.factors, strict=True)]
    parts = dict(enumerate(sides[0]))
    if len(sides) == 1:
        return {power: part.sum(axis=1) for power, part in parts.items()}
    for k, side in enumerate(sides[1:], 1):
        multiply = over_rows if k == len(sides) - 1 else by_row
        made = defaultdict[int, list[Array]](list)
        for power, part in parts.items():
            for more, limb in enumerate(side):
                made[power + more].append(multiply(part, limb))
        parts = {power: reduce(jnp.add, each) for power, each in made.items()}
    return parts


def _limbs(factor: Array) -> list[Array]:
    """Return the limbs of a factor, which is its own one if it is small and never negative."""
    return [*factor[1:]] if factor.shape[0] > 1 else [factor[0]]
