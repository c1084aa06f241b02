"""Reference check of what is decided, cancelled or wrong by chance, and of planted faults."""

from __future__ import annotations

import re
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mplang_spu import engine
from mplang_spu.reference_check.message import message
from mplang_spu.reference_check.rerun import Setting
from mplang_spu.reference_check.tolerance import Difference
from reference_runs import FINE, FULL, f32, line_after, secure

from mplang_core import TensorType

# -- faults

CANCELLING = {
    "floats": (lambda x: (x * x).mean() - x.mean() ** 2, 1e6 + np.arange(3.0)),
    "integers": (lambda x: (x * x).mean() - x.mean() ** 2, 1_000_000 + np.arange(-300, 300, 7)),
}


@pytest.mark.once
@pytest.mark.parametrize("name", CANCELLING)
def test_digits_that_only_float64_keeps_are_told(name):
    fn, x = CANCELLING[name]
    (told,) = secure(fn, x, config=FULL)[1]
    assert "subtract gives" in str(told.message)
    assert "center before you square" in str(told.message)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
def test_sums_of_what_was_centred_are_not_told(size):
    x = np.random.default_rng(0).normal(size=100) * size + size
    for data in (x, x.astype(np.float32), (10 * x).astype(np.int64)):
        assert not secure(
            lambda x: ((x - x.mean()).sum(), (x - x.mean()).mean()), data, config=FULL
        )[1]


@pytest.mark.once
@pytest.mark.usefixtures("bare")
def test_a_fault_that_no_second_run_shows_is_told_beside_a_tie():
    """Products of this size are truncated wrongly at random."""

    def fn(x, y):
        bonus = jnp.where(x[0] >= 3, 1.0, 2.0)
        return bonus + x.mean() * y.mean()

    x, y = np.full(4096, 3, np.float32), np.full(4096, 2, np.float32)
    for _ in range(20):
        result, shown = secure(fn, x, y)
        assert bool(shown) == (abs(result - 7) > 0.1)


@pytest.mark.parametrize(
    "times", [10, pytest.param(40, marks=pytest.mark.slow("40 medians on SPU"))]
)
def test_a_fault_of_chance_is_told_whatever_constants_decide(times):
    """Squares of this size overflow in a mean at random; the median's index is a constant."""
    x = np.random.default_rng(5).integers(10**7, 2 * 10**7, 13) * 2
    fn = lambda x: jnp.median(x * x - (x * x).mean())  # noqa: E731
    exact = np.median(x * x - (x * x).mean())
    for _ in range(times):
        result, shown = secure(fn, x, config=FINE)
        assert shown or abs(result - exact) < 1e-3 * abs(exact)


# -- decisions


@pytest.mark.parametrize(
    ("fn", "x"),
    [
        (lambda x: jnp.argmax(x), np.float32([1, 3, 3])),
        (lambda x: jnp.argmax(x / 3 * 3), np.float32([1, 3, 3])),
        (lambda x: jnp.where(x * 0.1 * 10 > x, 100.0, -100.0), np.float32([1, 2, 3, 5, 7])),
        (lambda x: jnp.argsort(x * 0.1), np.float32([2, 1, 1, 3, 1])),
        (lambda x: jnp.round(x / 3 * 3), np.float32([0.5, 1.5, 2.5])),
        (lambda x: jnp.sign(x / 3 * 3 - x), np.float32([0.5, 1.5, 2.5])),
    ],
)
def test_a_tie_may_go_either_way(fn, x):
    assert not secure(fn, x)[1]


ANOTHER = pytest.mark.long("another literal, of eight comparisons: 4 s")


@pytest.mark.parametrize(
    "number", [0.1, *(pytest.param(each, marks=ANOTHER) for each in (10.05, -1 / 3))]
)
def test_a_literal_that_is_no_multiple_of_the_step_is_no_false_alarm(number):
    """SPU rounds the literal and the operand to the same multiple; float64 has the literal."""

    def fn(x):
        compared = x < number, x >= number, x == number, x != number, x <= number, x > number
        return jnp.stack([*compared, (x == number).sum() * x > 0, jnp.sign(x - number) > 0])

    x = np.array([number, number + 1])
    result, told = secure(fn, x, config=FULL)
    assert not told
    with jax.enable_x64(True):
        np.testing.assert_array_equal(result, fn(x))


@pytest.mark.parametrize(
    ("label", "kind", "remedy"),
    [
        ("divide", "i64", "no divisor is 0"),
        ("remainder (%)", "i32", "no divisor is 0"),
        ("compare", "bool", "far enough apart"),
        ("convert", "i32", "converted to"),
        ("shift_left", "i64", "fewer bits"),
        ("sort", "i64", "keys are far enough apart"),
        ("multiply", "i32", r"x\.astype\('int64'\)"),
    ],
)
def test_the_remedy_of_a_whole_number_is_that_of_the_op(label, kind, remedy):
    config = {"protocol": "ABY3", "field": "FM128", "fxp_fraction_bits": 40}
    text = message(
        label, TensorType(kind, ()), Difference(9.0, (), 0, 1), Setting(config, 3, (False,))
    )
    assert re.search(remedy, text)
    assert ("divisor" in text) == (label in ("divide", "remainder (%)"))


@pytest.mark.once
def test_a_tie_that_is_missed_is_told():
    (told,) = secure(lambda x: x / 3 * 3 >= x, np.float32([1, 2, 3, 500, 700]))[1]
    assert "compare gives 0 where float64 gives 1" in str(told.message)


@pytest.mark.once
@pytest.mark.usefixtures("bare")
def test_what_follows_a_tie_is_judged_by_the_decision():
    """A fault after a tie is still reported, at its own line."""

    def fn(x):
        high = jnp.where(x * 0.1 * 10 >= x, 400_000.0, 300_000.0)
        return jnp.sqrt(high * x)

    (told,) = secure(fn, np.float32([1, 2, 3, 5, 7]))[1]
    assert told.lineno == line_after(fn, 2)
    assert "sqrt" in str(told.message)


# -- planted faults


@pytest.mark.once
@pytest.mark.parametrize(
    ("fn", "x"),
    [
        (lambda x: x + 1.0, f32(5)),
        (lambda x: x + 1, np.arange(5)),
        (lambda x: x > 0.1, f32(5)),
        (lambda x: jnp.argmax(x), f32(5)),
        (lambda x: jnp.sort(x), f32(5)),
        (lambda x: jnp.floor(x * 3 + 0.1), f32(5)),
    ],
)
def test_a_planted_fault_is_told(monkeypatch, fn, x):
    """The engine returns another number than it computed, only once, so no rerun shows it."""
    original = engine.Engine.run

    def wrong(self, code, inputs, outputs):
        made = original(self, code, inputs, outputs)
        if threading.current_thread().name == "mplang-P0":
            for share in made:
                (chunk,) = share.share_chunks
                share.share_chunks = [chunk[:-8] + bytes(b ^ 0x15 for b in chunk[-8:])]
        return made

    assert not secure(fn, x)[1]
    monkeypatch.setattr(engine.Engine, "run", wrong)
    assert len(secure(fn, x)[1]) == 1


@pytest.mark.once
def test_what_cannot_be_checked_is_told(monkeypatch):
    def broken(*args):
        raise KeyError("planted")

    monkeypatch.setattr("mplang_spu.reference_check.check.reference.outputs_of", broken)
    (told,) = secure(lambda x: x + 1, f32(3))[1]
    assert "could not be checked: KeyError" in str(told.message)
