"""The auction of five parties, three of which compute."""

from __future__ import annotations

import importlib.util
import pathlib

import numpy as np
import pytest

pytestmark = pytest.mark.needs("jax", "spu")

FILE = pathlib.Path(__file__).parents[2] / "examples" / "auction.py"


@pytest.fixture(scope="module")
def auction():
    spec = importlib.util.spec_from_file_location("auction", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expected(bids):
    return int(np.argmax(bids)), int(np.sort(bids)[-2])


BIDS = [
    [310, 925, 870, 924, 12],
    [5, 1, 2, 3, 4],
    [1, 2, 3, 4, 5],
    [7, 7, 1, 7, 0],
    [2**40, 2**40 + 1, 3, 2**40 - 1, 0],
]


def test_the_winner_pays_the_second_price(auction):
    with auction.backend("simulator") as host:
        for bids in BIDS:
            assert auction.hold(host, bids) == expected(bids)


@pytest.mark.needs("http")
def test_it_runs_unchanged_on_workers(auction):
    with auction.backend("http") as host:
        for bids in BIDS[:2]:
            assert auction.hold(host, bids) == expected(bids)


def test_it_tells_only_the_outcome(auction, capsys):
    auction.main(["--bids", "3", "9", "4", "1", "5"])
    assert capsys.readouterr().out == "bidder1 wins, and pays 5\n"
