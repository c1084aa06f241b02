"""Sums over rows, and rows in a circle."""

from __future__ import annotations

import numpy as np
import pytest
from he_values import cluster

import mplang_core as mp
from mplang_core import errors


def run(program, **config):
    with mp.Simulator(cluster(**config), check_numbers="raise") as sim:
        return mp.fetch(sim, mp.evaluate(sim, program))


@pytest.mark.parametrize("rows", [1, 3, 100, 4096, 9000])
def test_sums_of_floats(rows):
    x = np.linspace(-1, 1, 2 * rows).reshape(rows, 2)

    def program(x):
        squares = mp.device("H", spare=1)(lambda x: x * x)(mp.put("C", x, range=(-1, 1)))
        return mp.reveal(mp.he.sum_rows(squares), to="C")

    with mp.Simulator(cluster(), check_numbers="raise") as sim:
        with mp.with_ctx(sim):
            there = mp.put("C", x)
        found = mp.fetch(sim, mp.evaluate(sim, program, there))
    assert found.shape == (1, 2)
    np.testing.assert_allclose(found, (x * x).sum(axis=0, keepdims=True), atol=1e-4 * rows)


def test_sums_of_integers_are_exact():
    n = np.arange(-30, 30).reshape(-1, 3).astype(np.int16)

    def program():
        squares = mp.device("H", spare=1)(lambda n: n.astype("int32") ** 2 + 1)(mp.put("C", n))
        return mp.reveal(mp.he.sum_rows(squares), to="C")

    right = (n.astype(int) ** 2 + 1).sum(axis=0, keepdims=True)
    assert run(program).tolist() == right.tolist()


@pytest.mark.parametrize("by", [1, 4])
@pytest.mark.parametrize("dtype", [np.int16, np.float64])
def test_rows_in_a_circle(by, dtype):
    x = np.arange(15).reshape(5, 3).astype(dtype)

    def program():
        sealed = mp.seal(mp.put("C", x, range=(0, 20)), to="H")
        return mp.reveal(mp.he.rotate_rows(sealed, by), to="C")

    np.testing.assert_allclose(run(program, limit=100), np.roll(x, -by, axis=0), atol=1e-4)


def test_keys_of_rotations_are_made_once():
    def program():
        x = mp.seal(mp.put("C", [1, 2, 3], range=(0, 9)), to="H")
        return [mp.reveal(mp.he.sum_rows(x), to="C") for _ in range(2)]

    made = mp.compile(program, cluster_spec=cluster(limit=100)).program
    assert [op.opcode for op in made.graph.walk()].count("he.rotation_keys") == 1


REFUSED = {
    "no level": (lambda x: mp.he.sum_rows(mp.device("H")(lambda x: x * x)(x)), "levels"),
    "no row": (lambda x: mp.he.rotate_rows(mp.seal(x, to="H"), 4), "is a row of"),
    "no device": (lambda x: mp.he.sum_rows(x), "on a device of kind HE"),
    "no value": (lambda x: mp.he.sum_rows(3), "on a device of kind HE"),
    "no number of products": (lambda x: mp.device("H", spare=-1)(lambda x: x)(x), "spare is"),
}


@pytest.mark.parametrize(("fn", "why"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_room_or_no_rows_is_refused(fn, why):
    with pytest.raises(errors.TraceError, match=why) as told:
        run(lambda: fn(mp.put("C", np.array([0.5, 1.0, 0.0]), range=(0, 1))), limit=9)
    assert "test_rows.py:" in str(told.value)
