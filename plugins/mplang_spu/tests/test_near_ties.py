"""What SPU takes for a tie is told where float64 does not; what rounding decides is not a fault."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference_runs import COARSE, FULL, cluster, line_after, secure

import mplang_core as mp

NEAR = 1e-5  # 2.6 steps of FM64
ONES = np.ones(3, np.float32)
SMALL = np.array([0, NEAR, 0.25], np.float32)
WHOLE = np.array([1, 2, 3], np.float32)
HALVES = np.array([0.5, 1.5, 2.5], np.float32)


def marks(x, w):
    """Mask as sml's average_precision_score does: the bound keeps scores apart from 0."""
    scores = jnp.where(x < 2 * NEAR, NEAR, x) * w
    return jnp.where(scores > 0, 1.0, 0.0).sum()


def last_of_each(x, w):
    """Mark the last of equal keys, as a group-by of sorted keys does."""
    keys = jnp.sort(x * w + jnp.array([0, NEAR, 1], x.dtype))
    return jnp.append(keys[1:] != keys[:-1], True)


TOLD = {
    "select": (marks, SMALL, "compare"),
    "add": (lambda x, w: x * w + NEAR > x * w, WHOLE, "compare"),
    "subtract": (lambda x, w: x * w - NEAR >= x * w, WHOLE, "compare"),
    "less": (lambda x, w: x * w < x * w + NEAR, WHOLE, "compare"),
    "equal": (lambda x, w: x * w == x * w + NEAR, WHOLE, "compare"),
    "not equal": (lambda x, w: x * w != x * w + NEAR, WHOLE, "compare"),
    "array_equal": (lambda x, w: jnp.array_equal(x * w, x * w + NEAR), WHOLE, "compare"),
    "guard": (lambda x, w: jnp.where(x * w < NEAR, 7.0, x), SMALL, "compare"),
    "below the step": (lambda x, w: x >= 1e-6, SMALL, "constant"),
    "data": (lambda x, w: jnp.where(x * w > 0, 1.0, 0.0).mean(), SMALL, "compare"),
    "constant": (lambda x, w: x * w > 1000.0, 1000 * ONES + 0.01, "compare"),
    "function": (lambda x, w: jnp.exp(x) > 1.0, 2 * SMALL, "compare"),
    "unique": (last_of_each, ONES, "compare"),
    "digitize": (lambda x, w: jnp.digitize(x * w - NEAR, WHOLE), WHOLE, "compare"),
    "rank": (lambda x, w: jnp.argsort(jnp.argsort(x * w - 1e-6 * WHOLE)), ONES, "sort"),
    "sort": (lambda x, w: jax.lax.sort((x * w - 1e-6 * WHOLE, WHOLE), num_keys=1)[1], ONES, "sort"),
    "second key": (
        lambda x, w: jax.lax.sort((w, x * w - 1e-6 * WHOLE, WHOLE), num_keys=2)[2],
        ONES,
        "sort",
    ),
    "argmax": (lambda x, w: jnp.argmax(x * w + 1e-6 * WHOLE), ONES, "argmax or argmin"),
    "top_k": (lambda x, w: jax.lax.top_k(x * w + 1e-6 * WHOLE, 2)[1], ONES, "topk"),
    "floor": (lambda x, w: jnp.floor(x * w - NEAR), WHOLE, "floor"),
    "ceil": (lambda x, w: jnp.ceil(x * w + NEAR), WHOLE, "ceil"),
    "convert": (lambda x, w: (x * w - NEAR).astype(int), WHOLE, "convert"),
    "round": (lambda x, w: jnp.round(x * w + NEAR), HALVES, "round"),
    "remainder": (lambda x, w: (x * w - NEAR) % 1.0, WHOLE, r"remainder \(%\)"),
    "loop": (lambda x, w: jax.lax.map(lambda v: v >= 1e-6, x), SMALL, "loop"),
}


@pytest.mark.once
@pytest.mark.filterwarnings("ignore:(the constant|numbers up to)")
@pytest.mark.parametrize("name", TOLD)
def test_what_the_field_does_not_tell_apart_is_told(name):
    fn, x, label = TOLD[name]
    result, told = secure(fn, x, ONES)
    told = [each for each in told if str(each.message).startswith("SPU's")]
    with jax.enable_x64(True):
        exact = fn(x.astype(np.float64), ONES.astype(np.float64))
    assert not np.allclose(np.asarray(result, float), np.asarray(exact, float), rtol=1e-3)
    assert len(told) == 1
    with pytest.raises(AssertionError, match=f"SPU's {label} gives"):
        raise AssertionError(str(told[0].message))
    assert told[0].filename == __file__


@pytest.mark.parametrize("name", ["select", "add", "guard", "data", "constant", "floor"])
def test_what_the_message_advises_is_right_and_quiet(name):
    fn, x, _ = TOLD[name]
    result, told = secure(fn, x, ONES, config=FULL)
    assert not told
    np.testing.assert_allclose(np.asarray(result, float), np.asarray(fn(x, ONES), float), rtol=1e-3)


@pytest.mark.once
def test_the_message_has_the_line_the_numbers_and_what_to_do():
    def fn(x, w):
        scores = x * w
        chosen = scores > 0
        return jnp.where(chosen, 1.0, 0.0).sum()

    (told,) = secure(fn, SMALL, ONES)[1]
    assert (told.filename, told.lineno) == (__file__, line_after(fn, 2))
    assert str(told.message) == (
        "SPU's compare gives 0 where float64 gives 1 at [1] of bool[3], of 7.629395e-06 and 0, "
        "which are 2 steps apart, so a result is 1 instead of 2 (SEMI2K, FM64, 18 fraction bits). "
        "SPU takes computed numbers that are some steps apart for equal. Take more bits (field: "
        "FM128, fxp_fraction_bits: 40), or scale what it decides about, so that it is further "
        "apart; check_numbers=False skips this check.\nmplang explain N001"
    )


NORMAL = np.random.default_rng(0).normal(size=51).astype(np.float32)
TENTHS = np.float32([0.1, 0.2, 0.3])

QUIET = {
    "argmax of equal": (lambda x: jnp.argmax(jax.nn.softmax(x)), np.float32([1, 3, 3])),
    "argmin of distances": (
        lambda x: jnp.argmin((x[:, None] - x) ** 2, axis=0),
        np.float32([1.1, 1.1, 3.3]),
    ),
    "element": (lambda x: x >= jnp.median(x), NORMAL),
    "quantile": (lambda x: x <= jnp.quantile(x, 0.5), NORMAL),
    "largest": (lambda x: (x - x.min()) / (x.max() - x.min()) >= 1, NORMAL),
    "mean of equal": (lambda x: x.mean() >= 0.1, np.full(100, 0.1, np.float32)),
    "sum of rounded": (lambda x: x[0] + x[1] == x[2], TENTHS),
    "scaled": (lambda x: x * 10 == 3, TENTHS),
    "scaled, float64": (lambda x: jnp.floor(x * 10), TENTHS.astype(np.float64)),
    "whole numbers": (lambda x: x * 0.1 == 0.3, np.arange(1, 4)),
    "rest": (lambda x: x % 0.1, TENTHS.astype(np.float64) + 0.05),
    "centred": (lambda x: x - x.mean() > 0, np.full(7, 1.3, np.float32)),
    "bins": (lambda x: jnp.digitize(x * 0.1, jnp.linspace(0, 1, 11)), WHOLE),
    "top_k of equal": (lambda x: jax.lax.top_k(x / 3 * 3, 2)[1], np.float32([1, 3, 3])),
    "sort of equal": (lambda x: jnp.argsort(x * 0.1), np.float32([2, 1, 1, 3, 1])),
    "rounded half": (lambda x: jnp.round(x / 3 * 3), HALVES),
}


@pytest.mark.parametrize("config", [COARSE, FULL], ids=["FM64", "FM128"])
@pytest.mark.parametrize("name", QUIET)
def test_what_rounding_of_the_data_decides_is_no_fault(name, config):
    fn, x = QUIET[name]
    assert not secure(fn, x, config=config, times=2)[1]


@pytest.mark.parametrize("config", [COARSE, FULL], ids=["FM64", "FM128"])
def test_results_of_an_earlier_run_are_some_steps_off(config):
    """They count as equal to what they stand for, and float64 is given them as they are."""

    def program():
        x = mp.put("P0", NORMAL)
        on_spu = mp.device("SP0")
        scaled = on_spu(lambda x: x * 0.3 / 0.3)(x)
        middle = on_spu(jnp.median)(x)
        same = on_spu(lambda x, y: x * 1.5 == y * 1.5)(x, scaled)
        return mp.reveal(on_spu(lambda x, m: x >= m)(x, middle)), mp.reveal(same)

    with mp.Simulator(cluster(2, config)) as sim:
        upper, _ = mp.fetch(sim, mp.evaluate(sim, program))  # a warning would be an error
    assert upper[0].sum() == 26


def test_data_are_compared_with_constants_by_their_own_digits():
    for config, x in ((COARSE, 1000.01), (FULL, 1000.0001)):
        result, told = secure(lambda x: x > 1000, np.full(3, x, np.float32), config=config)
        assert result.all()
        assert not told
