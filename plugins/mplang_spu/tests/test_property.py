"""Property: SPU's results equal those of float64, or an error or a warning appears."""

from __future__ import annotations

import warnings

import jax
import numpy as np
import pytest
import spu_runner
from functions import functions
from hypothesis import HealthCheck, Phase, find, given, settings
from mplang_spu.lowering import PASSES, functions as approximations, rounding

import mplang_core as mp
from mplang_core.errors import MPLangError, PrecisionWarning

SINGLE = 2e-7  # what float32 keeps beside 1, and libspu's functions near 0
CHECKS = list(HealthCheck)


@pytest.fixture(scope="module")
def simulators():
    made = [
        mp.Simulator(mp.ClusterSpec.simple(n), check_numbers="raise", timeout=120.0) for n in (3,)
    ]
    yield made
    for sim in made:
        sim.close()


def is_near(found, exact) -> bool:
    """Return whether the error is within 1e-3 of the largest number, plus that of float32."""
    if exact.dtype.kind != "f":
        return bool(np.array_equal(found, exact))
    return off(found, exact) <= 1e-3 * np.abs(exact).max(initial=0) + SINGLE


def off(found, exact) -> float:
    return float(np.abs(found.astype(np.float64) - exact).max(initial=0))


def is_rounding(function, found) -> bool:
    """Return whether the error is at most that of float32, which may keep no digit."""
    singles = [0.0] * len(found)
    for seed in range(5):  # by chance, float32 is right for some
        args = [moved(x, seed) for x in function.args]
        plain = jax.tree.leaves(spu_runner.numpy_of(function.fn, *args))
        exact = jax.tree.leaves(spu_runner.float64_of(function.fn, *args))
        singles = [max(s, off(x, y)) for s, x, y in zip(singles, plain, exact, strict=True)]
    return all(
        is_near(mine, exact) or (exact.dtype.kind == "f" and off(mine, exact) <= single)
        for mine, single, exact in zip(found, singles, function.reference, strict=True)
    )


def moved(x, seed):
    by = 1 + 1e-6 * np.random.default_rng(seed).normal(size=x.shape)
    return (x * by).astype(x.dtype) if x.dtype.kind == "f" else x


def run(sim, function):
    """Return the results, or ``None`` if there was a warning."""

    def program():
        args = [mp.put(f"P{i % 2}", x) for i, x in enumerate(function.args)]
        return mp.reveal(mp.device("SP0")(function.fn)(*args), to="P0")

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", PrecisionWarning)
        try:
            found = mp.fetch(sim, mp.evaluate(sim, program))
        except MPLangError:
            return None
    return None if shown else [np.asarray(x) for x in jax.tree.leaves(found)]


def check(simulators, function):
    for sim in simulators:
        found = run(sim, function)
        if found is None:
            continue
        pairs = list(zip(found, function.reference, strict=True))
        if not all(is_near(*pair) for pair in pairs):
            assert is_rounding(function, found), pairs


@pytest.mark.long("100 random functions on SPU")
@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=CHECKS)
@given(functions(steps=False))
@pytest.mark.timeout(600)
def test_a_result_is_near_that_of_float64_or_something_is_told(simulators, function):
    check(simulators, function)


@pytest.mark.slow("3,000 random functions on SPU")
@pytest.mark.timeout(7200)
@settings(max_examples=3000, deadline=None, suppress_health_check=CHECKS)
@given(functions(steps=False))
def test_so_it_is_for_thousands(simulators, function):
    check(simulators, function)


# -- the property finds what is broken: with all passes right, wrong without or with a fault


def is_wrong(function, passes) -> bool:
    try:
        found = spu_runner.run(function.fn, *function.args, protocol="SEMI2K", passes=passes)
    except (ValueError, RuntimeError):
        return True
    pairs = zip(jax.tree.leaves(found), function.reference, strict=True)
    return not all(is_near(np.asarray(mine), exact) for mine, exact in pairs)


def finds(passes) -> None:
    """Fail unless one of some hundred functions is wrong, and correct with all passes."""
    find(
        functions(lines=6),
        lambda function: is_wrong(function, passes) and not is_wrong(function, PASSES),
        settings=settings(
            max_examples=1000,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=CHECKS,
        ),
    )


@pytest.mark.parametrize("name", ["round_floats", "write_functions"])
def test_a_pass_that_is_switched_off_is_found(name):
    finds([rewrite for rewrite in PASSES if rewrite.__name__ != name])


def coarse_rounding(draft):
    """Count a number as an integer if it is an eighth below it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounding, "STEPS", 2**37)
        rounding.round_floats(draft)


def short_tanh(draft):
    """Return a constant from 1 on."""
    with pytest.MonkeyPatch.context() as patch:
        tanh = approximations._FUNCTIONS["tanh"]
        short = lambda draft, x: tanh(draft, x.clamp(-1, 1))  # noqa: E731
        patch.setitem(approximations._FUNCTIONS, "tanh", short)
        approximations.write_functions(draft)


@pytest.mark.parametrize(
    ("fault", "instead"),
    [(coarse_rounding, rounding.round_floats), (short_tanh, approximations.write_functions)],
)
def test_a_planted_fault_is_found(fault, instead):
    finds([fault if rewrite is instead else rewrite for rewrite in PASSES])
