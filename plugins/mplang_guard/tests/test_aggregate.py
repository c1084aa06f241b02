"""Guards: numbers as pandas has them, and none of less than k persons."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import mplang_core as mp
from mplang_core.errors import MPLangError, PartyError, TraceError

CLUSTER = mp.ClusterSpec([{"name": "bank"}])


def run(people, **wanted):
    """Return what a guard tells of a table."""

    def program():
        return mp.guard.aggregate(mp.dataset("bank", "people"), **wanted)

    with mp.Simulator(CLUSTER, data={"bank": {"people": people}}) as sim:
        return mp.fetch(sim, mp.evaluate(sim, program)).to_pylist()


ROWS = st.lists(
    st.tuples(
        st.integers(0, 5) | st.none(),
        st.sampled_from(["a", "b", None]),
        st.floats(-1e6, 1e6) | st.none(),
    ),
    min_size=1,
    max_size=30,
)


@given(rows=ROWS, k=st.integers(1, 4))
def test_numbers_are_those_of_pandas_and_small_groups_are_left_out(rows, k):
    frame = pd.DataFrame(rows, columns=["id", "city", "pay"]).astype(
        {"id": "Int64", "city": "string", "pay": "Float64"}
    )
    found = run(
        frame, unit="id", k=k, by=["city"], n="count", persons="units", paid=("pay", "count"),
        total=("pay", "sum"), mean=("pay", "mean"), std=("pay", "std"),
    )  # fmt: skip
    expected = {}
    for city, group in frame.dropna(subset="id").groupby("city", dropna=False):
        paid = group.dropna(subset="pay")
        if paid.id.nunique() >= k:
            expected[None if pd.isna(city) else city] = group, paid
    assert {each["city"] for each in found} == set(expected)
    for each in found:
        group, paid = expected[each["city"]]
        assert each["n"] == len(group)
        assert each["persons"] == group.id.nunique()
        assert each["paid"] == len(paid)
        values = paid.pay.to_numpy("float64")
        np.testing.assert_allclose(each["total"], values.sum(), rtol=1e-9, atol=1e-6)
        np.testing.assert_allclose(each["mean"], values.mean(), rtol=1e-9, atol=1e-6)
        if len(values) > 1:
            np.testing.assert_allclose(each["std"], values.std(ddof=1), rtol=1e-6, atol=1e-6)
        else:
            assert each["std"] is None


def test_many_rows_of_one_person_count_once():
    assert run({"id": [1] * 100 + [2], "pay": [1.0] * 101}, unit="id", k=3, n="count") == []
    assert run({"id": [1] * 100 + [2], "pay": [1.0] * 101}, unit="id", k=2, n="count") == [
        {"n": 101}
    ]


def test_a_number_of_less_persons_than_its_group_has_is_not_told():
    people = {"id": [1, 2, 3], "pay": [7.0, None, None]}
    assert run(people, unit="id", k=2, n="units") == [{"n": 3}]
    assert run(people, unit="id", k=2, n="units", pay=("pay", "mean")) == []


def test_each_kind_of_number_has_its_type():
    people = pd.DataFrame({"id": [1, 2], "ok": [True, False], "n": [3, 4]})
    people["small"] = people.n.astype("uint8")
    people["half"] = people.n.astype("float32") / 2
    found = run(
        people, unit="id", k=2, ok=("ok", "sum"), share=("ok", "mean"), n=("n", "sum"),
        small=("small", "sum"), half=("half", "sum"),
    )  # fmt: skip
    assert found == [{"ok": 1, "share": 0.5, "n": 7, "small": 7, "half": 3.5}]


def test_a_sum_that_does_not_fit_is_an_error_and_no_other_number():
    with pytest.raises(PartyError, match=r"party bank failed in guard\.aggregate"):
        run({"id": [1, 2], "n": [2**62, 2**62]}, unit="id", k=2, n=("n", "sum"))


def test_names_are_no_sql():
    odd = 'x" FROM "rows'
    found = run({odd: [1, 2], "b; DROP": [1.0, 2.0]}, unit=odd, k=2, m=("b; DROP", "mean"))
    assert found == [{"m": 1.5}]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"k": 0, "n": "count"}, "k is a number of units, at least 1, got 0"),
        ({"k": True, "n": "count"}, "attribute .k.: expected int, got bool"),
        ({"k": 2}, "at least one aggregate"),
        ({"k": 2, "n": "sum"}, "'sum' is of a column"),
        ({"k": 2, "m": ("pay", "median")}, "no function 'median'; there are count, sum, mean, std"),
        ({"k": 2, "m": ("city", "mean")}, "column 'city' is string, and has no mean"),
        ({"k": 2, "m": ("wage", "mean")}, "no column 'wage'; there are id, city, pay"),
        ({"k": 2, "n": "count", "by": ["town"]}, "no column 'town'"),
        ({"k": 2, "n": "count", "by": "city"}, r"by is a list of columns, such as \['city'\]"),
        (
            {"k": 2, "city": "count", "by": ["city"]},
            r"names each column once, got \['city'\] twice",
        ),
        ({"k": 2, "m": 3}, r"expected m=\('column', 'mean'\) or m='count', got 3"),
    ],
)
def test_a_mistake_is_told_with_its_line(wanted, message):
    people = {"id": [1, 2], "city": ["a", "b"], "pay": [1.0, 2.0]}
    with pytest.raises(TraceError, match=message) as found:
        run(people, unit="id", **wanted)
    assert "test_aggregate.py:" in str(found.value)


def test_a_value_that_is_no_table_is_refused():
    def program():
        return mp.guard.aggregate(mp.put("P0", [1, 2]), unit="id", k=2, n="count")

    with (
        mp.Simulator(CLUSTER) as sim,
        pytest.raises(MPLangError, match="operand 0 is PRIVATE i64.*it takes Table"),
    ):
        mp.evaluate(sim, program)


def test_floats_that_are_no_numbers_count_as_missing():
    """They neither spoil what is told, nor tell that somebody has one."""
    people = {"id": [1, 2, 3, 4], "pay": [1.0, np.nan, np.inf, 3.0]}
    wanted = {"n": ("pay", "count"), "total": ("pay", "sum"), "std": ("pay", "std")}
    (found,) = run(people, unit="id", k=2, **wanted)
    assert found == {"n": 2, "total": 4.0, "std": pytest.approx(2**0.5)}
    assert run(people, unit="id", k=3, **wanted) == []


def test_nobody_is_called_nan():
    """As null, it is not a person, of which there have to be so many."""
    people = pa.table({"id": [1.0, 2.0, np.nan], "pay": [1, 2, 4]})
    assert run(people, unit="id", k=2, total=("pay", "sum")) == [{"total": 3}]
    assert run(people, unit="id", k=3, total=("pay", "sum")) == []


@pytest.mark.parametrize("by", [None, 3])
def test_columns_to_group_by_are_a_list(by):
    with pytest.raises(TraceError, match="by is a list of columns"):
        run({"id": [1, 2]}, unit="id", k=2, n="count", by=by)


def test_a_number_of_numpy_is_a_number():
    assert run({"id": [1, 2]}, unit="id", k=np.int64(2), n="count") == [{"n": 2}]
