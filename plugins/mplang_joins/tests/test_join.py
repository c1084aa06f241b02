"""Joins on shares, against Python's dicts."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from secret_joining import HOWS, PARTIES, PROTOCOLS, cluster, expected, joined, table

import mplang_core as mp


def check(tables, how, protocol="SEMI2K", kind=None, **arguments):
    """Join lists of keys and numbers, and compare with Python's dicts."""
    sets = [table(rows, f"x{i}", kind) for i, rows in enumerate(tables)]
    data = {name: {"t": each} for name, each in zip(PARTIES, sets, strict=False)}
    with mp.Simulator(cluster(protocol, len(tables)), data=data) as sim:
        found = joined(sim, len(tables), how, **arguments)
    assert found == expected(tables, how)


TWO = ([("a", 5), ("b", -7), ("c", 11), (None, 13)], [("c", 10), ("x", 20), ("a", -30), (None, 40)])
THREE = (*TWO, [("c", 1), ("b", 2), ("y", 3)])


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_two_tables(protocol, how):
    check(TWO, how, protocol)


@pytest.mark.parametrize("how", HOWS)
def test_three_tables(how):
    check(THREE, how)
    check(THREE, how, "ABY3")


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize(
    "tables",
    [
        ([], [("a", 1)]),
        ([("a", 1)], []),
        ([], []),
        ([("a", 1)], [("b", 2)]),
        ([("a", 1), ("b", 2)], [("b", 3), ("a", 4)]),
        ([(f"{i}", i) for i in range(12)], [(f"{i}", -i) for i in range(12)]),
    ],
    ids=["none here", "none there", "none", "disjoint", "equal", "full"],
)
def test_sizes_of_what_is_in_common(tables, how):
    check(tables, how, kind=pa.string())


def some_table(draw, keys):
    here = [draw.choice([None, *keys]) for _ in range(draw.randrange(10))]
    different = dict.fromkeys(each for each in here if each is not None)
    return [(key, draw.randrange(-1000, 1000)) for key in [*different, *[None] * here.count(None)]]


def try_cases(count, seed):
    draw = random.Random(seed)
    for _ in range(count):
        sides, protocol = draw.choice([(2, "SEMI2K"), (2, "ABY3"), (3, "ABY3"), (3, "SEMI2K")])
        keys = [f"{i}" for i in range(draw.choice([3, 12]))]
        check(
            [some_table(draw, keys) for _ in range(sides)], draw.choice(HOWS), protocol, pa.string()
        )


def test_random_tables():
    try_cases(12, 1)


@pytest.mark.long("a thousand joins")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(5))
def test_many_random_tables(seed):
    try_cases(200, 100 + seed)
