"""The example of a boosted tree gives the sums, and the split, that plain data and an SPU give."""

from __future__ import annotations

import importlib.util
import pathlib

import jax.numpy as jnp
import numpy as np

import mplang_core as mp

FILE = pathlib.Path(__file__).parents[2] / "examples" / "boosting.py"
SPEC = importlib.util.spec_from_file_location("boosting", FILE)
boosting = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(boosting)

DATA = boosting.made_up(40)
TWO = mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])


def exact():
    """Return the sums on the grid, as integers that Python adds."""
    steps = np.rint(DATA.gradients * boosting.GRID).astype(int)
    return [
        np.array([steps[bins == i].sum(axis=0) for i in range(boosting.BINS)])
        for bins in DATA.bins.T
    ]


def test_sums_are_exact_on_the_grid():
    with mp.Simulator(TWO) as sim:
        sums = mp.fetch(sim, mp.evaluate(sim, lambda: boosting.of(DATA, 2048)))
    for found, right in zip(sums, exact(), strict=True):
        assert (found * boosting.GRID == right).all()
    assert boosting.best_split(*sums) == boosting.best_split(
        *(each / boosting.GRID for each in exact())
    )


def test_an_spu_chooses_the_same_split():
    def sums_of(gradients, bins):
        hot = (bins[:, :, None] == jnp.arange(boosting.BINS)).astype("float32")
        return jnp.einsum("nfb,nk->fbk", hot, gradients)

    def program():
        gradients = mp.put("P0", DATA.gradients.astype(np.float32))
        made = mp.device("SP0")(sums_of)(gradients, mp.put("P1", DATA.bins))
        return mp.reveal(made, to="P0")

    with mp.Simulator(TWO) as sim:
        found = mp.fetch(sim, mp.evaluate(sim, program))
    right = [each / boosting.GRID for each in exact()]
    assert boosting.best_split(*found) == boosting.best_split(*right)
    np.testing.assert_allclose(found, right, atol=1e-2)


def test_its_rows_tell_that_the_bank_learns_each_histogram():
    def program():
        gradients = mp.dataset("bank", "gradients", type=mp.TensorType("f64", (9, 2)))
        kind = mp.TensorType("i64", (9,))
        features = [mp.dataset("shop", name, type=kind) for name in ("age", "spent")]
        return boosting.histograms(gradients, features, 2048)

    rows = mp.analysis.disclosure(mp.compile(program, cluster_spec=TWO).program).rows
    learned = [row for row in rows if row.what == "reveal" and row.discloses]
    assert [(row.receiver, row.discloses) for row in learned] == [(0, (1,))] * 2
    assert not any(row.receiver == 1 and row.discloses for row in rows if row.what == "move")


def test_it_has_a_command(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["boosting.py", "--rows", "20", "--bits", "2048"])
    boosting.main()
    assert capsys.readouterr().out.startswith("split by feature ")
