"""The 22 queries of TPC-H over data sets of Parquet, DuckDB and PostgreSQL, as text and expression.

Each runs where its tables are, and gives what bare DuckDB gives.
"""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import duckdb
import psycopg
import pyarrow.parquet as pq
import pytest
from joining import CLUSTER, watched
from mplang_tables import arrow
from postgres import server as server
from test_tpch_engines import fill
from tpch_queries import QUERIES, check_same, expression, marked, sql

import mplang_core as mp

_PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
GENERATOR = shutil.which("tpchgen-cli", path=_PATH)

pytestmark = pytest.mark.skipif(GENERATOR is None, reason="needs tpchgen-cli, of the extra `dev`")


@pytest.fixture(scope="module")
def generate(tmp_path_factory):
    """Return a function that makes Parquet files of a scale, and returns them by table."""

    def generate(scale: str) -> dict[str, Path]:
        folder = tmp_path_factory.mktemp("tpch")
        command = [GENERATOR, "parquet", f"--scale-factor={scale}", f"--output-dir={folder}"]
        subprocess.run(command, check=True, capture_output=True)
        return {path.stem: path for path in folder.glob("*.parquet")}

    return generate


@pytest.fixture(scope="module")
def small(generate):
    return generate("0.01")


@pytest.fixture(scope="module")
def large(generate):
    return generate("1")


@pytest.fixture(scope="module")
def filled(server, small):
    """Return the place of a database that has the tables, and indexes on their keys."""
    with psycopg.connect(server.place, autocommit=True) as connection:
        for name, path in small.items():
            fill(connection, name, arrow.plain(pq.read_table(path)))
        connection.execute("ANALYZE")
    return server.place


def attached(files: dict[str, Path]) -> Path:
    """Return a DuckDB file with the tables."""
    path = files["region"].with_name("tpch.duckdb")
    if not path.exists():
        with duckdb.connect(str(path)) as con:
            for name, each in files.items():
                con.execute(f"CREATE TABLE {name} AS SELECT * FROM '{each}'")
    return path


def bare(files: dict[str, Path], number: str):
    """Return what DuckDB gives on the files."""
    with duckdb.connect() as con:
        for name, path in files.items():
            con.execute(f"CREATE VIEW {name} AS SELECT * FROM '{path}'")
        return con.sql(sql(number)).to_arrow_table()


def data_sets(files: dict[str, Path], place: str) -> dict[str, dict[str, object]]:
    """Return the tables as data sets of a place, which has ``{}`` for a table."""
    return {
        name: {
            "source": place.format(name),
            "columns": dict(arrow.type_of(arrow.plain(pq.read_schema(path).empty_table())).columns),
            "size": 4_000_000_000,
            "seconds": 600,
        }
        for name, path in files.items()
    }


@contextmanager
def bank(sets):
    """Open a session of a bank that has the data sets."""
    with mp.Simulator(CLUSTER, data={"bank": sets}) as host:
        yield host


@pytest.fixture(scope="module")
def from_parquet(small):
    with bank(data_sets(small, f"parquet:{small['region'].parent}/{{}}.parquet")) as host:
        yield host


@pytest.fixture(scope="module")
def from_duckdb(small):
    with bank(data_sets(small, f"duckdb:{attached(small)}#{{}}")) as host:
        yield host


@pytest.fixture(scope="module")
def from_postgresql(small, filled):
    with bank(data_sets(small, f"{filled}#{{}}")) as host:
        yield host


@pytest.fixture(scope="module")
def from_large(large):
    with bank(data_sets(large, f"parquet:{large['region'].parent}/{{}}.parquet")) as host:
        yield host


def as_text(number):
    text, names = marked(number)
    return mp.sql("bank", text, **{name: mp.dataset("bank", name) for name in names})


def as_expression(number):
    query = expression(number)
    names = list(inspect.signature(query).parameters)
    return mp.device("P0")(query)(*[mp.dataset("bank", name) for name in names])


def check(host, files, written, number):
    with watched() as asked:
        got = mp.fetch(host, mp.evaluate(host, written, number))
    assert asked == ["query"]
    check_same(got, bare(files, number))


SMALL = pytest.mark.long("132 queries of TPC-H at scale 0.01")


@SMALL
@pytest.mark.parametrize("written", [as_text, as_expression])
@pytest.mark.parametrize("host", ["from_parquet", "from_duckdb", "from_postgresql"])
@pytest.mark.parametrize("number", QUERIES)
def test_a_query_gives_what_bare_duckdb_gives(request, small, host, number, written):
    check(request.getfixturevalue(host), small, written, number)


@pytest.mark.slow("44 queries of TPC-H at scale 1")
@pytest.mark.parametrize("written", [as_text, as_expression])
@pytest.mark.parametrize("number", QUERIES)
def test_a_query_at_scale_1_gives_what_bare_duckdb_gives(large, from_large, number, written):
    check(from_large, large, written, number)
