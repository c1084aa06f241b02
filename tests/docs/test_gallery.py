"""What the gallery shows of the examples is what they give: sentences and pictures."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

import pytest
import shown_pictures

import mplang_core as mp

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.replace("\n> ", " ").split())


def tensor(dtype, shape, rank):
    """The type of a tensor at a party."""
    return mp.MPType(mp.TensorType(dtype, shape), mp.Mask.of(rank))


@pytest.fixture
def example(monkeypatch):
    """Import a module of an example, which finds the others of its folder."""

    def imported(path):
        file = ROOT / "examples" / path
        monkeypatch.syspath_prepend(file.parent)
        for name in (each.stem for each in file.parent.glob("*.py")):
            monkeypatch.delitem(sys.modules, name, raising=False)
        return import_module(file.stem)

    return imported


def assert_shown(compiled, name, sentences):
    """Fail unless the page has the first sentences of a program, and its picture."""
    disclosure = mp.analysis.disclosure(compiled)
    shown_pictures.assert_shown(disclosure, f"{name}.svg")
    assert f"](images/{name}.svg)" in PAGE
    for sentence in disclosure.sentences()[:sentences]:
        assert sentence in TEXT


@pytest.mark.needs("jax", "spu")
def test_auction(example):
    auction = example("auction.py")
    bids = [tensor("i64", (), rank) for rank in range(5)]
    cluster = auction.make_cluster()
    assert_shown(mp.compile(auction.auction, *bids, cluster_spec=cluster), "auction", 1)


@pytest.mark.needs("jax", "spu", tools=("sklearn", "psutil"))
def test_training(example):
    demo = example("vertical_lr.py")
    chosen = argparse.Namespace(parties=2, protocol="CHEETAH")
    places = {
        name: tensor("f32", part.shape, 0 if name.startswith("a_") else 1)
        for name, part in demo.load().items()
    }
    program = demo.make_program(20, 30)
    cluster = demo.make_cluster(chosen, [])
    assert_shown(mp.compile(program, **places, cluster_spec=cluster), "vertical_lr", 2)


@pytest.mark.needs("jax", "spu", "he", tools=("sklearn",))
def test_inference(example):
    demo = example("inference.py")
    net = demo.Network(*(tensor("f64", shape, 1) for shape in ((64, 32), (32,), (32, 10), (10,))))
    rows = tensor("f64", (400, 64), 0)
    compiled = mp.compile(demo.scores, rows, net, cluster_spec=demo.cluster())
    assert_shown(compiled, "inference", 1)


@pytest.mark.needs("phe")
def test_boosting(example):
    demo = example("boosting.py")
    gradients, bins = tensor("f64", (200, 2), 0), tensor("i64", (200,), 1)
    cluster = mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])
    compiled = mp.compile(demo.histograms, gradients, [bins] * 3, cluster_spec=cluster)
    assert_shown(compiled, "boosting", 1)


@pytest.mark.needs("jax", "spu", "ibis", "data", "simulator", "worker", tools=("sklearn",))
def test_hospitals(example):
    organizations, program = example("hospitals/organizations.py"), sys.modules["program"]
    nodes = [{"name": name} for name in organizations.NAMES]
    cluster = mp.ClusterSpec.from_dict({"nodes": nodes, "devices": program.DEVICES})
    known = organizations.patients()
    measured = [name for name in known.columns if name not in ("id", "diagnosis")]
    data = {
        "hospital_a": {"patients": known[["id", *measured[:15]]]},
        "hospital_b": {"patients": known[["id", *measured[15:], "diagnosis"]]},
    }
    with mp.Simulator(cluster, data=data) as sim:
        compiled = mp.compile(program.train, cluster_spec=cluster).trace(sim)
    assert_shown(compiled, "hospitals", 2)


@pytest.mark.needs("spu", "joins", "data", "simulator")
def test_bank_and_shop(example, tmp_path):
    data, query = example("bank_and_shop/data.py"), example("bank_and_shop/query.py")
    data.make(tmp_path)
    cluster = mp.ClusterSpec([{"name": name} for name in ("bank", "shop", "lab")])
    catalogues = {name: data.catalogue(tmp_path, name) for name in data.OWN}
    with mp.Simulator(cluster, data=catalogues) as sim:
        compiled = mp.compile(query.by_secret_join, cluster_spec=cluster).trace(sim)
    assert_shown(compiled, "bank_and_shop", 2)
