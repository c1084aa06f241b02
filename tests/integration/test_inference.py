"""The example of private inference gives the vendor's scores, and tells what its text says."""

from __future__ import annotations

import importlib.util
import pathlib

import numpy as np
import pytest

import mplang_core as mp

pytestmark = pytest.mark.needs("he", "jax")

FILE = pathlib.Path(__file__).parents[2] / "examples" / "inference.py"


@pytest.fixture(scope="module")
def inference():
    spec = importlib.util.spec_from_file_location("inference", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def net(inference):
    return inference.trained(steps=600, rate=0.006)


def compiled(inference, net, program, rows):
    x = mp.MPType(mp.TensorType("f64", (rows, 64)), mp.Mask.of(0))
    there = inference.Network(*(mp.MPType(mp.TensorType.of(each), mp.Mask.of(1)) for each in net))
    return mp.compile(program, x, there, cluster_spec=inference.cluster())


def check(inference, net, rows):
    """Run it on so many rows, and look at the scores beside the told bound."""
    images, _ = inference.digits()
    x = np.resize(images, (rows, 64))
    right = np.asarray(net(x))
    kind = compiled(inference, net, inference.sealed_scores, rows).program.graph.outputs[0].type
    with mp.Simulator(inference.cluster()) as sim:
        found = inference.run(sim, inference.scores, x, net)
    error = np.abs(found - right).max()
    assert error <= kind.base.error
    assert error <= 1e-4 * np.abs(right).max()
    best = np.sort(right, axis=1)
    sure = best[:, -1] - best[:, -2] > 2 * kind.base.error
    assert sure.mean() >= 0.999
    assert (found.argmax(1) == right.argmax(1))[sure].all()
    return found


def test_scores_are_those_of_the_network(inference, net):
    check(inference, net, 300)


def test_most_digits_are_right(inference, net):
    x, shown = inference.digits()
    found = np.asarray(net(x[inference.TRAINED_ON :])).argmax(1)
    assert (found == shown[inference.TRAINED_ON :]).mean() >= 0.9


def test_the_clinic_learns_scores_and_the_vendor_nothing(inference, net):
    table = mp.analysis.disclosure(compiled(inference, net, inference.scores, 50))
    assert {rank for row in table.rows if row.receiver == 0 for rank in row.discloses} == {1}
    assert not any(row.discloses for row in table.rows if row.receiver == 1)


@pytest.mark.long("4,096 rows, 10,000 rows, and a copy of the network")
@pytest.mark.timeout(300)
def test_as_many_rows_as_one_has(inference, net):
    check(inference, net, 4096)
    check(inference, net, 10_000)
    rows = np.random.default_rng(1).uniform(0, 1, (4096, 64))
    with mp.Simulator(inference.cluster()) as sim:
        copy = inference.copied(rows, inference.run(sim, inference.scores, rows, net))
    x, _ = inference.digits()
    assert np.abs(inference.scores_of_copy(copy, x) - np.asarray(net(x))).max() < 1e-3
