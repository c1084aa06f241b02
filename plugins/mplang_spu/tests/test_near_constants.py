"""Constants that decide about what SPU takes for equal are told while tracing, on every backend."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import pytest
from reference_runs import COARSE, FULL, cluster, line_after

import mplang_core as mp
from mplang_core.errors import PrecisionWarning

F32 = mp.MPType(mp.TensorType("f32", (5,)), mp.Mask.of(0))
SMALL = 1e-5  # 2.6 steps of FM64


def told(fn, config=COARSE):
    """Return what compiling a function of a float32 and its square tells of comparisons."""

    def program(x):
        return mp.reveal(mp.device("SP0")(lambda x: fn(x, x * x))(mp.seal(x)), to="P0")

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        mp.compile(program, F32, cluster_spec=cluster(2, config))
    notes = [each for each in shown if each.category is PrecisionWarning]
    return [each for each in notes if "takes numbers up to" in str(each.message)]


def least(x, y):
    """Select a bound, and leave out elements of it, as sml's average_precision_score does."""
    keys = jnp.sort(jnp.where(x < 0, SMALL, x))
    return (keys * (keys[::-1] != keys)) > 0


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, y: y + SMALL > x,
        lambda x, y: y - SMALL >= x,
        lambda x, y: x < y + SMALL,
        lambda x, y: y == x + SMALL,
        lambda x, y: jnp.where(y < SMALL, 1.0, y),
        lambda x, y: y >= 1e-6,
        lambda x, y: y > -1e-6,
        lambda x, y: x != 1e-6,
        lambda x, y: jnp.maximum(y, SMALL) * (x > 3) > 0,
        least,
        lambda x, y: jax.lax.map(lambda v: v < SMALL, y),
        lambda x, y: jnp.floor(y - SMALL),
        lambda x, y: jnp.ceil(y + SMALL),
    ],
)
def test_a_constant_that_a_tie_hides_is_told_at_its_line(fn):
    (note,) = told(fn)
    assert note.filename == __file__
    first = fn.__code__.co_firstlineno
    assert first <= note.lineno <= first + 3
    assert "1.5e-05 apart for equal" in str(note.message)
    assert not told(fn, FULL)


def test_the_message_tells_the_constant_the_op_and_what_to_do():
    def guarded(x, y):
        size = jnp.abs(y)
        return jnp.where(size < 1e-6, 1.0, y / size)

    (note,) = told(guarded)
    assert note.lineno == line_after(guarded, 2)
    assert str(note.message) == (
        "the constant 1e-06 reaches compare: FM64 with 18 fraction bits takes numbers up to "
        "1.5e-05 apart for equal, so it decides nothing; scale the data up, or take more bits "
        "(field: FM128, fxp_fraction_bits: 40)\nmplang explain N001"
    )


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, y: y > SMALL,  # neither is 0
        lambda x, y: y + SMALL >= x,  # SPU's tolerance is what this one is for
        lambda x, y: y <= SMALL,
        lambda x, y: y < 1e-3,
        lambda x, y: y + 1e-3 > x,
        lambda x, y: y / (x + SMALL) > 0.5,
        lambda x, y: jnp.log(y + SMALL) > 0,
        lambda x, y: jnp.maximum(y, SMALL) > 0.5,
        lambda x, y: jnp.maximum(y, SMALL) / x,
        lambda x, y: jnp.floor(y + SMALL),
        lambda x, y: jnp.median(y) + jnp.quantile(y, 0.3) + jnp.std(y),
        lambda x, y: (jnp.argmax(y), jnp.sort(y), jnp.unique(y, size=5), jnp.round(y, 2)),
        lambda x, y: jnp.histogram(y, bins=4, range=(0, 1))[0],
        lambda x, y: jax.nn.softmax(y) + jax.nn.gelu(x) + jax.nn.sigmoid(y),
    ],
)
@pytest.mark.parametrize("config", [COARSE, FULL], ids=["FM64", "FM128"])
def test_a_constant_that_decides_as_in_float64_is_not_told(fn, config):
    assert not told(fn, config)
