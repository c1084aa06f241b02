"""Data of float32 that is compared with constants of 64 bits: the user is told, with the line."""

from __future__ import annotations

import importlib
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mplang_core as mp
from mplang_core.errors import PrecisionWarning

pytestmark = pytest.mark.once

X = np.float32([1.1, 2.0, 4.32])
WIDE = [1.1, 2.0, 4.32]


def told(fn, x=X):
    """Return the lines and texts of the warnings of a function that is compiled."""
    kind = mp.MPType(mp.TensorType.of(x), mp.Mask.of(0))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", PrecisionWarning)
        mp.compile(mp.device("P0")(fn), kind, cluster_spec=mp.ClusterSpec.simple(2))
    return [
        (each.filename, str(each.message)) for each in found if each.category is PrecisionWarning
    ]


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x == jnp.array(WIDE),
        lambda x: (x[:, None] == jnp.array(WIDE)).astype(jnp.float32),
        lambda x: x >= np.array(WIDE),
        lambda x: jnp.isin(x, jnp.array(WIDE)),
        lambda x: jnp.searchsorted(jnp.array([0.1, 0.2]), x),
        lambda x: jax.vmap(lambda v: v == jnp.array(WIDE))(x),
        lambda x: jax.lax.fori_loop(0, 2, lambda i, s: s + (x != jnp.array(WIDE)), jnp.zeros(3)),
        lambda x: jax.lax.cond(True, lambda v: v < jnp.array(WIDE), lambda v: v > 1, x),
    ],
    ids=["eq", "one-hot", "NumPy", "isin", "searchsorted", "vmap", "loop", "cond"],
)
def test_a_constant_that_no_float32_is_is_told_with_line_and_remedy(fn):
    ((file, text), *_) = told(fn)
    assert file == __file__
    assert "compares float32 with a constant of 64 bits" in text
    assert "Write jnp.float32(...) around the constant" in text


def test_it_is_told_each_time_also_of_a_function_that_was_compiled_before():
    def fn(x):
        return x == jnp.array(WIDE)

    first = told(fn)
    assert first
    assert told(fn) == first


@pytest.mark.needs("spu")
def test_spu_tells_it_each_time_as_well():
    def fn(x):
        return x == jnp.array(WIDE)

    def shown():
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always", PrecisionWarning)
            mp.compile(lambda x: mp.device("SP0")(fn)(mp.put("P0", x)), X, cluster_spec=cluster)
        return [str(each.message) for each in found if "64 bits" in str(each.message)]

    cluster = mp.ClusterSpec.simple(2)
    first = shown()
    assert len(first) == 1
    assert shown() == first


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x == 1.1,
        lambda x: x == jnp.float32(WIDE),
        lambda x: (x == jnp.array([0.5, 2.0, 4.25])) * np.float64(2),
        lambda x: x.astype("float64") == np.array([1, 2, 3]),
        lambda x: x + np.array(WIDE) > 0,
    ],
    ids=["a number", "the remedy", "exact", "integers", "a sum"],
)
def test_nothing_is_told_of_what_is_exact(fn):
    assert told(fn) == []


def test_the_remedies_give_what_is_meant(simulate):
    sim = simulate(1)
    with mp.with_ctx(sim):
        narrow, wide = mp.put("P0", X), mp.put("P0", np.float64(WIDE))
        for fn, x in (
            (lambda x: x == jnp.float32(WIDE), narrow),
            (lambda x: x == jnp.array(WIDE), wide),
        ):
            assert mp.fetch(sim, mp.device("P0")(fn)(x)).all()


@pytest.mark.needs("spu")
def test_the_line_is_the_users_where_spu_has_its_own_function():
    """SPU has a search of its own in place of JAX's, in the process in which it was imported."""
    importlib.import_module("mplang_spu.engine")
    ((file, _), *_) = told(lambda x: jnp.searchsorted(jnp.array([0.1, 0.2]), x))
    assert file == __file__
