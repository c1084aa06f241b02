"""Noisy aggregates of units in common are near what they are of, and each owner's noise is in them.

With an epsilon of 20 a number of units is that itself, but for one run in a hundred million.
"""

from __future__ import annotations

import math
import statistics
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from across_parties import held
from hypothesis import given, settings, strategies as st
from mplang_joins.noised.form import SUM_BITS, NoiseForm, steps_of
from mplang_joins.noised.kernels import _noise
from secret_joining import PARTIES, PROTOCOLS, cluster

import mplang_core as mp
from mplang_core.errors import PartyError, TraceError

PEOPLE = pa.table(
    {
        "id": ["a", "a", "b", "c", "d", "e", None],
        "city": ["X", "Y", "Y", "Z", "X", "Y", "X"],
        "pay": pa.array([3, 4, 50, None, 8, 9, 1000], pa.int32()),
        "debt": pa.array(
            [Decimal(f"{n}.25") for n in (1, 2, 3, -4, 500, 6, 7)], pa.decimal128(9, 2)
        ),
        "weight": [1.5, math.inf, 2.5, math.nan, 3.5, 4.0, 5.0],
        "ok": [True, False, False, True, None, True, True],
    }
)
SALES = pa.table({"who": ["d", "d", "d", "a", "b", "c", "z", None], "n": [1, 2, 3, 4, 5, 6, 7, 8]})
VISITS = pa.table({"person": ["a", "b", "y"], "length": [1, 2, 3]})
DATA = {
    "bank": {"people": held(PEOPLE, {"id": 8})},
    "shop": {"sales": held(SALES, {"who": 9})},
    "lab": {"visits": held(VISITS, {"person": 5})},
}
KEYS = {"bank": "id", "shop": "who", "lab": "person"}


def asked(function, *args, data=DATA, parties=2, protocol="SEMI2K", field="FM128", **arguments):
    """Return a noisy aggregate of the units that some parties have in common, as rows."""
    arguments = {"epsilon": 20.0, **arguments}
    owners = PARTIES[:parties]

    def program():
        tables = [mp.dataset(party, name) for party in owners for name in data[party]]
        both = mp.overlap(*tables, on=[tuple(KEYS[party] for party in owners)], to="SP0")
        return mp.reveal(getattr(mp.dp, function)(both, *args, **arguments), to="bank").table()

    data = {party: data[party] for party in owners}
    with mp.Simulator(cluster(protocol, parties, field=field), data=data) as sim:
        return mp.fetch(sim, mp.evaluate(sim, program)).to_pylist()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_units_are_counted_once(protocol):
    assert asked("count", protocol=protocol) == [{"count": 4}]  # a, b, c, d


def test_three_owners_have_two_units_in_common():
    assert asked("count", parties=3) == [{"count": 2}]
    (row,) = asked("sum", "length", low=0, high=10, parties=3)
    assert row["sum"] == pytest.approx(3, abs=30)  # of a scale of 0.5 at each owner


@pytest.mark.parametrize(
    ("column", "right"),
    [("pay", 3 + 4 + 10 + 8), ("debt", 1.25 + 2.25 + 3.25 - 4.25 + 10), ("weight", 7.5), ("ok", 2),
     ("n", 6 + 4 + 5 + 6)],
)  # fmt: skip
def test_a_sum_is_clipped_by_unit(column, right):
    (row,) = asked("sum", column, low=-10, high=10)
    assert row["sum"] == pytest.approx(right, abs=20)


def test_a_mean_is_one_of_units():
    """a has 3.5, b 50, which is clipped, c none, d 8."""
    (row,) = asked("mean", "pay", low=0, high=10)
    assert 0 <= row["mean"] <= 10
    ids = [f"p{i}" for i in range(2000)]
    people = pa.table({"id": ids * 2, "pay": [i % 40 for i in range(2000)] + [6] * 2000})
    sales = pa.table({"who": ids[500:]})
    data = {
        "bank": {"people": held(people, {"id": 2000})},
        "shop": {"sales": held(sales, {"who": 2000})},
    }  # fmt: skip
    (row,) = asked("mean", "pay", low=0, high=20, data=data)
    right = statistics.fmean(min((i % 40 + 6) / 2, 20) for i in range(500, 2000))
    assert row["mean"] == pytest.approx(right, abs=0.1)


def test_a_histogram_counts_a_unit_for_the_first_of_its_values():
    found = asked("histogram", "city", ["Y", "X", "Q"])
    assert found == [
        {"city": "Y", "count": 2},
        {"city": "X", "count": 1},
        {"city": "Q", "count": 0},
    ]
    assert asked("histogram", "ok", [True]) == [{"ok": True, "count": 2}]


def test_gaussian_noise_is_there_too():
    (row,) = asked("count", delta=1e-6)
    assert row["count"] == pytest.approx(4, abs=40)


numbers = st.one_of(st.none(), st.integers(-(2**62), 2**62), st.integers(-5, 5))


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 9), numbers), max_size=12), st.integers(1, 60))
def test_any_numbers_are_clipped(rows, bits):
    """What a unit has may be of any size: the sum is one of clipped numbers."""
    high = float(2**bits) if bits < 49 else 1e15
    people = pa.table(
        {"id": pa.array([i for i, _ in rows], pa.int64()),
         "pay": pa.array([n for _, n in rows], pa.int64())}
    )  # fmt: skip
    sales = pa.table({"who": pa.array([1, 2, 3, 4], pa.int64())})
    data = {
        "bank": {"people": held(people, {"id": 10})},
        "shop": {"sales": held(sales, {"who": 5})},
    }
    if high * 10 > 2**SUM_BITS / 32:
        high = float(2**45)
    (row,) = asked("sum", "pay", low=-high, high=high, data=data)
    sums = [math.fsum(n for i, n in rows if i == unit and n is not None) for unit in (1, 2, 3, 4)]
    right = sum(min(max(each, -high), high) for each in sums)
    assert row["sum"] == pytest.approx(right, abs=2.5 * high)


def form(function, epsilon=0.5, delta=0.0, **fields):
    low, high, digits = steps_of(0.0, 1.0, 1.0) if function in ("sum", "mean") else (0, 0, 0)
    values = tuple(range(3000)) if function == "histogram" else ()
    column = "" if function == "count" else "x"
    made = NoiseForm(function, column, 0, "int64", values, low, high, digits, epsilon, delta, 2)
    return made._replace(**fields)


def test_each_owner_draws_noise_of_the_whole_scale():
    """The mean size of Laplace noise is its scale, here 2, and of 3,000 six standard errors off."""
    drawn = np.abs(_noise(form("histogram")))
    assert statistics.fmean(drawn) == pytest.approx(2, abs=6 * 2 / math.sqrt(3000) + 0.1)
    sums = [abs(_noise(form("sum"))[0]) for _ in range(400)]
    assert statistics.fmean(sums) == pytest.approx(2e6, abs=6 * 2e6 / math.sqrt(400))
    halves = np.abs([_noise(form("mean")) for _ in range(400)]).mean(axis=0)
    scales = np.array([4 * 5e5, 4])
    assert (np.abs(halves - scales) < 6 * scales / math.sqrt(400) + 0.1).all()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"unit": "id"}, "leave unit='id' out"),
        ({"per_unit": 2}, "counts once, got per_unit=2"),
        ({"epsilon": 0.0}, "epsilon is from"),
        ({"delta": 0.5}, "delta is 0, or from"),
    ],
)
def test_what_is_no_noise_is_refused(arguments, why):
    with pytest.raises(TraceError, match=why):
        asked("count", **arguments)


@pytest.mark.parametrize(
    ("function", "column", "arguments", "why"),
    [
        ("sum", "city", {"low": 0, "high": 1}, "is string, and no numbers"),
        ("sum", "age", {"low": 0, "high": 1}, "no table has a column 'age'"),
        ("sum", "pay", {"low": 5, "high": 1}, "low and high are bounds"),
        ("sum", "pay", {"low": 0, "high": 1e-40}, "take a smaller unit"),
        ("mean", "pay", {"low": 1.0, "high": 1.0}, "differ by at least"),
        ("mean", "pay", {"low": 0, "high": 1e14, "epsilon": 20.0}, "bits that shares divide"),
        ("mean", "pay", {"low": 0, "high": 10**400}, "beyond what a float holds"),
        ("sum", ["pay"], {"low": 0, "high": 1}, "it is of one column"),
        ("histogram", "city", {"values": [3]}, "is string, got '3'"),
        ("histogram", "weight", {"values": [3]}, "strings, integers and bools"),
    ],
)
def test_columns_and_bounds_that_are_none_are_refused(function, column, arguments, why):
    with pytest.raises(TraceError, match=why):
        asked(function, column, **arguments)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("function", ["sum", "mean"])
def test_noise_that_does_not_fit_is_refused(function, delta):
    """It was clipped, so that both owners' noise cancelled out, and the sum was told exactly."""
    with pytest.raises(TraceError, match="may have more than 55 bits; take a larger"):
        asked(function, "pay", low=-1e12, high=1e12, epsilon=1e-6, delta=delta)


def test_a_mean_far_from_zero_is_refused_where_floats_have_no_room():
    """It was another number: what lies in the middle was added in fixed point."""
    with pytest.raises(TraceError, match="more than the 44 bits of a float"):
        asked("mean", "pay", low=1e8, high=1e8 + 10, field="FM64")


def test_a_small_field_has_no_room_for_a_mean():
    with pytest.raises(TraceError, match="take the field FM128"):
        asked("mean", "pay", low=0, high=19, field="FM64")
    assert asked("count", field="FM64") == [{"count": 4}]


def test_more_units_than_declared_end_the_run():
    data = {**DATA, "shop": {"sales": held(SALES, {"who": 3})}}
    with pytest.raises(PartyError, match="more than the 3 units declared"):
        asked("count", data=data)


def test_a_table_of_one_party_asks_for_its_unit():
    def program():
        return mp.dp.count(mp.dataset("bank", "people"), epsilon=1.0)

    with (
        mp.Simulator(cluster(), data={"bank": DATA["bank"]}) as sim,
        pytest.raises(TraceError, match="unit is the column"),
    ):
        mp.evaluate(sim, program)
