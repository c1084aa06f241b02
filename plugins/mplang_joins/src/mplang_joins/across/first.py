"""First groups of an order, on shares: nobody learns how the others compare."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array

from mplang_joins.across.having import GroupNumber
from mplang_joins.across.plan import FirstGroups, RankKey
from mplang_joins.rows import Tensor


def come_first(valid: Array, numbers: Sequence[GroupNumber], first: FirstGroups) -> Array:
    """Return which groups come first: as many as are wanted, of those that are there.

    Each group is compared with each other one, and counts those before it.

    Args:
        valid: whether a group is there; ``[groups]``.
        numbers: the aggregates that the result has.
        first: how many, and in which order.

    Example:
        >>> number = GroupNumber(jnp.array([5, 9, 7]), 0)
        >>> largest = FirstGroups(1, (RankKey(0, (), True, False),))
        >>> come_first(jnp.array([True, False, True]), [number], largest).tolist()
        [False, False, True]
    """
    groups = valid.shape[0]
    before: Tensor = np.tri(groups, k=-1, dtype=bool)  # [i, j]: whether j is before i
    for key in reversed(first.order):
        less, equal = _compared(key, numbers)
        before = less | (equal & before)
    ahead = jnp.sum((before & valid[None, :]).astype("int64"), axis=1)
    return valid & (ahead < first.most)


def _compared(key: RankKey, numbers: Sequence[GroupNumber]) -> tuple[Tensor, Tensor]:
    """Return for each two groups whether the second is before the first, and whether equal."""
    if key.labels:
        places = np.array(key.labels)
        return _less(places, key), places[None, :] == places[:, None]
    number = numbers[key.aggregate]
    less, equal = _less(number.value, key), number.value[None, :] == number.value[:, None]
    if number.present is None:
        return less, equal
    there, other = number.present[:, None], number.present[None, :]
    null_first = ~other & there if key.nulls_first else other & ~there
    both = there & other
    return null_first | (both & less), (both & equal) | (~there & ~other)


def _less(values: Tensor, key: RankKey) -> Tensor:
    if key.descending:
        return values[None, :] > values[:, None]
    return values[None, :] < values[:, None]
