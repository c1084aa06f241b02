"""Queries over tables of PostgreSQL run there; a party has their result."""

from __future__ import annotations

import pytest
from joining import CLUSTER, EXPECTED, ROWS, asked as asked, by_town, two_tables
from postgres import server as server

import mplang_core as mp
from mplang_core.errors import PartyError


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
    return two_tables(server, "public", **fields)


@pytest.mark.parametrize("mode", ["standard", "launch"])
def test_a_join_is_run_by_the_server(bank, asked, mode):
    with mp.Simulator(CLUSTER, data=data(bank)) as host:
        rows = mp.fetch(host, mp.evaluate(host, by_town, mode=mode)).to_pylist()
    assert (rows, asked) == (EXPECTED, ["query"])


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
