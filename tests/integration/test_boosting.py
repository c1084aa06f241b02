"""The example of a boosted tree gives the sums, and the split, that plain data and an SPU give."""

from __future__ import annotations

import importlib.util
import pathlib

import numpy as np
import pytest

import mplang_core as mp

pytestmark = pytest.mark.needs("phe")

FILE = pathlib.Path(__file__).parents[2] / "examples" / "boosting.py"
TWO = mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])


@pytest.fixture(scope="module")
def boosting():
    spec = importlib.util.spec_from_file_location("boosting", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def data(boosting):
    return boosting.made_up(40)


@pytest.fixture(scope="module")
def exact(boosting, data):
    """Return the sums on the grid, as integers that are added in plain."""
    steps = np.rint(data.gradients * boosting.GRID).astype(int)
    places = range(boosting.BINS)
    return [np.array([steps[bins == i].sum(axis=0) for i in places]) for bins in data.bins.T]


def test_sums_are_exact_on_the_grid(boosting, data, exact):
    with mp.Simulator(TWO) as sim:
        sums = mp.fetch(sim, mp.evaluate(sim, lambda: boosting.of(data, 2048)))
    for found, right in zip(sums, exact, strict=True):
        assert (found * boosting.GRID == right).all()
    right = [each / boosting.GRID for each in exact]
    assert boosting.best_split(*sums) == boosting.best_split(*right)


@pytest.mark.needs("jax", "spu")
def test_an_spu_chooses_the_same_split(boosting, data, exact):
    import jax.numpy as jnp

    def sums_of(gradients, bins):
        hot = (bins[:, :, None] == jnp.arange(boosting.BINS)).astype("float32")
        return jnp.einsum("nfb,nk->fbk", hot, gradients)

    def program():
        gradients = mp.put("P0", data.gradients.astype(np.float32))
        made = mp.device("SP0")(sums_of)(gradients, mp.put("P1", data.bins))
        return mp.reveal(made, to="P0")

    with mp.Simulator(TWO) as sim:
        found = mp.fetch(sim, mp.evaluate(sim, program))
    right = [each / boosting.GRID for each in exact]
    assert boosting.best_split(*found) == boosting.best_split(*right)
    np.testing.assert_allclose(found, right, atol=1e-2)


@pytest.mark.needs("data")
def test_its_rows_tell_that_the_bank_learns_each_histogram(boosting):
    def program():
        gradients = mp.dataset("bank", "gradients", type=mp.TensorType("f64", (9, 2)))
        kind = mp.TensorType("i64", (9,))
        features = [mp.dataset("shop", name, type=kind) for name in ("age", "spent")]
        return boosting.histograms(gradients, features, 2048)

    rows = mp.analysis.disclosure(mp.compile(program, cluster_spec=TWO).program).rows
    learned = [row for row in rows if row.what == "reveal" and row.discloses]
    assert [(row.receiver, row.discloses) for row in learned] == [(0, (1,))] * 2
    assert not any(row.receiver == 1 and row.discloses for row in rows if row.what == "move")


def test_it_has_a_command(boosting, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["boosting.py", "--rows", "20", "--bits", "2048"])
    boosting.main()
    assert capsys.readouterr().out.startswith("split by feature ")
