"""Which queries run at the sources of data sets, as an analysis tells it before anything runs."""

from __future__ import annotations

import pytest
from mplang_analysis import queries
from mplang_tables import to_tensor

import mplang_core as mp

COLUMNS = {"id": "int64", "pay": "double"}
CLUSTER = mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])
KNOWN = {
    "bank": {
        "people": {"columns": COLUMNS},
        "others": {"columns": COLUMNS},
        "ledger": {"columns": COLUMNS, "engine": "postgresql"},
        "holes": {"columns": COLUMNS, "engine": "postgresql", "nan": "missing"},
    },
    "shop": {"ledger": {"columns": COLUMNS, "engine": "postgresql"}},
}


def rows(program, known=KNOWN):
    with mp.catalogue(known):
        compiled = mp.compile(program, cluster_spec=CLUSTER)
        compiled.trace(None)
        return queries(compiled)


def table(name, party="bank", columns=None):
    return mp.dataset(party, name, columns)


def at(device, fn, *tables):
    return mp.device(device)(fn)(*tables)


def count(t):
    return t.agg(n=t.count())


def joined(a, b):
    return count(a.join(b, "id"))


def test_each_query_has_its_engine():
    found = rows(
        lambda: (
            at("P0", count, table("people")),
            at("P0", count, table("ledger")),
            at("P1", count, table("ledger", "shop")),
        )
    )
    assert [(row.party, row.data_sets, row.at, row.engine) for row in found.rows] == [
        (0, ("people",), "source", "duckdb"),
        (0, ("ledger",), "source", "postgresql"),
        (1, ("ledger",), "source", "postgresql"),
    ]
    text = str(found)
    assert "at the source, postgresql" in text
    assert "test_query_table.py:" in text
    assert "shop" in text


def test_tables_of_one_engine_are_joined_there():
    found = rows(lambda: at("P0", joined, table("people"), table("others")))
    assert [(row.data_sets, row.at) for row in found.rows] == [(("people", "others"), "source")]
    assert found.remarks() == []


def test_tables_of_one_server_may_be_joined_there():
    known = {"bank": {**KNOWN["bank"], "others": KNOWN["bank"]["ledger"]}}
    found = rows(lambda: at("P0", joined, table("ledger"), table("others")), known)
    assert [row.engine for row in found.rows] == ["postgresql"]
    assert "Tables of one server and one account" in str(found)


def used_otherwise():
    t = table("people", columns=["id"])
    return at("P0", count, t), mp.device("P0")(to_tensor)(t, rows=3)


def result_too():
    t = table("people")
    return at("P0", count, t), t


def other_table_leaves():
    others = table("others", columns=["id"])
    return at("P0", joined, table("people"), others), others


WHY = {
    "another step": (
        lambda: at("P0", count, at("P0", lambda t: t.filter(t.id > 1), table("people"))),
        "its table is what another step of the program gave",
    ),
    "a table of a step": (
        lambda: at(
            "P0", joined, table("people"), at("P0", lambda t: t.distinct(), table("others"))
        ),
        "one of its tables is what another step of the program gave",
    ),
    "two engines": (
        lambda: at("P0", joined, table("people"), table("ledger")),
        "its data sets are at several engines: duckdb, postgresql",
    ),
    "used otherwise": (used_otherwise, "people is read whole: table.to_tensor uses it at test_qu"),
    "a result": (result_too, "people is read whole: it is a result of the program"),
    "its table leaves": (
        other_table_leaves,
        "people is read whole: ibis.run joins it at test_query_table.py",
    ),
    "NaN": (lambda: at("P0", count, table("holes")), "NaN in holes is a missing number"),
}


@pytest.mark.parametrize(("program", "why"), WHY.values(), ids=list(WHY))
def test_why_a_query_runs_in_the_engine(program, why):
    last = rows(program).rows[-1] if program is not result_too else rows(program).rows[0]
    assert (last.at, last.engine) == ("engine", "duckdb")
    assert last.why.startswith(why)


def test_what_is_read_and_not_queried_is_told_as_well():
    (row,) = rows(lambda: table("people")).rows
    assert (row.op, row.at, row.why) == ("reading", "engine", "it is a result of the program")


def test_without_a_catalogue_no_engine_is_known():
    def program():
        return at("P0", count, mp.dataset("bank", "people", type=COLUMNS))

    compiled = mp.compile(program, cluster_spec=CLUSTER)
    compiled.trace(None)
    (row,) = queries(compiled).to_dict()["queries"]
    assert (row["at"], row["engine"], row["why"]) == ("source", "", "")
