"""A fixed twentieth of the sweep, each function on one type; ``make sweep`` runs all of it."""

from __future__ import annotations

import warnings
import zlib

import numpy as np
import pytest
import sweep_calls
import sweep_cells
import sweep_report
import sweep_written
from sweep_calls import part_of

import mplang_core as mp
from mplang_core.errors import MPLangError

RECORD = sweep_report.read_record()
PLACE = "simulator", "ABY3", "8"
RUNS = sweep_report.RIGHT | set("r")
TWENTIETH = {each.name: each for each in sweep_calls.functions() if part_of(each.name, 20) == 0}

SERIES = {"lax.bessel_i1e"}  # hundreds of ops: 4 s
MORE = pytest.mark.long("two thirds of a twentieth of the sweep; make sweep runs all of it")


def a_type_of(name: str) -> str | None:
    """Return a type on which a function was measured; another one for each function."""
    measured = {
        key[3]: RECORD[key]["letters"] for key in RECORD if key[:3] == PLACE and key[4] == name
    }
    types = sorted(dtype for dtype, letters in measured.items() if letters[0] in RUNS)
    return types[zlib.crc32(name.encode()) % len(types)] if types else None


@pytest.fixture(scope="module")
def simulator():
    with mp.Simulator(mp.ClusterSpec.simple(3), timeout=120.0) as sim:
        yield sim


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[MORE] * (part_of(name, 60) > 0 or name in SERIES))
        for name in TWENTIETH
        if a_type_of(name)
    ],
)
def test_what_ran_right_runs_right_and_nothing_is_newly_wrong_without_a_word(simulator, name):
    function, dtype = TWENTIETH[name], a_type_of(name)
    key = (*PLACE, dtype, name)
    way = sweep_calls.way_of(function)
    assert way is not None
    count, call = sweep_calls.call_of(function, way)
    unit = sweep_cells.prepare(call, count, dtype, "8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = sweep_cells.run(simulator, unit)
    found = {key: {"letters": result.letters}}
    assert sweep_report.lost({key: RECORD[key]}, found) == [], result.details


def test_each_function_of_jax_is_in_the_record_or_has_a_reason():
    """A function that a new JAX brings is measured, not forgotten."""
    page = sweep_report.PAGE.read_text(encoding="utf-8")
    recorded = {name for *_, name in RECORD}
    reasons = " ".join(sweep_written.NOT_CALLED.values()).split()
    for function in sweep_calls.functions():
        known = function.name in recorded or f"`{function.name}`" in page
        assert known or function.name in reasons, function.name


@pytest.mark.long("50 functions, each tried in 100 ways: 20 s")
def test_what_is_not_called_cannot_be():
    """The list is closed: JAX takes no array in any of the ways that are tried."""
    named = {each.name: each for each in sweep_calls.functions()}
    names = " ".join(sweep_written.NOT_CALLED.values()).split()
    assert [name for name in names if sweep_calls.way_of(named[name]) is not None] == []


def test_a_call_that_is_written_is_traced_by_jax():
    for function in sweep_calls.functions():
        assert function.name not in sweep_written.WRITTEN or sweep_calls.way_of(function) == 0


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, 1e30])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_spu_does_not_hold_is_refused_where_it_enters(simulator, dtype, number):
    with mp.with_ctx(simulator):
        x = mp.put("P0", np.array([1, number], dtype))
    with pytest.raises(MPLangError, match=r"test_sweep\.py:\d+"):
        mp.evaluate(simulator, lambda x: mp.reveal(mp.device("SP0")(abs)(x), to="P0"), x)
