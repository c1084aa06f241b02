"""A query over tables of several parties tells its result, and nothing else."""

from __future__ import annotations

from across_parties import compiled
from test_across import DATA, JOIN

import mplang_core as mp


def revealed(query):
    """Return the types of what a query makes plain."""
    rows = mp.analysis.disclosure(compiled(DATA, query)).rows
    return sorted(str(row.type) for row in rows if row.what == "reveal")


def test_what_chooses_groups_is_not_told():
    query = f"SELECT city, sum(price) AS a {JOIN} GROUP BY city HAVING count(DISTINCT p.id) > 1"
    assert revealed(query) == ["bool[3]", "bool[3]", "bool[]", "i64[3]"]


def test_what_one_aggregate_of_all_is_made_of_is_not_told():
    assert revealed(f"SELECT avg(price) AS a {JOIN}") == ["bool[1]", "bool[]", "f64[1]"]


def test_nothing_is_told_of_rows_and_no_size():
    rows = mp.analysis.disclosure(compiled(DATA, f"SELECT count(*) AS n {JOIN}")).rows
    told = [row for row in rows if row.discloses]
    assert {row.what for row in told} == {"move", "reveal", "result", "failure"}
    assert all(row.form == "share" or str(row.type) in ("i64[1]", "bool[]")
               for row in told)  # fmt: skip
