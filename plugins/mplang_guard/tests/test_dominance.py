"""Dominance: no number of which one unit adds more than a given part."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, strategies as st

import mplang_core as mp
from mplang_core.errors import TraceError

CLUSTER = mp.ClusterSpec([{"name": "bank"}])
SUM = {"total": ("pay", "sum")}


def run(people, k=1, **wanted):
    """Return what a guard tells of a table."""

    def program():
        return mp.guard.aggregate(mp.dataset("bank", "people"), unit="id", k=k, **wanted)

    with mp.Simulator(CLUSTER, data={"bank": {"people": people}}) as sim:
        return mp.fetch(sim, mp.evaluate(sim, program)).to_pylist()


def test_a_sum_that_is_one_persons_is_not_told():
    people = {"id": list(range(20)), "pay": [1e6] + [0.0] * 19}
    assert run(people, k=20, **SUM) == [{"total": 1e6}]
    assert run(people, k=20, max_share=0.5, **SUM) == []
    assert run(people, k=20, max_share=0.5, mean=("pay", "mean")) == []
    assert run(people, k=20, max_share=0.5, std=("pay", "std")) == []


def test_a_part_that_is_not_larger_stays():
    assert run({"id": [1, 2], "pay": [3, 3]}, max_share=0.5, **SUM) == [{"total": 6}]
    assert run({"id": [1, 2], "pay": [3, 4]}, max_share=0.5, **SUM) == []
    assert run({"id": [1, 2], "pay": [29, 71]}, max_share=0.71, **SUM) == [{"total": 100}]
    assert run({"id": [1, 2], "pay": [29, 71]}, max_share=0.709999, **SUM) == []


def test_a_persons_rows_are_added_before_they_are_compared():
    people = {"id": [1, 1, 1, 2, 3], "pay": [2, 2, 2, 3, 2]}
    assert run(people, max_share=0.5, **SUM) == []
    assert run({**people, "id": [1, 2, 3, 4, 5]}, max_share=0.5, **SUM) == [{"total": 11}]


def test_negative_values_add_by_their_size():
    """The sum is 2, of which nobody has more than a half; one person moves most of it."""
    assert run({"id": [1, 2, 3], "pay": [-9, 10, 1]}, max_share=0.4, **SUM) == []
    assert run({"id": [1, 1, 2], "pay": [-50, 50, 10]}, max_share=0.5, **SUM) == []
    assert run({"id": [1, 2, 3], "pay": [-1, 1, -1]}, max_share=0.4, **SUM) == [{"total": -1}]


def test_in_a_sum_of_zeros_nobody_has_a_part():
    zeros = {"id": [1, 2], "pay": [0.0, -0.0]}
    assert run(zeros, max_share=0.5, **SUM) == [{"total": 0.0}]
    assert run(zeros, max_share=0.5, std=("pay", "std")) == [{"std": 0.0}]


def test_what_is_missing_or_no_number_adds_nothing():
    people = {"id": [1, 2, 3, 4, None], "pay": [1.0, np.nan, np.inf, 1.0, 99.0]}
    frame = pd.DataFrame(people).astype({"id": "Int64"})
    assert run(frame, max_share=0.5, **SUM) == [{"total": 2.0}]
    people = {"id": [1, 2, 3], "pay": [5.0, None, None]}
    assert run(people, max_share=0.5, **SUM) == []
    assert run(people, max_share=0.5, n="count") == [{"n": 3}]


def test_numbers_too_large_to_be_compared_are_not_told():
    assert run({"id": [1, 2, 3], "pay": [1e305] * 3}, max_share=0.5, **SUM) == []
    assert run({"id": [1, 2], "pay": [1e308, 0.0]}, max_share=0.5, mean=("pay", "mean")) == []


def test_groups_are_looked_at_one_by_one():
    """Person 1 is in both, and has most of one."""
    people = {"id": [1, 1, 2, 3], "city": ["a", "b", "a", "b"], "pay": [5, 9, 5, 1]}
    assert run(people, by=["city"], max_share=0.5, **SUM) == [{"city": "a", "total": 10}]
    assert run({**people, "city": ["a", None, "a", None]}, by=["city"], max_share=0.5, **SUM) == [
        {"city": "a", "total": 10}
    ]


def test_each_number_of_a_group_counts():
    people = {"id": [1, 2, 3], "pay": [1, 1, 1], "debt": [0, 0, 7]}
    assert run(people, max_share=0.5, **SUM) == [{"total": 3}]
    assert run(people, max_share=0.5, **SUM, debt=("debt", "mean")) == []


def test_a_count_of_rows_that_are_one_persons_is_not_told():
    people = {"id": [1] * 98 + [2, 3], "pay": [None] * 98 + [1.0, 1.0]}
    assert run(people, k=3, max_share=0.5, n="count") == []
    assert run(people, k=2, max_share=0.5, n=("pay", "count")) == [{"n": 2}]
    assert run(people, max_share=0.4, n="units") == [{"n": 3}]
    assert run(people, max_share=0.3, n="units") == []


def test_a_distance_from_the_mean_that_is_one_persons_is_not_told():
    """All are alike, but for one; the values themselves are of one size."""
    people = {"id": list(range(20)), "pay": [1e6 + 1, 1e6 - 1] * 9 + [1e6, 1e6 + 500]}
    assert run(people, max_share=0.5, mean=("pay", "mean")) != []
    assert run(people, max_share=0.5, std=("pay", "std")) == []


def test_each_kind_of_number_can_be_compared():
    people = pd.DataFrame({"id": [1, 2, 3], "ok": [True, True, False], "n": [4, 5, 6]})
    people["half"] = people.n.astype("float32") / 2
    people["small"] = people.n.astype("uint8")
    sums = {name: (name, "sum") for name in ("ok", "n", "half", "small")}
    assert run(people, max_share=0.5, **sums) == [{"ok": 2, "n": 15, "half": 7.5, "small": 15}]
    assert run(people, max_share=0.49, **sums) == []


def test_names_of_columns_are_none_that_the_query_makes_up():
    people = {"id": [1, 2], "ROW 0": [1, 99], "unit 0": [0, 0], "Row_ 0": [0, 0]}
    assert run(people, max_share=0.5, **{"row 0": ("ROW 0", "sum")}) == []
    assert run(people, max_share=0.5, **{"unit 0": ("ROW 0", "sum")}) == []
    assert run(people, max_share=0.99, **{"row__ 0": ("ROW 0", "sum")}) == [{"row__ 0": 100}]


@pytest.mark.parametrize(
    "part", [0, 0.0, 1, 1.0, 1.5, -0.5, True, "0.5", math.nan, math.inf, 1e-7, [0.5]]
)
def test_a_part_is_between_0_and_1(part):
    with pytest.raises(TraceError, match="max_share is the part of a number") as found:
        run({"id": [1], "pay": [1]}, max_share=part, **SUM)
    assert "test_dominance.py:" in str(found.value)


def test_a_number_of_numpy_is_a_part():
    assert run({"id": [1, 2], "pay": [3, 4]}, max_share=np.float64(0.5), **SUM) == []


ROWS = st.lists(
    st.tuples(
        st.integers(0, 5) | st.none(),
        st.sampled_from(["a", "b", None]),
        st.integers(-9, 9).map(float) | st.floats(-1e6, 1e6) | st.none() | st.just(math.inf),
    ),
    min_size=1,
    max_size=20,
)


def parts(group):
    """Return the largest part of each number that one unit adds, as pandas has it."""
    finite = group[np.isfinite(group.pay)]
    contributions = {
        "total": finite.pay.abs(),
        "std": (finite.pay - finite.pay.mean()) ** 2,
        "paid": finite.pay * 0 + 1,
        "n": group.pay.isna() * 0 + 1,
    }
    for name, each in contributions.items():
        units = each.groupby(group.id).sum()
        yield name, units.max() / units.sum() if units.sum() else 0.0
    yield "persons", 1 / group.id.nunique()


@given(
    rows=ROWS,
    share=st.integers(1, 9).map(lambda n: n / 10),
    names=st.sets(st.sampled_from(["total", "std", "paid", "n", "persons"]), min_size=1),
)
def test_groups_that_stay_are_those_of_pandas(rows, share, names):
    frame = pd.DataFrame(rows, columns=["id", "city", "pay"])
    functions = {"total": ("pay", "sum"), "std": ("pay", "std"), "paid": ("pay", "count"),
                 "n": "count", "persons": "units"}  # fmt: skip
    asked = {name: functions[name] for name in sorted(names)}
    given_frame = frame.astype({"id": "Int64", "city": "string", "pay": "float64"})
    expected = set()
    for city, group in given_frame.dropna(subset="id").groupby("city", dropna=False):
        finite = group[np.isfinite(group.pay)]
        group = group.assign(id=group.id.astype("int64"))
        found = dict(parts(group))
        looked_at = {*asked, *(["total"] if "std" in asked else [])}
        assume(all(abs(found[name] - share) > 1e-6 for name in looked_at))
        spread = finite.pay.std() if len(finite) > 1 else 0.0
        assume("std" not in asked or spread == 0 or spread > 1e-3 * finite.pay.abs().max())
        needs = {"total", "std", "paid"} & set(asked)
        if (not needs or len(finite)) and all(found[name] <= share for name in looked_at):
            expected.add(None if pd.isna(city) else city)
    told = run(given_frame, by=["city"], max_share=share, **asked)
    assert {each["city"] for each in told} == expected
