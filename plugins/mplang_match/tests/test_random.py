"""Random sets of keys, and sets of a million, against Python's."""

from __future__ import annotations

import random
import string

import numpy as np
import pyarrow as pa
import pytest
from matching import CLUSTER, PROTOCOLS, check, table

import mplang_core as mp

ODD = ["", " ", "\n", ",", '"', "'", "\0", "\U0001f600", "NULL", "null", "0"]
SPELT = ("\u00e9", "e\u0301")  # by the one and by the other party


def some_key(draw, side):
    """Return a key of a party, of few that there are, so that many are in common."""
    if draw.random() < 0.3:
        return draw.choice([None, SPELT[side], *ODD])
    return "".join(draw.choices(string.ascii_letters[:3] + "01", k=draw.randrange(1, 5)))


def pair_of(draw):
    """Return the keys of both parties, with duplicates."""
    return ([some_key(draw, side) for _ in range(draw.randrange(30))] for side in range(2))


def match_of(protocol, learn):
    def program(a, b):
        return mp.match(a, b, on="id", keep=True, protocol=protocol, learn=learn)

    return mp.compile(program)


def run(sim, compiled, a, b):
    with mp.with_ctx(sim):
        given = [mp.put(f"P{i}", table(ids, pa.string())) for i, ids in enumerate((a, b))]
    return mp.fetch(sim, mp.evaluate(sim, compiled, *given))


def try_cases(count, seed):
    programs = [match_of(protocol, "both") for protocol in PROTOCOLS]
    draw = random.Random(seed)
    with mp.Simulator(CLUSTER) as sim:
        for _ in range(count):
            a, b = pair_of(draw)
            found = run(sim, draw.choice(programs), a, b)
            check([each.to_pylist() for each in found], a, b)


def test_random_keys():
    try_cases(60, 1)


@pytest.mark.long("ten thousand matches")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(10))
def test_many_random_keys(seed):
    try_cases(1000, 100 + seed)


@pytest.mark.million
@pytest.mark.long("a million keys on either side")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("protocol", ["RR22", "KKRT"])
def test_a_million_keys(protocol):
    keys = np.random.default_rng(3).permutation(1_500_000)
    sides = keys[:1_000_000], keys[500_000:]
    tables = [pa.table({"id": pa.array(each), "row": np.arange(len(each))}) for each in sides]
    with mp.Simulator(CLUSTER) as sim:
        with mp.with_ctx(sim):
            given = [mp.put(f"P{i}", each) for i, each in enumerate(tables)]
        found = mp.fetch(sim, mp.evaluate(sim, match_of(protocol, "both"), *given))
    common = np.intersect1d(*sides)
    assert len(common) == 500_000
    for rows, side in zip(found, sides, strict=True):
        ids = rows.column("id").to_numpy()
        np.testing.assert_array_equal(np.sort(ids), common)
        np.testing.assert_array_equal(side[rows.column("row").to_numpy()], ids)
    np.testing.assert_array_equal(*(each.column("id").to_numpy() for each in found))
