"""Data sets in databases: DuckDB files, and a real PostgreSQL server."""

from __future__ import annotations

import contextlib
import threading

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pytest
from mplang_data import SourceError
from mplang_data.ext import check_data_set
from mplang_data.holding import read_data_sets
from mplang_tables import arrow
from mplang_testing.waiting import DEADLINE, NEVER, wait_until
from people import COLUMNS, PEOPLE
from postgres import PASSWORD, server as server
from test_bad_data import fails
from test_datasets import expected, on_simulator, on_workers, summary

import mplang_core as mp
from mplang_core.errors import ConfigError, PartyError

HOSTS = pytest.mark.parametrize(
    "host",
    [pytest.param(on_simulator, marks=pytest.mark.long("starts processes that read")), on_workers],
)
PLAIN = arrow.plain(PEOPLE)


def bank(source, **fields):
    fields = {"columns": COLUMNS, "match": ["id"], "readers": ["local"], **fields}
    return {"bank": {"people": {"source": source, **fields}}}


def fill(server, name="people"):
    """Make a table of the people in PostgreSQL."""
    server.execute(f"DROP TABLE IF EXISTS {name} CASCADE")
    server.execute(f"CREATE TABLE {name} (id text, age bigint, pay double precision, sex text)")
    import psycopg

    with (
        psycopg.connect(server.place) as connection,
        connection.cursor() as cursor,
        cursor.copy(f"COPY {name} FROM STDIN") as copy,
    ):
        for row in PLAIN.to_pylist():
            copy.write_row(tuple(row.values()))
    return f"{server.place}#{name}"


@pytest.fixture
def in_duckdb(tmp_path):
    with duckdb.connect(str(tmp_path / "bank.duckdb")) as connection:
        connection.register("frame", PLAIN)
        connection.execute("CREATE SCHEMA s; CREATE TABLE s.people AS FROM frame")
    return f"duckdb:{tmp_path}/bank.duckdb#s.people"


@contextlib.contextmanager
def another(host):
    """Another session of the same workers."""
    with mp.connect("http", host.cluster_spec) as made:
        yield made


def same(found):
    wanted = expected()
    assert found[0].to_pydict() == {"sex": ["f", "m"], "pay": list(wanted[0])}
    np.testing.assert_array_equal(found[1], wanted[1])
    np.testing.assert_allclose(found[2], wanted[2])


@HOSTS
def test_a_program_is_the_same_on_postgresql(server, host):
    with host(bank(fill(server), rows=2000)) as made:
        same(mp.fetch(made, mp.evaluate(made, summary)))
        assert PASSWORD not in str(made.catalogue)


@pytest.mark.parametrize(
    "host", [on_simulator, pytest.param(on_workers, marks=pytest.mark.slow("starts two workers"))]
)
def test_a_program_is_the_same_on_a_duckdb_file(in_duckdb, host):
    with host(bank(in_duckdb, rows=2000)) as made:
        same(mp.fetch(made, mp.evaluate(made, summary)))


def test_a_view_of_a_duckdb_file_is_refused_by_the_name_of_its_table(tmp_path):
    """Whoever supplies the file would read what the account of the worker can."""
    (tmp_path / "secret.csv").write_text("id\nPRIVATE-KEY\n")
    with duckdb.connect(str(tmp_path / "vendor.duckdb")) as connection:
        connection.execute(f"CREATE VIEW prices AS SELECT id FROM '{tmp_path}/secret.csv'")
    place = f"duckdb:{tmp_path}/vendor.duckdb#prices"
    with pytest.raises(SourceError, match="'prices' reads .* make a table of it") as caught:
        check_data_set(
            read_data_sets(bank(place, columns={"id": "str"}, match=[])["bank"], "/")["people"]
        )
    assert "disabled by configuration" in str(caught.value.__cause__)


def test_types_of_postgresql_are_those_of_the_catalogue(server):
    server.execute(
        "CREATE OR REPLACE VIEW kinds AS SELECT 1::int AS i, 1.25::numeric(12, 2) AS n, "
        "'2024-02-29'::date AS d, '2024-02-29 12:30:00.5'::timestamp AS t, true AS b, "
        "NULL::text AS s"
    )
    columns = {
        "i": "int32", "n": "decimal(12, 2)", "d": "date", "t": "timestamp", "b": "bool", "s": "str",
    }  # fmt: skip
    with on_simulator(bank(f"{server.place}#public.kinds", columns=columns, match=[])) as made:
        found = mp.fetch(made, mp.evaluate(made, lambda: mp.dataset("bank", "people")))
    (row,) = found.to_pylist()
    assert [str(value) for value in row.values()] == [
        "1", "1.25", "2024-02-29", "2024-02-29 12:30:00.500000", "True", "None",
    ]  # fmt: skip
    assert found.schema.field("t").type == pa.timestamp("us")


def test_only_the_columns_that_are_asked_for_are_read(server):
    fill(server)
    server.execute(
        "CREATE OR REPLACE VIEW costly AS SELECT age, (1 / (age - age))::bigint AS pay FROM people"
    )
    columns = {"age": "int64", "pay": "int64"}
    with on_simulator(bank(f"{server.place}#costly", columns=columns)) as made:
        read = mp.evaluate(made, lambda: mp.dataset("bank", "people", ["age"]))
        assert mp.fetch(made, read).num_rows == 2000
        with fails(on_simulator, "the database does not give it"):
            mp.evaluate(made, lambda: mp.dataset("bank", "people"))


def test_what_is_wrong_is_told_to_the_owner_without_the_password(server, in_duckdb):
    place = fill(server)
    for source, told, detail in [
        (f"{server.place}#nobody", "does not give it", "nobody"),
        (place.replace(PASSWORD, "wrong"), "cannot be reached", "authentication failed"),
        (in_duckdb.replace("bank.duckdb", "none.duckdb"), "cannot be reached", "none.duckdb"),
        (in_duckdb.replace("people", "nobody"), "does not give it", "nobody"),
    ]:
        with pytest.raises(SourceError, match=told) as caught:
            check_data_set(read_data_sets(bank(source)["bank"], "/")["people"])
        assert detail in str(caught.value.__cause__)
        assert PASSWORD not in str(caught.value) + str(caught.value.__cause__)
    with pytest.raises(SourceError, match="column 'age' is bigint there, and int32"):
        check_data_set(read_data_sets(bank(place, columns={"age": "int32"})["bank"], "/")["people"])
    with pytest.raises(ConfigError, match="its place ends with the table"):
        read_data_sets(bank(server.place)["bank"], "/")


def sleeping(server):
    """Tell whether a query sleeps."""
    with psycopg.connect(server.place) as connection:
        asleep = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
        return connection.execute(asleep).fetchone()[0]


@pytest.mark.long("a database is stopped and started; starts two workers")
def test_a_database_that_goes_away_in_mid_read_harms_nobody_else(server, capfd):
    """The program fails with an error, others run meanwhile, and it works once it is back."""
    place = fill(server)
    server.execute(
        "CREATE OR REPLACE VIEW slow AS SELECT id, age, pay, sex FROM people "
        f"WHERE pg_sleep(CASE WHEN age = 89 THEN {NEVER} ELSE 0 END) IS NOT NULL"
    )
    fields = bank(place)["bank"]["people"]
    data = {"bank": {"people": fields, "slow": {**fields, "source": f"{server.place}#slow"}}}
    with on_workers(data) as made, another(made) as other:
        failed = []

        def read():
            try:
                mp.evaluate(made, lambda: mp.dataset("bank", "slow"))
            except Exception as error:
                failed.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        wait_until(lambda: sleeping(server), "that the database is being read")
        same(mp.fetch(other, mp.evaluate(other, summary)))
        assert not failed
        server.stop()
        thread.join(DEADLINE)
        assert "the reason is in that party's log" in str(failed[0])
        with pytest.raises(PartyError):
            mp.evaluate(made, summary)
        server.start()
        same(mp.fetch(made, mp.evaluate(made, summary)))
    log = capfd.readouterr().err
    assert "data set slow cannot be read" in log
    assert "data set people cannot be reached" in log
    assert "refused" in log
