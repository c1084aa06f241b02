"""Random queries over tables of several parties give what DuckDB gives, or are refused."""

from __future__ import annotations

import pytest
from across_parties import asked, expected
from mplang_joins.across.refused import REASONS
from random_queries import query, tables
from test_across import alike, in_order

from mplang_core.errors import TraceError

LONG = 300


def runs(seed):
    """Return whether a query runs; what it gives is what DuckDB gives."""
    parties = 3 if seed % 4 == 0 else 2
    data, text = tables(seed, parties), query(seed, parties)
    try:
        match = "psi" if parties == 2 and seed % 3 == 0 else "secret"
        protocol = "ABY3" if seed % 5 == 0 else "SEMI2K"
        # FM64 has little room for means
        field = "FM128" if "avg" in text or "stddev" in text else "FM64"
        found = asked(data, text, protocol, parties, match, field=field)
    except TraceError as error:
        told = str(error)
        assert "SP0: the query cannot run: " in told, told
        assert told.partition("cannot run: ")[2].partition(":")[0] in REASONS, told
        return False
    alike(in_order(found), in_order(expected(data, text)))
    return True


@pytest.mark.parametrize(
    "seed",
    [
        1,
        *(pytest.param(n, marks=pytest.mark.long("a minute on three parties")) for n in (2, 3)),
        *range(4, 7),
    ],
)
def test_a_random_query_is_right_or_refused(seed):
    runs(seed)


@pytest.mark.long("three hundred random queries")
@pytest.mark.timeout(7200)
def test_three_hundred_random_queries_are_right_or_refused():
    assert sum(map(runs, range(100, 100 + LONG))) >= LONG * 8 // 10
