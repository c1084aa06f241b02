"""Queries over tables of PostgreSQL run there; a party has their result."""

from __future__ import annotations

import pytest
from postgres import server as server

import mplang_core as mp
from mplang_core.errors import PartyError

CLUSTER = mp.ClusterSpec([{"name": "bank"}])
COLUMNS = {"id": "int64", "pay": "double", "town": "string"}
ROWS = 3000


@pytest.fixture(scope="module")
def bank(server):
    """The place of a table, and the statements that its server has run of readers."""
    server.execute(
        "CREATE TABLE people AS SELECT n::bigint AS id, n * 0.5::double precision AS pay, "
        f"('town' || n % 9)::text AS town, 'secret' AS note FROM generate_series(1, {ROWS}) n"
    )
    server.execute(
        "CREATE TABLE towns AS SELECT 'town' || n AS town, n AS zip FROM generate_series(0, 8) n"
    )
    return server


def data(server, **fields):
    people = {"source": f"{server.place}#public.people", "columns": COLUMNS, **fields}
    towns = {"source": f"{server.place}#towns", "columns": {"town": "string", "zip": "int32"}}
    return {"bank": {"people": people, "towns": towns}}


def by_town():
    """Return zip codes with the number of people who are paid much."""
    people, towns = mp.dataset("bank", "people"), mp.dataset("bank", "towns")

    def joined(people, towns):
        much = people.filter(people.pay > 100).join(towns, "town")
        return much.group_by("zip").agg(n=much.count(), most=much.id.max()).order_by("zip")

    return mp.device("P0")(joined)(people, towns)


@pytest.fixture
def asked(monkeypatch):
    """How data sets were asked for: read whole, or queried."""
    from mplang_data import reading

    seen = []
    for name in ("read", "query"):
        ask = getattr(reading, name)

        def noted(*args, ask=ask, name=name):
            seen.append(name)
            return ask(*args)

        monkeypatch.setattr(reading, name, noted)
    return seen


@pytest.mark.parametrize("mode", ["standard", "launch"])
def test_a_join_is_run_by_the_server(bank, asked, mode):
    with mp.Simulator(CLUSTER, data=data(bank)) as host:
        rows = mp.fetch(host, mp.evaluate(host, by_town, mode=mode)).to_pylist()
    numbers = [n for n in range(1, ROWS + 1) if n * 0.5 > 100]
    expected = [
        {"zip": zip, "n": len(ids := [n for n in numbers if n % 9 == zip]), "most": max(ids)}
        for zip in range(9)
    ]
    assert (rows, asked) == (expected, ["query"])


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"ranges": {"pay": (0, 10)}}, "column 'pay' has numbers outside of the range"),
        ({"rows": 3}, "it does not have the 3 rows"),
        ({"values": {"town": ("town1",)}}, "column 'town' has values that are not in the list"),
    ],
)
def test_what_is_published_is_checked_by_the_server(bank, fields, reason):
    with (
        mp.Simulator(CLUSTER, data=data(bank, **fields)) as host,
        pytest.raises(PartyError, match=f"not what its owner published: .*{reason}"),
    ):
        mp.evaluate(host, by_town)


def test_a_table_of_another_engine_is_joined_at_the_party(bank, asked, tmp_path):
    (tmp_path / "towns.csv").write_text("town,zip\ntown1,1\n")
    both = data(bank)
    csv = {"source": f"csv:{tmp_path}/towns.csv", "columns": {"town": "string", "zip": "int32"}}
    both["bank"]["towns"] = csv
    with mp.Simulator(CLUSTER, data=both) as host:
        (row,) = mp.fetch(host, mp.evaluate(host, by_town)).to_pylist()
    assert row["zip"] == 1
    assert sorted(asked) == ["read", "read"]


def test_the_limit_of_joins_is_the_owner_s(bank):
    """As on DuckDB: nine towns of 3000 people give 333 times their rows."""
    from mplang_data.holding import read_data_sets
    from mplang_data.reading import Asked, query

    from mplang_core.errors import KernelError

    people = read_data_sets(data(bank)["bank"], "/")["people"]
    asked = {name: Asked(people, people.type) for name in ("a", "b")}
    sql, kind = (
        "SELECT count(*) AS n FROM a JOIN b ON a.town = b.town",
        mp.TableType((("n", "int64"),)),
    )
    with pytest.raises(KernelError, match="over 16 times the rows"):
        query(asked, sql, kind, {})
    query(asked, sql, kind, {"join": 400})
