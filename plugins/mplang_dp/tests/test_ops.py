"""Differentially private ops: what each unit adds, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from mplang_dp import kernels

import mplang_core as mp
from mplang_core.errors import MPLangError, TraceError

CLUSTER = mp.ClusterSpec([{"name": "bank"}])
EXACT = 20.0  # epsilon of which the noise is small


def run(people, what, *args, **wanted):
    """Return what an op tells of a table."""

    def program():
        return getattr(mp.dp, what)(mp.dataset("bank", "people"), *args, unit="id", **wanted)

    with mp.Simulator(CLUSTER, data={"bank": {"people": people}}) as sim:
        return mp.fetch(sim, mp.evaluate(sim, program))


@pytest.fixture
def exact(monkeypatch):
    """Add no noise, and note how much would have been."""
    asked = []

    def none(numbers, *given):
        asked.append(given)
        return list(numbers)

    monkeypatch.setattr(kernels, "noisy", none)
    return asked


PEOPLE = pd.DataFrame(
    {
        "id": pd.array([1, 1, 1, 2, 3, None], "Int64"),
        "pay": [10.0, 20.0, 30.0, 5.0, np.nan, 7.0],
        "city": ["a", "b", "b", "a", None, "a"],
    }
)


@pytest.mark.once
def test_a_unit_counts_with_some_rows_only(exact):
    assert run(PEOPLE, "count", epsilon=1) == 3
    assert run(PEOPLE, "count", epsilon=1, per_unit=2) == 4
    assert exact == [(1, 1, 1.0, 0.0), (2, 2, 1.0, 0.0)]


@pytest.mark.once
def test_the_sum_of_a_unit_is_clipped(exact):
    found = run(PEOPLE, "sum", "pay", low=0, high=50, epsilon=1, delta=1e-6)
    assert found == pytest.approx(55.0, abs=1e-3)
    found = run(PEOPLE, "sum", "pay", low=8, high=50, epsilon=1)
    assert found == pytest.approx(58.0, abs=1e-3)
    assert exact[0] == (kernels.STEPS, float(kernels.STEPS), 1.0, 1e-6)


@pytest.mark.once
def test_a_mean_is_one_of_units_and_each_half_costs_half(exact):
    found = run(PEOPLE, "mean", "pay", low=0, high=100, epsilon=1, delta=1e-6)
    assert found == pytest.approx((20 + 5) / 2, abs=1e-3)
    assert exact == [(kernels.STEPS, float(kernels.STEPS), 0.5, 5e-7), (1, 1.0, 0.5, 5e-7)]


@pytest.mark.once
def test_a_unit_is_in_the_first_bins_of_the_list(exact):
    assert run(PEOPLE, "histogram", "city", ["a", "b", "c"], epsilon=1).tolist() == [2, 0, 0]
    assert run(PEOPLE, "histogram", "city", ["b", "a"], epsilon=1).tolist() == [1, 1]
    assert run(PEOPLE, "histogram", "city", ["b", "a"], epsilon=1, per_unit=2).tolist() == [1, 2]
    sensitivity, norm, *_ = exact[-1]
    assert (sensitivity, norm) == (2, pytest.approx(2**0.5))


@pytest.mark.once
def test_numbers_that_are_none_do_not_spoil_a_result(exact):
    people = {"id": [1, 2, 3], "pay": [np.inf, 5.0, -np.inf]}
    assert run(people, "sum", "pay", low=-1, high=10, epsilon=1) == pytest.approx(14, abs=1e-3)
    people = {"id": [1, 1, 2], "pay": [np.inf, -np.inf, 5.0]}
    assert run(people, "sum", "pay", low=-1, high=10, epsilon=1) == pytest.approx(5, abs=1e-3)


@pytest.mark.once
def test_nan_is_a_missing_value_as_null_is(exact):
    """Also as the unit, and where a unit's numbers are infinite in both directions."""
    for missing in (None, float("nan")):
        people = pa.table({"id": [1, 2, 2, 3], "pay": [100.0, missing, 100.0, missing]})
        assert run(people, "mean", "pay", low=0, high=200, epsilon=1) == pytest.approx(100, abs=0.1)
        found = run(people, "sum", "pay", low=50, high=200, epsilon=1)
        assert found == pytest.approx(200, abs=0.1)
        owners = pa.table({"id": [1.0, missing, missing], "pay": [5.0, 7.0, 7.0], "n": [1, 2, 2]})
        assert run(owners, "count", epsilon=1) == 1
        assert run(owners, "sum", "pay", low=0, high=9, epsilon=1) == pytest.approx(5, abs=0.1)
        assert run(owners, "histogram", "n", [1, 2], epsilon=1).tolist() == [1, 0]
    people = {"id": [1, 1, 2], "pay": [np.inf, -np.inf, 100.0]}
    assert run(people, "mean", "pay", low=0, high=200, epsilon=1) == pytest.approx(100, abs=0.1)


@pytest.mark.once
def test_no_person_changes_what_is_added_up_by_more_than_the_sensitivity(exact):
    """Neighbours: with all rows of one unit, and without."""
    rng = np.random.default_rng(7)
    people = pd.DataFrame({"id": rng.integers(0, 9, 60), "pay": rng.normal(0, 500, 60)})
    people["city"] = rng.choice(["a", "b", "c"], 60)
    asked = {
        "count": ((), {"per_unit": 3}, 3),
        "sum": (("pay",), {"low": -300, "high": 400}, 400),
        "histogram": (("city", ["c", "a", "b"]), {"per_unit": 2}, 2),
    }
    for what, (args, given, most) in asked.items():
        whole = run(people, what, *args, epsilon=1, **given)
        for unit in range(9):
            without = run(people[people.id != unit], what, *args, epsilon=1, **given)
            assert np.abs(whole - without).sum() <= most * (1 + 1e-6), what


def test_a_result_has_noise_that_differs_from_run_to_run():
    people = {"id": list(range(100)), "city": ["a"] * 100}
    values = [str(i) for i in range(200)]
    first, again = (run(people, "histogram", "city", values, epsilon=1.0) for _ in range(2))
    assert (first != again).any()
    assert 0.5 < np.abs(first).mean() < 1.5  # of a scale of 1 it is 0.85


@pytest.mark.once  # noise that is cut off at a bound may be the same twice
def test_a_mean_stays_within_its_bounds():
    people = {"id": [1], "pay": [50.0]}
    found = [run(people, "mean", "pay", low=0, high=100, epsilon=0.01) for _ in range(5)]
    assert all(0 <= each <= 100 for each in found)


@pytest.mark.parametrize(
    ("what", "args", "wanted", "message"),
    [
        ("count", (), {"epsilon": 0}, "epsilon is from 1e-06 to 20, got 0"),
        ("count", (), {"epsilon": float("nan")}, "epsilon is from"),
        ("count", (), {"epsilon": 21}, "epsilon is from"),
        ("count", (), {"epsilon": 1, "delta": 0.5}, "delta is 0, or from 1e-12 to 0.01, got 0.5"),
        ("count", (), {"epsilon": 1, "delta": -1}, "delta is 0, or from"),
        ("count", (), {"epsilon": 1, "per_unit": 0}, "per_unit is from 1"),
        ("sum", ("city",), {"low": 0, "high": 1}, "column 'city' is string, and no numbers"),
        ("sum", ("wage",), {"low": 0, "high": 1}, "no column 'wage'; there are id, pay, city"),
        ("sum", ("pay",), {"low": 2, "high": 1}, "low and high are bounds of what a unit adds"),
        ("sum", ("pay",), {"low": 0, "high": 0}, "low and high are bounds"),
        ("sum", ("pay",), {"low": 0, "high": float("inf")}, "low and high are bounds"),
        ("sum", ("pay",), {"low": float("nan"), "high": 1}, "low and high are bounds"),
        (
            "mean",
            ("pay",),
            {"low": 3, "high": 3},
            "low and high differ by at least 1e-09 of them, got 3 and 3",
        ),
        ("histogram", ("city", []), {}, "the values are 1 to 4096, each of them once"),
        ("histogram", ("city", ["a", "a"]), {}, "each of them once"),
        ("histogram", ("city", [1]), {}, "column 'city' is string, got '1'"),
        ("histogram", ("pay", [1]), {}, "column 'pay' is double; strings, integers and bools"),
    ],
)
def test_a_mistake_is_told_with_its_line(what, args, wanted, message):
    with pytest.raises(TraceError, match=message) as found:
        run(PEOPLE, what, *args, **{"epsilon": 1.0, **wanted})
    assert "test_ops.py:" in str(found.value)


def test_a_table_without_the_unit_is_refused():
    with pytest.raises(MPLangError, match="no column 'id'; there are pay"):
        run({"pay": [1.0]}, "count", epsilon=1)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1e15 - 4e6, 1e15),
        (-1e15, 1e15),
        (1.0, 1.0 + 2e-9),
        (0.0, 1.49e-100),
        (-3.0, 0.1),
        (0.1, 0.3),
    ],
)
def test_one_unit_never_adds_more_than_the_sensitivity(monkeypatch, low, high):
    """Whatever its number is, and however bounds are rounded."""
    asked = []
    monkeypatch.setattr(kernels, "noisy", lambda n, *more: asked.append((n, more)) or list(n))
    for number in (-np.inf, -1e300, low, (low + high) / 2, high, 1e300, np.inf, np.nan):
        people = {"id": [1], "pay": [number]}
        for what in ("sum", "mean"):
            asked.clear()
            run(people, what, "pay", low=low, high=high, epsilon=1)
            assert abs(asked[0][0][0]) <= asked[0][1][0] == kernels.STEPS


@pytest.mark.parametrize(
    ("what", "args", "wanted", "message"),
    [
        ("count", (), {"epsilon": None}, "epsilon is a number, got 'None'"),
        ("count", (), {"epsilon": "1"}, "epsilon is a number, got '1'"),
        ("sum", ("pay",), {"low": None, "high": 1}, "low is a number, got 'None'"),
        ("sum", ("pay",), {"low": 0, "high": 5e-324}, "the larger one from 1e-100"),
        ("mean", ("pay",), {"low": 1.0, "high": np.nextafter(1.0, 2)}, "low and high differ by"),
        ("histogram", ("city", None), {}, "values are a list, such as"),
        ("histogram", ("city", "Bern"), {}, "values are a list, such as"),
        ("histogram", ("city", ["\ud800"]), {}, "surrogates not allowed"),
        ("histogram", ("small", [300]), {}, "column 'small' is int8, got '300'"),
    ],
)
def test_what_is_no_number_or_list_is_told(what, args, wanted, message):
    people = PEOPLE.assign(small=PEOPLE.pay.fillna(0).astype("int8"))
    with pytest.raises(TraceError, match=message) as found:
        run(people, what, *args, **{"epsilon": 1.0, **wanted})
    assert "test_ops.py:" in str(found.value)
