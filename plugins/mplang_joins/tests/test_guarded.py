"""Guarded aggregates of units in common are what plain Python gives, without groups of few."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest
from across_parties import held
from guarded_units import expected, program_of, told
from secret_joining import cluster

import mplang_core as mp
from mplang_core.errors import PartyError, TraceError

PEOPLE = pa.table(
    {
        "id": ["a", "b", "c", "d", "e", "f", None],
        "city": ["X", "Y", "X", "X", "Y", "X", "X"],
        "pay": pa.array([5, -7, 11, 40, None, 2, 100], pa.int32()),
        "debt": pa.array([Decimal(f"{n}.25") for n in (5, 10, -20, 35, 40, 1, 9)],
                         pa.decimal128(9, 2)),
        "tall": [True, False, True, True, False, True, True],
    }
)  # fmt: skip
SALES = pa.table(
    {
        "who": ["a", "a", "b", "x", "d", "d", "c", None, "e", "c"],
        "price": pa.array([10, 20, 30, 40, 50, None, 70, 80, 5, 1], pa.int64()),
        "weight": [0.5, 1.5, None, 2.0, 0.25, float("nan"), 3.0, 9.0, 1.0, 2.0],
        "kind": pa.array([0, 1, 1, 0, 1, 1, 0, 1, 1, 1], pa.int8()),
    }
)
DATA = {
    "bank": {"people": held(PEOPLE, {"id": 8}, values={"city": ["X", "Y", "Z"]})},
    "shop": {"sales": held(SALES, {"who": 9}, ranges={"kind": (0, 2)})},
}
ON = [("id", "who")]
ASKED = {
    "one group": {"k": 2, "pay": ("pay", "sum"), "n": "units"},
    "groups of both": {"k": 1, "by": ["kind", "city"], "pay": ("pay", "sum"), "n": "units"},
    "a column of each": {
        "k": 2, "by": ["city"], "pay": ("pay", "mean"), "price": ("price", "sum"),
        "prices": ("price", "count"),
    },
    "floats and decimals": {
        "k": 2, "by": ["city"], "debt": ("debt", "sum"), "weight": ("weight", "sum"),
        "mean": ("weight", "mean"), "own": ("debt", "mean"),
    },
    "a bool": {"k": 2, "tall": ("tall", "sum"), "n": ("tall", "count")},
    "too few": {"k": 6, "n": "units"},
    "no unit adds three quarters": {
        "k": 1, "by": ["kind"], "max_share": 0.75, "pay": ("pay", "sum"),
    },
    "no unit adds most": {
        "k": 1, "by": ["city"], "max_share": 0.9, "w": ("weight", "mean"), "n": "units",
        "prices": ("price", "count"),
    },
}  # fmt: skip


def alike(found, right):
    assert [list(each) for each in found] == [list(each) for each in right], (found, right)
    for one, other in zip(found, right, strict=True):
        for name, value in other.items():
            close = isinstance(value, float)
            assert one[name] == (pytest.approx(value, rel=1e-4, abs=1e-4) if close else value), name


@pytest.mark.parametrize("name", ASKED)
def test_it_gives_what_python_gives(name):
    alike(told(DATA, ON, **ASKED[name]), expected(DATA, ON, **ASKED[name]))


def test_the_reference_tells_some_groups_and_leaves_others_out():
    counts = {name: len(expected(DATA, ON, **asked)) for name, asked in ASKED.items()}
    assert counts == {
        "one group": 1, "groups of both": 3, "a column of each": 1, "floats and decimals": 1,
        "a bool": 1, "too few": 0, "no unit adds three quarters": 2, "no unit adds most": 1,
    }  # fmt: skip


@pytest.mark.parametrize("protocol", ["ABY3", "CHEETAH"])
def test_it_is_the_same_on_other_protocols(protocol):
    asked = ASKED["a column of each"]
    alike(told(DATA, ON, protocol, "FM64", **asked), expected(DATA, ON, **asked))


def test_three_owners():
    data = {
        **DATA,
        "lab": {
            "tests": held(
                pa.table({"id2": ["d", "a", "c", "c"], "found": [1, 2, 3, 4]}), {"id2": 5}
            )
        },
    }
    on, asked = (
        [("id", "who", "id2")],
        {"k": 2, "by": ["kind"], "found": ("found", "sum"), "n": "units"},
    )
    alike(told(data, on, **asked), expected(data, on, **asked))


@pytest.mark.parametrize("seed", range(3))
def test_random_tables(seed):
    check_random(seed)


@pytest.mark.long("a hundred random tables")
@pytest.mark.timeout(3600)
def test_a_hundred_random_tables():
    for seed in range(100, 200):
        check_random(seed)


def check_random(seed):
    r = random.Random(seed)
    made = []
    for i in range(2):
        count = r.choice([0, 3, 30, 80])
        made.append(
            pa.table(
                {
                    f"id{i}": pa.array(
                        [r.choice([None, *range(9)]) for _ in range(count)], pa.int64()
                    ),
                    f"g{i}": pa.array([r.choice("uv") for _ in range(count)], pa.string()),
                    f"x{i}": pa.array(
                        [r.choice([None, *range(-9, 30)]) for _ in range(count)], pa.int32()
                    ),
                    f"f{i}": pa.array([r.uniform(-4, 4) for _ in range(count)], pa.float64()),
                }
            )
        )
    data = {
        party: {f"t{i}": held(made[i], {f"id{i}": 12}, values={f"g{i}": ["u", "v"]})}
        for i, party in enumerate(["bank", "shop"])
    }
    asked = {"k": r.choice([1, 2, 4]), "by": r.choice([[], ["g0"], ["g1", "g0"]])}
    if r.random() < 0.5:
        asked["max_share"] = r.choice([0.2, 0.5, 0.8])
    for name in "ab":
        i = r.choice([0, 1])
        asked[name] = r.choice(
            ["units", (f"x{i}", "sum"), (f"x{i}", "count"), (f"f{i}", "sum"), (f"x{i}", "mean")]
        )
    on = [("id0", "id1")]
    alike(told(data, on, **asked), expected(data, on, **asked))


# -- what is refused


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"k": 2, "x": ("nope", "sum")}, "no table has a column 'nope'"),
        ({"k": 2, "x": ("pay", "std")}, "'std'.* is not there over units in common"),
        ({"k": 2, "x": "count"}, "'count' is not there over units in common"),
        ({"k": 2, "x": ("city", "sum")}, "column 'city' is string, and has no sum"),
        ({"k": 2, "by": ["pay"], "x": "units"}, "which values 'pay' may have is not known"),
        ({"k": 0, "x": "units"}, "k is a number of units, at least 1, got 0"),
        ({"k": 2}, "it has no aggregate"),
        ({"k": 2, "unit": "id", "x": "units"}, "leave unit='id' out"),
    ],
)
def test_it_is_refused_while_compiling(asked, message):
    with mp.Simulator(cluster(), data=DATA) as sim, pytest.raises(TraceError, match=message):
        mp.compile(program_of(DATA, ON, **asked)).trace(sim)


def test_units_differ_by_one_column():
    program = program_of(DATA, [("id", "who"), ("pay", "price")], k=2, n="units")
    with mp.Simulator(cluster(), data=DATA) as sim, pytest.raises(TraceError, match="one column"):
        mp.compile(program).trace(sim)


def test_more_units_than_published_end_the_run():
    data = {**DATA, "bank": {"people": held(PEOPLE, {"id": 5})}}
    with pytest.raises(PartyError, match=r"more than .*published|more than the 5 units"):
        told(data, ON, k=2, n="units")


def test_a_group_that_is_not_published_ends_the_run():
    data = {**DATA, "bank": {"people": held(PEOPLE, {"id": 8}, values={"city": ["X", "Z"]})}}
    with pytest.raises(PartyError, match="published"):
        told(data, ON, k=2, by=["city"], n="units")


def test_a_number_that_does_not_fit_ends_the_run():
    """Sums of 64 bits wrap: a unit's number has a bound by which no sum does."""
    huge = pa.table({"id": ["a", "b"], "pay": pa.array([1 << 60, 1], pa.int64())})
    data = {**DATA, "bank": {"people": held(huge, {"id": 8})}}
    with pytest.raises(PartyError, match="a number of one unit has more than 57 bits"):
        told(data, ON, k=2, pay=("pay", "sum"))


def paid(pay):
    people = pa.table({"id": [f"p{i}" for i in range(6)], "pay": pay})
    sales = pa.table({"who": [f"p{i}" for i in range(6)]})
    return {
        "bank": {"people": held(people, {"id": 8})}, "shop": {"sales": held(sales, {"who": 8})}
    }  # fmt: skip


MEAN = {"k": 2, "pay": ("pay", "mean")}


@pytest.mark.parametrize(
    ("field", "pay"),
    [
        ("FM64", pa.array([10_000_000 + i for i in range(6)])),
        ("FM64", pa.array([Decimal(f"{50_000 + i}.00") for i in range(6)], pa.decimal128(9, 2))),
        ("FM128", pa.array([10**13 + i for i in range(6)])),
        ("FM128", pa.array([1e12 + i for i in range(6)])),
    ],
)
def test_a_mean_that_shares_do_not_divide_right_ends_the_run(field, pay):
    """It was told, and wrong: a quotient is a product with a reciprocal, which the field bounds."""
    with pytest.raises(PartyError, match="a number of one unit has more than"):
        told(paid(pay), ON, field=field, **MEAN)


@pytest.mark.parametrize(
    "pay",
    [
        pa.array([10**9 + i for i in range(6)]),
        pa.array([1e5 + i / 7 for i in range(6)]),
        pa.array([1e9 + i for i in range(6)], pa.float64()),
        pa.array([Decimal(f"{70_000 + i}.25") for i in range(6)], pa.decimal128(38, 2)),
        pa.array([Decimal(f"{i}.0000000001") for i in range(6)], pa.decimal128(36, 10)),
    ],
)
def test_means_and_sums_of_large_and_wide_numbers_are_right(pay):
    asked = {"k": 2, "pay": ("pay", "mean"), "all": ("pay", "sum")}
    (found,), (right,) = told(paid(pay), ON, **asked), expected(paid(pay), ON, **asked)
    assert found["pay"] == pytest.approx(float(right["pay"]), rel=1e-6)
    assert float(found["all"]) == pytest.approx(float(right["all"]), rel=1e-9)


def test_a_mean_of_floats_needs_a_fine_fraction():
    with pytest.raises(TraceError, match="no room for the mean of 'pay'.* take the field FM128"):
        told(paid(pa.array([1.5] * 6)), ON, field="FM64", **MEAN)
