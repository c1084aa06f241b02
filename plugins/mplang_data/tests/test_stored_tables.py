"""Results as tables of their owner's database: PostgreSQL, and DuckDB files."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import math
import os
import time

import duckdb
import pyarrow as pa
import pytest
from mplang_analysis import PUBLIC
from mplang_data.stored import Entry, Sink, SinkConfig, StoreError, read_sink, values
from mplang_http import LocalCluster
from mplang_tables.arrow import type_of
from postgres import PASSWORD, server as server

import mplang_core as mp
from mplang_core.errors import ConfigError, PartyError

FIRST = pa.table({"id": [1, 2], "score": [0.5, None], "name": ["Ann", None]})
SECOND = pa.table({"id": [3], "score": [float("inf")], "name": ["ü'\""]})
MOMENT = datetime.datetime(2020, 1, 2, 3, 4, 5, 6)
KINDS = pa.table(
    {
        "ok": [True, None],
        "count": pa.array([2**40, None], pa.int64()),
        "at": pa.array([MOMENT, None], pa.timestamp("us")),
        "day": pa.array([MOMENT.date(), None]),
        "paid": pa.array([decimal.Decimal("12.30"), None], pa.decimal128(10, 2)),
        "photo": pa.array([b"\x00\xff", None]),
        "nan": [float("nan"), None],
    }
)


def entry(number, kind):
    return Entry(
        name="scores", version=f"{number:064x}", run=f"s-{number}", previous=None,
        program="0" * 64, time=1e9, parties=("bank",), members=(0,), kinds=(str(kind),),
        nest="0", labels=(PUBLIC.encode(),),
    )  # fmt: skip


def store(sink, table, number, name="scores"):
    kind = type_of(table.schema)
    made = entry(number, kind).model_copy(update={"name": name})
    file = values.write(kind, table)
    try:
        sink.begin("analyst", "session", name, ["bank"])
        sink.stage("analyst", "session", made, [file])
        sink.commit("analyst", "session", name, made.version)
        sink.settle("analyst", "session", name, made.version)
    finally:
        os.close(file)


def rows_in_duckdb(place):
    path, _, table = place.removeprefix("duckdb:").partition("#")
    with duckdb.connect(path, read_only=True) as database:
        return database.sql(f"FROM {table}").fetchall()


def rows_in_postgresql(place):
    import psycopg

    url, _, table = place.partition("#")
    with psycopg.connect(url) as connection:
        return connection.execute(f"SELECT * FROM {table}").fetchall()


@pytest.fixture(params=["duckdb", "postgresql"])
def database(request, tmp_path):
    """Return a place of a table, and a function that returns its rows."""
    if request.param == "duckdb":
        return f"duckdb:{tmp_path}/bank.duckdb#scores", rows_in_duckdb
    server = request.getfixturevalue("server")
    server.execute("DROP TABLE IF EXISTS scores")
    return f"{server.place}#scores", rows_in_postgresql


@pytest.fixture
def sink(tmp_path, database):
    config = SinkConfig(folder=str(tmp_path / "sink"), tables={"analyst/scores": database[0]})
    with contextlib.closing(Sink(config)) as made:
        yield made


def rows(table):
    return [tuple(row.values()) for row in table.to_pylist()]


def test_what_is_stored_takes_the_place_of_the_rows(sink, database):
    place, read = database
    for number, table in enumerate([FIRST, FIRST.slice(0, 0), SECOND]):
        store(sink, table, number)
        assert read(place) == rows(table)
    store(sink, FIRST, 4, "other")  # which has no table
    assert read(place) == rows(SECOND)
    with pytest.raises(StoreError, match="it is stored; its table .* not written: .* columns"):
        store(sink, KINDS, 5)
    assert read(place) == rows(SECOND)
    store(sink, FIRST, 6)
    assert read(place) == rows(FIRST)


def test_all_kinds_of_columns_come_to_a_table(sink, database):
    for number in range(2):  # the first makes the table
        store(sink, KINDS, number)
        first, second = database[1](database[0])
        assert math.isnan(first[-1])
        assert first[:-1] == rows(KINDS)[0][:-1]
        assert second == (None,) * KINDS.num_columns


def test_rows_that_a_constraint_forbids_leave_those_of_before(tmp_path, server):
    server.execute("DROP TABLE IF EXISTS scores")
    server.execute("CREATE TABLE scores (name text, score float8 NOT NULL, id int8)")
    place = f"{server.place}#public.scores"
    config = SinkConfig(folder=str(tmp_path / "sink"), tables={"analyst/scores": place})
    with contextlib.closing(Sink(config)) as sink:
        store(sink, SECOND, 1)
        with pytest.raises(StoreError, match="the database does not take it") as caught:
            store(sink, FIRST, 2)  # which has a NULL
        assert PASSWORD not in str(caught.value.__cause__)
        assert rows_in_postgresql(place) == [("ü'\"", float("inf"), 3)]


def test_a_database_that_was_away_takes_it_when_the_worker_starts(tmp_path, server):
    server.execute("DROP TABLE IF EXISTS scores")
    place = f"{server.place}#public.scores"
    sink = {"folder": str(tmp_path / "sink"), "tables": {"local/scores": place}}
    with LocalCluster(1) as cluster:
        config = cluster._configs["node0"].model_copy(update={"sink": sink, "mode": "production"})
        cluster._write(config)
        cluster.workers[0].terminate()
        cluster.restart(0)
        with mp.connect("http", cluster.spec) as host:
            evaluate(host, FIRST)
            server.stop()
            try:
                with pytest.raises(PartyError, match="the database does not take it") as caught:
                    evaluate(host, SECOND)
                assert PASSWORD not in str(caught.value)
            finally:
                server.start()
            assert rows_in_postgresql(place) == rows(FIRST)
        cluster.workers[0].terminate()
        cluster.restart(0)
        deadline = time.monotonic() + 30
        while rows_in_postgresql(place) != rows(SECOND):
            assert time.monotonic() < deadline
            time.sleep(0.1)


def evaluate(host, table):
    with mp.with_ctx(host):
        x = mp.put("P0", table)
    mp.evaluate(host, lambda x: mp.store(x, "scores"), x)


@pytest.mark.parametrize(
    ("key", "place"),
    [("scores", "duckdb:x#t"), ("a/..", "duckdb:x#t"), ("a/b", "csv:x#t"), ("a/b", "duckdb:x")],
)
def test_wrong_tables_are_told(tmp_path, key, place):
    with pytest.raises(ConfigError, match="sink.*(analyst/scores|no name|such as duckdb)"):
        read_sink({"folder": "sink", "tables": {key: place}}, str(tmp_path))
