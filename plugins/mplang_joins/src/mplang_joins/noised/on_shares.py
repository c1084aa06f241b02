"""Noisy aggregates on shares: a function of arrays, which each member traces itself."""

from __future__ import annotations

import operator
from functools import reduce

import jax.numpy as jnp
from jax import Array

from mplang_joins.aligned import in_first_rows
from mplang_joins.noised.form import NoiseForm


def noised(*sides: Array, form: NoiseForm) -> Array:
    """Return an aggregate of the units that all sides have, with the noise of each side.

    Each side draws all the noise that its units ask for, so these are told of by no more than
    ``epsilon`` to all others together.

    Args:
        *sides: what each owner made of its units.
        form: of these.

    Returns:
        The numbers, ``[numbers]``; of a mean it, in steps, ``[1]``.
    """
    aligned = in_first_rows([(x[0], [*x[1 : 1 + form.own(i)]]) for i, x in enumerate(sides)])
    there = reduce(
        operator.mul, [each[0] for i, each in enumerate(aligned) if i != form.side]
    )  # in the rows of the first side; zero where a unit is not at all others
    total = jnp.stack([(each * there).sum() for each in aligned[form.side]])
    noise = [x[1 + form.own(i) :].reshape(-1)[: form.numbers] for i, x in enumerate(sides)]
    noisy = reduce(jnp.add, noise, total)
    fewest = min(x.shape[1] for x in sides)
    return _mean(noisy, form, fewest) if form.statistic == "mean" else noisy


def _mean(noisy: Array, form: NoiseForm, rows: int) -> Array:
    """Return the mean, of a noisy sum and a noisy number of units.

    Both are clipped, by what is public, so that the quotient is one that shares divide right.
    """
    units = jnp.clip(noisy[1:], 1, rows)
    most = units * form.reach
    total = jnp.clip(noisy[:1], -most, most)
    return total.astype("float64") / units.astype("float64") + float(form.middle)
