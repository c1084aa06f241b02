"""Ranges that a program declares, checked by who has the value."""

from __future__ import annotations

import numpy as np
import pytest

import mplang_core as mp
from mplang_core.errors import PartyError, RunError, TraceError

SECRET = 271_828


def put(x, low, high):
    return mp.put("P1", mp.put("P0", x, range=(low, high)))


@pytest.mark.parametrize(
    ("value", "bounds"),
    [
        (np.array([1.0, 2.0], np.float32), (1, 2)),
        (np.array([[0]], np.int64), (0, 0)),
        (np.array([2**63 - 1]), (0, 2**63 - 1)),
        (np.array([2**64 - 1], np.uint64), (-1, np.inf)),
        (np.array([True, False]), (0, 1)),
        (np.zeros(0, np.float32), (5, 6)),
        (3.5, (-np.inf, 4)),
        (7, (np.int32(7), np.float32(7.5))),
        ([1.0, 2.0], [0, 3]),
    ],
)
def test_what_is_within_moves_as_without_a_range(value, bounds, mode, simulate):
    sim = simulate(2)
    plain = mp.evaluate(sim, lambda: mp.put("P1", mp.put("P0", value)), mode=mode)
    bound = mp.evaluate(sim, lambda: put(value, *bounds), mode=mode)
    np.testing.assert_array_equal(mp.fetch(sim, bound), mp.fetch(sim, plain))
    assert (bound.type, bound.device) == (plain.type, plain.device)


@pytest.mark.parametrize("value", [SECRET, -1, np.nan, np.inf])
def test_what_is_outside_fails_at_its_party_and_is_not_told(value, mode, simulate):
    sim = simulate(2)
    x = mp.evaluate(sim, lambda: mp.put("P1", np.array([1.0, value])))
    with pytest.raises(PartyError, match=r"outside of the range \[0, 1000\]") as caught:
        mp.evaluate(sim, lambda x: mp.put("P0", x, range=(0, 1000)), x, mode=mode)
    error = caught.value
    assert (error.rank, error.op) == (1, "simp.bounded")
    assert error.location.startswith("test_declared_ranges.py:")
    assert isinstance(error.__cause__, RunError)
    assert str(SECRET) not in str(error)
    assert "nan" not in str(error)


def test_only_the_party_whose_value_it_is_checks(simulate):
    sim = simulate(2)
    both = mp.evaluate(
        sim, lambda: mp.pconv([mp.constant(1, parties=0), mp.constant(SECRET, parties=1)])
    )
    found = mp.evaluate(sim, lambda x: mp.put("P0", x, range=(0, 1)), both)
    assert mp.fetch(sim, found) == 1


def test_nests_are_checked_leaf_by_leaf(simulate):
    sim = simulate(2)
    nest = {"a": 1.0, "b": [2.0, 3.0]}
    found = mp.evaluate(sim, lambda: mp.put("P0", nest, range=(0, 3)))
    np.testing.assert_array_equal(mp.fetch(sim, found)["b"], [2, 3])
    with pytest.raises(PartyError):
        mp.evaluate(sim, lambda: mp.put("P0", nest, range=(0, 2)))


def test_a_value_that_stays_is_checked_as_well(simulate):
    sim = simulate(2)
    with pytest.raises(PartyError):
        mp.evaluate(sim, lambda: mp.put("P0", mp.put("P0", SECRET), range=(0, 1)))


@pytest.mark.needs("spu")
def test_what_is_sealed_is_checked_before(mode, simulate):
    sim = simulate(2)

    def program(value):
        return mp.reveal(mp.seal(mp.put("P1", value), range=(0, 1)), to="P0")

    assert mp.fetch(sim, mp.evaluate(sim, program, np.float32(1), mode=mode)) == 1
    with pytest.raises(PartyError, match="party 1 failed in simp.bounded"):
        mp.evaluate(sim, lambda: program(np.float32(SECRET)), mode=mode)


@pytest.mark.needs("spu")
def test_what_is_secret_already_cannot_be_checked(simulate):
    with pytest.raises(TraceError, match="Declare it where the value is first put or sealed"):
        mp.evaluate(simulate(2), lambda: mp.seal(mp.seal(1.0), range=(0, 1)))


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [
        ((1, 0), r"low not above high, got \(1, 0\)"),
        ((0, np.nan), "two real numbers"),
        ((0, "many"), "two real numbers"),
        ((0, 1j), "two real numbers"),
        ((False, True), "two real numbers"),
        ((0,), "two real numbers"),
        (5, "two real numbers"),
    ],
)
def test_what_is_no_range_is_refused_while_tracing(bounds, reason, simulate):
    with pytest.raises(TraceError, match=reason) as caught:
        mp.evaluate(simulate(2), lambda: mp.put("P0", 1.0, range=bounds))
    assert "test_declared_ranges.py:" in str(caught.value)


def test_numbers_without_an_order_and_tables_have_no_range(simulate):
    with pytest.raises(TraceError, match="complex numbers have no order"):
        mp.evaluate(simulate(2), lambda: mp.put("P0", np.array([1j]), range=(0, 1)))
    table = mp.MPType(mp.TableType((("a", "int64"),)), mp.Mask.of(0))
    with pytest.raises(TraceError, match="a range is of plain tensors"):
        mp.compile(
            lambda x: mp.put("P0", x, range=(0, 1)), table, cluster_spec=mp.ClusterSpec.simple(2)
        )


def test_artifacts_keep_it(tmp_path, mode, simulate):
    cluster, scalar = mp.ClusterSpec.simple(2), mp.TensorType("f64")
    x = mp.MPType(scalar, mp.Mask.of(0))
    compiled = mp.compile(lambda x: mp.put("P1", x, range=(0, np.inf)), x, cluster_spec=cluster)
    path = tmp_path / "program.mpl"
    mp.artifact.save(path, compiled)
    loaded, sim = mp.artifact.load(path), simulate(cluster)
    for value in (1.0, -1.0):
        given = mp.evaluate(sim, lambda v=value: mp.put("P0", v))
        if value > 0:
            assert mp.fetch(sim, loaded.run(sim, given, mode=mode)) == value
        else:
            with pytest.raises(PartyError):
                loaded.run(sim, given, mode=mode)
