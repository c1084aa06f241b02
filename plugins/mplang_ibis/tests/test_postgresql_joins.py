"""Joins by equal columns that give many times the rows of their tables fail on PostgreSQL, too."""

from __future__ import annotations

import psycopg
import pytest
from mplang_ibis import settings
from mplang_ibis.engines import Offered
from mplang_ibis.engines.run_postgresql import run_on_postgresql
from postgres import server as server

from mplang_core import TableType
from mplang_core.errors import KernelError

GIVES = TableType((("n", "int64"),))
KIND = TableType((("k", "int64"), ("v", "int64")))
COUNT = "SELECT count(*) AS n FROM "
ONE = "x JOIN y ON x.k = y.k"
SIZES = {"few": (64, 4), "many": (100, 1), "thousand": (1000, 1000), "ten": (10, 10)}


@pytest.fixture(scope="module")
def connection(server):
    for name, (rows, keys) in SIZES.items():
        server.execute(
            f"CREATE TABLE {name} AS SELECT (n % {keys})::bigint AS k, n::bigint AS v "
            f"FROM generate_series(0, {rows} - 1) n; ANALYZE {name}"
        )
    server.execute("CREATE UNIQUE INDEX ON ten (k)")
    server.execute("CREATE INDEX ON few (k)")
    with psycopg.connect(server.place, autocommit=True) as made:
        yield made


@pytest.fixture
def seen(connection, monkeypatch):
    """The statements that were explained."""
    statements = []
    execute = connection.execute

    def noted(statement, *args, **kwargs):
        if isinstance(statement, bytes):
            statements.append(statement.decode().split("(", 1)[1].split(",", 1)[0])
        return execute(statement, *args, **kwargs)

    monkeypatch.setattr(connection, "execute", noted)
    return statements


@pytest.fixture
def limit():
    before = settings.current
    yield lambda join: settings.configure({"join": join})
    settings.current = before


def joined(connection, sql, *names):
    tables = {
        name: Offered(KIND, ("public", table)) for name, table in zip("xyz", names, strict=False)
    }
    (batch,) = run_on_postgresql(connection, COUNT + sql, tables, GIVES)
    return batch.to_pydict()["n"][0]


def test_a_join_may_give_sixteen_times_the_rows_of_its_larger_table(connection):
    assert joined(connection, ONE, "few", "few") == 64 * 16
    with pytest.raises(KernelError, match="over 16 times the rows of the largest table"):
        joined(connection, ONE, "many", "many")


@pytest.mark.parametrize(
    "sql",
    [
        ONE + " WHERE x.v > 50",
        "x LEFT JOIN y ON x.k = y.k",
        "x JOIN y ON x.k + 1 = y.k + 1",
        "(SELECT x.k FROM x JOIN y ON x.k = y.k) AS j WHERE j.k = 0",
        "x JOIN y ON x.k = y.k JOIN z ON y.k = z.k",
    ],
)
@pytest.mark.parametrize("method", ["hashjoin", "mergejoin", "nestloop"])
def test_the_limit_holds_for_every_way_to_write_a_join_and_to_run_it(connection, sql, method):
    others = {"hashjoin", "mergejoin", "nestloop"} - {method}
    for each in others:
        connection.execute(f"SET enable_{each} = off")
    try:
        with pytest.raises(KernelError, match="aggregate one side"):
            joined(connection, sql, "many", "many", "many")
    finally:
        for each in others:
            connection.execute(f"RESET enable_{each}")


def test_a_join_by_a_unique_key_is_run_once(connection, seen):
    assert joined(connection, ONE, "few", "ten") == 64
    assert seen == ["VERBOSE"]
    assert joined(connection, ONE, "few", "thousand") == 64
    assert seen == ["VERBOSE", "VERBOSE", "ANALYZE"]


def test_a_query_without_joins_is_run_once(connection, seen):
    assert joined(connection, "x", "few") == 64
    assert seen == ["VERBOSE"]


def test_an_index_that_finds_some_rows_of_a_table_does_not_make_it_smaller(connection):
    """The largest table has 1000 rows, and a nested loop reads some of another one each time."""
    for each in ("hashjoin", "mergejoin", "seqscan"):
        connection.execute(f"SET enable_{each} = off")
    try:
        sql = "x JOIN y ON x.v = y.k JOIN z ON z.k = y.k WHERE x.v < 4"
        assert joined(connection, sql, "thousand", "few", "few") == 4 * 16 * 16
    finally:
        connection.execute("RESET ALL")


def test_what_the_disclosure_table_tells_is_not_refused(connection):
    """A join by another condition has a row there, and the owner has permitted it."""
    assert joined(connection, "x JOIN y ON x.v >= y.v", "many", "many") == 5050


def test_a_worker_s_owner_sets_the_limit(connection, limit):
    limit(100)
    assert joined(connection, ONE, "many", "many") == 10_000
    limit(2)
    with pytest.raises(KernelError, match="over 2 times"):
        joined(connection, ONE, "few", "few")
