"""Queries over tables of two parties that learn by a match which keys are in common."""

from __future__ import annotations

import pyarrow as pa
import pytest
from across_parties import asked, compiled, expected, held
from test_across import DATA, JOIN, QUERIES, VISITS, alike, in_order

import mplang_core as mp
from mplang_core.errors import TraceError

FEW = ("groups of both", "means", "a left join", "a semi join", "an anti join", "IN")
GROUPED = f"SELECT city, kind, sum(price) AS a {JOIN} WHERE debt > 0 GROUP BY city, kind"


@pytest.mark.parametrize("name", FEW)
def test_it_gives_what_duckdb_gives(name):
    check(name)


@pytest.mark.long("all queries once more, after a match")
@pytest.mark.parametrize("name", sorted(QUERIES.keys() - set(FEW)))
def test_any_query_gives_what_duckdb_gives(name):
    check(name)


def check(name):
    field = "FM128" if "var" in QUERIES[name] else "FM64"
    found = in_order(asked(DATA, QUERIES[name], match="psi", field=field))
    alike(found, in_order(expected(DATA, QUERIES[name])))


@pytest.mark.parametrize("match", ["secret", "psi"])
@pytest.mark.parametrize("how", ["JOIN", "LEFT JOIN", "ANTI JOIN"])
def test_keys_of_two_columns_may_be_null_in_one(how, match):
    """Two rows without a key in one column each were one key, in one group, twice."""
    a = pa.table(
        {"k": ["a", "a", None, "b", None, None], "l": [1, None, 2, 2, 3, None], "x": [*range(6)]}
    )
    b = pa.table({"m": ["a", "a", None, "b"], "n": [1, None, 2, 2]})
    most = {"rows": {"at_most": 9}}
    data = {"bank": {"a": held(a, {}, **most)}, "shop": {"b": held(b, {}, **most)}}
    query = (
        f"SELECT sum(x) AS s, count(*) AS n FROM {{a}} a {how} {{b}} b ON a.k = b.m AND a.l = b.n"
    )
    alike(asked(data, query, match=match), expected(data, query))


def test_it_tells_which_keys_are_in_common_and_no_size():
    told = [row for row in mp.analysis.disclosure(compiled(DATA, GROUPED, match="psi")).rows
            if row.discloses]  # fmt: skip
    assert {row.what for row in told} == {"move", "match", "reveal", "result", "failure"}
    (of_bank,) = (row for row in told if row.what == "match" and row.sources[0].party == 0)
    uses = {each.name: each.guards[0].uses for each in of_bank.sources}
    assert uses["data set people.id"] == ("match",)
    assert uses["data set people.debt"] == ("filter",)
    assert set(uses.values()) == {("match",), ("filter",), ()}


def test_it_is_of_two_parties():
    query = (
        "SELECT count(*) AS n FROM {people} p JOIN {sales} s ON p.id = s.who "
        "JOIN {visits} v ON p.id = v.who"
    )
    data = {**DATA, "lab": {"visits": held(VISITS, {"who": 5})}}
    with pytest.raises(TraceError, match="tables: a match joins tables of two parties"):
        compiled(data, query, parties=3, match="psi")


def test_another_word_is_refused():
    with pytest.raises(TraceError, match=r"match is 'secret' or 'psi', got 'open'"):
        compiled(DATA, GROUPED, match="open")
