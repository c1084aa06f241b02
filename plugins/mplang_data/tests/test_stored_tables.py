"""Results as tables of their owner's database: PostgreSQL, and DuckDB files."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import math
import os
from concurrent.futures import ThreadPoolExecutor

import duckdb
import psycopg
import pyarrow as pa
import pytest
from mplang_analysis import PUBLIC
from mplang_data.stored import Entry, Sink, SinkConfig, StoreError, read_sink, values
from mplang_http import LocalCluster
from mplang_tables import arrow
from mplang_tables.arrow import type_of
from mplang_testing.waiting import DEADLINE, wait_until
from postgres import PASSWORD, server as server

import mplang_core as mp
from mplang_core.errors import ConfigError, PartyError

FIRST = pa.table({"id": [1, 2], "score": [0.5, None], "name": ["Ann", None]})
SECOND = pa.table({"id": [3], "score": [float("inf")], "name": ["ü'\""]})
DAY = datetime.date(2020, 1, 2)
MOMENT = datetime.datetime(2020, 1, 2, 3, 4, 5, 123456)
CELLS = {
    "bool": True,
    **{f"int{n}": -(2 ** (n - 1)) for n in (8, 16, 32, 64)},
    **{f"uint{n}": 2**n - 1 for n in (8, 16, 32, 64)},
    "float": 0.5,
    "double": 0.1,
    "string": "ü'\"\t\\N",
    "binary": b"\x00\xff",
    "date32[day]": DAY,
    "time64[us]": MOMENT.time(),
    "timestamp[s]": MOMENT.replace(microsecond=0),
    "timestamp[ms]": MOMENT.replace(microsecond=123000),
    "timestamp[us]": MOMENT,
    "timestamp[us, tz=UTC]": MOMENT.replace(tzinfo=datetime.UTC),
    "decimal128(38, 10)": decimal.Decimal("1234567890123456789012345678.0123456789"),
}
KINDS = pa.table(
    {kind: [cell, None] for kind, cell in CELLS.items()},
    schema=arrow.schema(mp.TableType(tuple((kind, kind) for kind in CELLS))),
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
    path, _, table = place.removeprefix("duckdb:").rpartition("#")
    with duckdb.connect(path, read_only=True) as database:
        return rows(database.sql(f"FROM {table}").to_arrow_table())


def rows_in_postgresql(place):
    url, _, table = place.partition("#")
    with psycopg.connect(url) as connection:
        return connection.execute(f"SELECT * FROM {table}").fetchall()


@pytest.fixture(
    params=[
        "duckdb",
        pytest.param(
            "postgresql", marks=pytest.mark.long("starts a process for each of its writes")
        ),
    ]
)
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
    store(sink, FIRST, 3, "other")  # which has no table
    assert read(place) == rows(SECOND)
    with pytest.raises(StoreError, match="it is stored; its table .* not written: .* columns"):
        store(sink, FIRST.drop_columns("score"), 4)
    whole = FIRST.set_column(1, "score", pa.array([1, 2]))
    with pytest.raises(StoreError, match="column 'score' of the table .* another type than int64"):
        store(sink, whole, 5)
    assert read(place) == rows(SECOND)
    store(sink, FIRST, 6)
    assert read(place) == rows(FIRST)
    sink.remove("analyst", "session", "scores", ["bank"])
    assert read(place) == rows(FIRST)  # they are the owner's


def test_all_kinds_of_columns_come_to_a_table(sink, database):
    for number in range(2):  # the first makes the table
        store(sink, KINDS, number)
        assert database[1](database[0]) == rows(KINDS)


def test_a_number_that_is_none_is_no_null(sink, database):
    store(sink, pa.table({"x": [float("nan"), None]}), 0)
    (nan,), (null,) = database[1](database[0])
    assert math.isnan(nan)
    assert null is None


@pytest.mark.parametrize("unit", ["timestamp[ns]", "time64[ns]"])
def test_nanoseconds_are_not_cut_off(sink, unit):
    table = pa.table({"at": pa.array([123456789], pa.type_for_alias(unit))})
    with pytest.raises(StoreError, match="column 'at' has nanoseconds"):
        store(sink, table, 0)


def test_another_table_takes_what_the_first_one_has(tmp_path):
    place = f"duckdb:{tmp_path}/%s.duckdb#scores"
    for number, name in enumerate(["a", "b#", "b#"]):
        config = SinkConfig(folder=str(tmp_path), tables={"analyst/scores": place % name})
        with contextlib.closing(Sink(config)) as sink:
            if number == 0:
                store(sink, FIRST, 0)
            assert list(sink.copy_tables()) == []
        assert rows_in_duckdb(place % name) == rows(FIRST)
    os.remove(tmp_path / "a.duckdb")
    config = SinkConfig(folder=str(tmp_path), tables={"analyst/scores": place % "b#"})
    with contextlib.closing(Sink(config)) as sink:  # it is there already
        assert list(sink.copy_tables()) == []
    assert not (tmp_path / "a.duckdb").exists()


def test_two_names_go_to_one_file_at_once(tmp_path):
    file = f"duckdb:{tmp_path}/bank.duckdb"
    tables = {f"analyst/{name}": f"{file}#{name}" for name in ("scores", "other")}
    with (
        contextlib.closing(Sink(SinkConfig(folder=str(tmp_path), tables=tables))) as sink,
        ThreadPoolExecutor(2) as pool,
    ):
        list(
            pool.map(lambda each: store(sink, *each), [(FIRST, 1, "scores"), (SECOND, 2, "other")])
        )
    assert rows_in_duckdb(f"{file}#scores") == rows(FIRST)
    assert rows_in_duckdb(f"{file}#other") == rows(SECOND)


def waiting(server):
    """Return how many locks somebody waits for."""
    with psycopg.connect(server.place) as connection:
        return connection.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()[0]


def test_rows_that_somebody_else_writes_meanwhile_do_not_stay(tmp_path, server):
    server.execute("DROP TABLE IF EXISTS scores")
    place = f"{server.place}#scores"
    config = SinkConfig(folder=str(tmp_path / "sink"), tables={"analyst/scores": place})
    with contextlib.closing(Sink(config)) as sink, ThreadPoolExecutor(1) as pool:
        store(sink, FIRST, 1)
        with psycopg.connect(server.place) as connection:
            connection.execute("INSERT INTO scores VALUES (7, 0, 'somebody')")
            stored = pool.submit(store, sink, SECOND, 2)
            wait_until(lambda: stored.done() or waiting(server))
            assert not stored.done()
        stored.result(DEADLINE)
    assert rows_in_postgresql(place) == rows(SECOND)


def test_rows_that_a_constraint_forbids_leave_those_of_before(tmp_path, server):
    server.execute("DROP TABLE IF EXISTS scores")
    server.execute("CREATE TABLE scores (name text, score float8 NOT NULL, id int8)")
    server.execute(f"CREATE ROLE writer LOGIN PASSWORD '{PASSWORD}'")
    server.execute("GRANT SELECT, INSERT, DELETE ON scores TO writer")  # and no more
    place = f"{server.place}#public.scores".replace("owner", "writer")
    config = SinkConfig(folder=str(tmp_path / "sink"), tables={"analyst/scores": place})
    with contextlib.closing(Sink(config)) as sink:
        store(sink, SECOND, 1)
        with pytest.raises(StoreError, match="the database does not take it") as caught:
            store(sink, FIRST, 2)  # which has a NULL
        assert PASSWORD not in str(caught.value.__cause__)
        assert rows_in_postgresql(place) == [("ü'\"", float("inf"), 3)]


@pytest.mark.long("a worker starts three times, a database server twice")
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
        wait_until(lambda: rows_in_postgresql(place) == rows(SECOND))


def evaluate(host, table):
    with mp.with_ctx(host):
        x = mp.put("P0", table)
    mp.evaluate(host, lambda x: mp.store(x, "scores"), x)


@pytest.mark.parametrize(
    ("key", "place"),
    [("scores", "duckdb:x#t"), ("a/..", "duckdb:x#t"), ("a/b", "csv:x#t"), ("a/b", "duckdb:x")],
)
def test_wrong_tables_are_told(tmp_path, key, place):
    with pytest.raises(ConfigError, match="sink.*(analyst/scores|not a name|such as duckdb)"):
        read_sink({"folder": "sink", "tables": {key: place}}, str(tmp_path))


@pytest.mark.parametrize("key", ["analyst/scores", "scores"])
def test_passwords_are_not_told(tmp_path, key):
    tables = {key: f"postgres://writer:{PASSWORD}@db/bank#scores"}
    with pytest.raises(ConfigError, match="such as") as caught:
        read_sink({"folder": "sink", "tables": tables}, str(tmp_path))
    assert PASSWORD not in str(caught.value)
