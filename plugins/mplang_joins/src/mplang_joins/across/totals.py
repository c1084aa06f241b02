"""Aggregates of a join on shares: a function of arrays, which JAX traces for an SPU."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
from jax import Array

from mplang_joins.across.first import come_first
from mplang_joins.across.fitting import by_row, fit, over_rows
from mplang_joins.across.having import GroupNumber, holds
from mplang_joins.across.plan import AggregatePlan, Product, Reduced, SharePlan, Total
from mplang_joins.across.spread import variance
from mplang_joins.aligned import THERE, Sorted, any_of, fetched
from mplang_joins.rows import Side

Factors: TypeAlias = Sequence[Array]
"""Of each factor of a side the numbers in the rows of the first one, and limbs of their absolute
values; ``[1 + limbs, groups, rows]``."""


class GroupNumbers(NamedTuple):
    """Aggregates by group, zero where the group is not there.

    Attributes:
        valid: whether the group is there; ``None`` if it always is.
        values: the aggregates that the result has.
        present: of each aggregate whether it is not null; ``None`` if it never is.
        fits: whether all integers fit; ``None`` if there are none.
    """

    valid: Array | None
    values: list[Array]
    present: list[Array | None]
    fits: Array | None


def answer(sides: Sequence[Reduced], plan: SharePlan) -> GroupNumbers:
    """Return the aggregates of a join.

    All sides' rows are sorted once by token. The rows of one key stand one behind the other then;
    each aggregate is a sum over all keys of products of the sides' factors, a product of matrices.

    Args:
        sides: what the owners reduced their rows to.
        plan: what is computed.

    Returns:
        Arrays of the shape ``[groups]``: of those of all sides together, the last side's run
        fastest.
    """
    joined = _chosen(_joined(sides, plan), plan)
    numbers = [_number(joined, each, plan) for each in plan.wanted]
    valid = None if plan.rows is None else _total(joined, plan.rows) > 0
    for condition in plan.having:
        true, _ = holds(condition, numbers)
        valid = true if valid is None else valid & true
    numbers, fits = [numbers[i] for i in plan.shown], fit(joined, plan)
    if valid is not None and plan.first is not None:
        valid = come_first(valid, numbers, plan.first)
    if valid is None:
        values = [each.value for each in numbers]
        return GroupNumbers(None, values, [each.present for each in numbers], fits)
    present = [None if each.present is None else each.present & valid for each in numbers]
    values = [jnp.where(valid, each.value, 0) for each in numbers]
    return GroupNumbers(valid, values, present, fits)


def _chosen(joined: Sequence[Factors], plan: SharePlan) -> Sequence[Factors]:
    """Return the factors, those of one side zero where a condition of keys does not hold.

    Those of one side are enough, as each aggregate is of products of all.
    """
    if not plan.where:
        return joined
    numbers = []
    for each in plan.values:
        value, known = (joined[each.side][i][0].sum(axis=0) for i in (each.value, each.known))
        numbers.append(GroupNumber(value, each.scale, known > 0))
    true = reduce(operator.and_, [holds(each, numbers)[0] for each in plan.where])
    sizes = [sum(each[..., 0].size for each in side) for side in joined]
    fewest = sizes.index(min(sizes))
    masked = [each * true.astype(each.dtype)[None, None, :] for each in joined[fewest]]
    return [masked if i == fewest else side for i, side in enumerate(joined)]


def _number(joined: Sequence[Factors], wanted: AggregatePlan, plan: SharePlan) -> GroupNumber:
    total, scale = _total(joined, wanted.total), wanted.total.scale
    if wanted.known is None:
        return GroupNumber(total, scale, None)
    count = _total(joined, wanted.known)
    if wanted.function in ("min", "max"):
        return GroupNumber(_extreme(joined, wanted), scale, count > 0)
    if wanted.function == "sum":
        return GroupNumber(total, scale, count > 0)
    if wanted.squares is not None:
        squares, least = _total(joined, wanted.squares), 1 if wanted.function == "var_pop" else 2
        made = variance(total, squares, count, plan.most[1], sample=least == 2)
        return GroupNumber(made, None, count >= least)
    divisor = jnp.maximum(count, 1) * 10 ** (scale or 0)
    return GroupNumber(total.astype("float64") / divisor.astype("float64"), None, count > 0)


def _extreme(joined: Sequence[Factors], wanted: AggregatePlan) -> Array:
    """Return the least or the largest value of the rows of each group; zero if there is none."""
    assert wanted.known is not None
    values, there = (
        reduce(
            by_row, [side[i][0] for side, i in zip(joined, each.products[0].factors, strict=True)]
        )
        for each in (wanted.total, wanted.known)
    )  # [groups, rows]; values are zero where nothing is there
    beyond = 2**wanted.beyond if wanted.total.scale is not None else 2.0**wanted.beyond
    if wanted.function == "max":
        beyond = -beyond
    chosen = (jnp.min if wanted.function == "min" else jnp.max)(
        values + (1 - there).astype(values.dtype) * beyond, axis=1
    )
    return jnp.where(jnp.any(there > 0, axis=1), chosen, 0)


def _total(joined: Sequence[Factors], total: Total) -> Array:
    return reduce(jnp.add, [_product(joined, each) for each in total.products])


def _product(joined: Sequence[Factors], product: Product) -> Array:
    first, *others = (side[i][0] for side, i in zip(joined, product.factors, strict=True))
    if not others:
        return first.sum(axis=1)
    *middle, last = others
    for each in middle:
        first = by_row(first, each)
    total = over_rows(first, last)
    return total if product.times == 1 else total * product.times


def _joined(sides: Sequence[Reduced], plan: SharePlan) -> list[Factors]:
    """Return the factors of all sides in the rows of the first one, zero where others have none.

    Those of the first one are not masked: in other rows than its own all others are zero.
    """
    if plan.union:
        each_factor = zip(*(side.factors for side in sides), strict=True)
        return [[jnp.concatenate(factors, axis=-1) for factors in each_factor]]
    by = _in_one_order if sides[0].tokens is None else _by_sort
    first, leads, others = by(sides, plan)
    joined = [first]
    for (here, factors), how, absent in zip(others, plan.hows[1:], plan.absent[1:], strict=True):
        if how in ("semi", "anti"):
            weight = here if how == "semi" else leads & ~here
            joined.append([weight.astype("int64")[None, None, :]] * len(absent))
        elif how == "left":
            alone = (leads & ~here).astype("int64")[None, None, :]
            kept = zip(factors, absent, strict=True)
            joined.append([each + alone if one else each for each, one in kept])
        else:
            joined.append(factors)
    return joined


class _Other(NamedTuple):
    """A side but the first: where its key is that of a row of the first one, and its factors."""

    here: Array
    factors: Factors


def _in_one_order(
    sides: Sequence[Reduced], plan: SharePlan
) -> tuple[Factors, Array, Sequence[_Other]]:
    """Return the first side's factors, whether it has a row, and the others: in one order."""
    first, *others = sides
    return first.factors, first.there, [_Other(each.there, each.factors) for each in others]


def _by_sort(sides: Sequence[Reduced], plan: SharePlan) -> tuple[Factors, Array, Sequence[_Other]]:
    """Return the first side's factors, whether it has a row, and the others, by their tokens."""
    keeps = any(how in ("left", "anti") for how in plan.hows)
    flat = [Side(each.tokens, None, _flat(each.factors)) for each in sides]
    flat[0] = flat[0]._replace(there=sides[0].there if keeps else None)
    rows = Sorted.of(flat)
    first = _stacked([rows.column(0, name) for name in flat[0].columns], sides[0].factors)
    others = []
    for i in range(1, len(sides)):
        hits = rows.hits(i, everywhere=not keeps)
        here = any_of(hits.values())
        wanted = flat[i].columns if plan.hows[i] in ("inner", "left") else ()
        columns = [fetched(rows.column(i, name), hits, here) for name in wanted]
        others.append(_Other(here, _stacked(columns, sides[i].factors) if wanted else ()))
    return first, rows.column(0, THERE) if keeps else jnp.ones_like(here), others


def _flat(factors: Factors) -> dict[str, Array]:
    return {
        f"{number}.{plane}.{group}": factor[plane, group]
        for number, factor in enumerate(factors)
        for plane in range(factor.shape[0])
        for group in range(factor.shape[1])
    }


def _stacked(columns: Sequence[Array], like: Factors) -> Factors:
    """Return columns as the factors that they were."""
    left = iter(columns)
    return [
        jnp.stack([jnp.stack([next(left) for _ in range(groups)]) for _ in range(planes)])
        for planes, groups, _ in (each.shape for each in like)
    ]
