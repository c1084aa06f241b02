"""Queries that threads may run: the same bytes on any number of them."""

from __future__ import annotations

import hashlib
import random

import duckdb
import pyarrow as pa
import pytest
import sql_queries
import tpch_data
from mplang_ibis import ibis_compile
from mplang_ibis.ext import may_use_threads
from mplang_ibis.sql import read_sql
from mplang_tables import arrow
from tpch_queries import QUERIES, sql

import mplang_core as mp
from mplang_core.errors import KernelError

KINDS = {
    "x": mp.TableType(
        (
            ("i", "int64"),
            ("g", "string"),
            ("d", "decimal128(10, 2)"),
            ("f", "double"),
            ("day", "date32[day]"),
            ("u", "uint64"),
        )
    ),
    "y": mp.TableType((("i", "int64"), ("h", "string"))),
}


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as made:
        for name, kind in KINDS.items():
            made.register(name, arrow.schema(kind).empty_table())
        yield made


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) AS n, sum(i) AS s, avg(d) AS a, min(g) AS l, max(day) AS m FROM x",
        "SELECT g, sum(d) AS s FROM x GROUP BY g ORDER BY g",
        "SELECT g, sum(d) AS s FROM x GROUP BY 1 ORDER BY 1 DESC NULLS LAST LIMIT 3",
        "SELECT sum(d) AS s, g, day FROM x GROUP BY g, day ORDER BY s, day, x.g",
        "SELECT x.g AS key, count(f) AS n FROM x GROUP BY x.g ORDER BY key",
        "SELECT year(day) AS y, avg(i) / 2 AS a FROM x GROUP BY y ORDER BY y",
        "SELECT g, count(*) AS n FROM x GROUP BY ALL ORDER BY ALL",
        "SELECT DISTINCT g, i FROM x ORDER BY i, g",
        "SELECT g, i FROM x ORDER BY ALL",
        "SELECT g FROM x UNION SELECT h FROM y ORDER BY 1",
        "SELECT i FROM x UNION ALL SELECT i FROM y ORDER BY i",
        "SELECT * FROM (SELECT g, sum(i) AS s FROM x GROUP BY 1) AS t ORDER BY t.g",
        "WITH t AS (SELECT g AS k, avg(d) AS a FROM x GROUP BY g) SELECT a, k FROM t ORDER BY k",
        "SELECT sum(i) AS s FROM x WHERE d > (SELECT avg(d) FROM x) AND i IN (SELECT i FROM y)",
        "SELECT h, count(*) AS n FROM x JOIN y ON x.i = y.i GROUP BY h ORDER BY h",
        "SELECT count(*) AS n FROM (SELECT g FROM x ORDER BY g, i LIMIT 5) AS t",
        "SELECT sum(d * 0.5) AS s FROM x",
        "SELECT i, g FROM x WHERE f > 0.5 ORDER BY g, i",
        "SELECT sum(s) AS s FROM (SELECT g, sum(i) AS s FROM x GROUP BY g) AS t",
        "SELECT g, sum(i) FILTER (WHERE f > 1) AS s FROM x GROUP BY g HAVING s > 3 ORDER BY g",
        "SELECT sum(u) AS s FROM x",
    ],
)
def test_threads_may_run_it(con, text):
    assert may_use_threads(text, con)
    assert may_use_threads(text, KINDS)


@pytest.mark.parametrize(
    "text",
    [
        # an order of rows
        "SELECT g, i FROM x",
        "SELECT g, sum(i) AS s FROM x GROUP BY g",
        "SELECT g, sum(i) AS s FROM x GROUP BY g ORDER BY s",
        "SELECT g, day, sum(i) AS s FROM x GROUP BY g, day ORDER BY g",
        "SELECT lower(g) AS g, sum(i) AS s FROM x GROUP BY g ORDER BY g",
        "SELECT 1 AS g, sum(i) AS s FROM x GROUP BY x.g ORDER BY g",
        "SELECT * EXCLUDE (g), 0 AS g FROM (SELECT g, avg(i) FROM x GROUP BY g) AS t ORDER BY g",
        "SELECT * REPLACE (0 AS g) FROM (SELECT g, sum(f) AS s FROM x GROUP BY g) AS t ORDER BY g",
        "SELECT t.s.g, g FROM (SELECT {'g': i} AS s, g FROM x) AS t GROUP BY ALL ORDER BY g",
        "SELECT a.g, b.g AS g2, count(*) AS n FROM x a, x b GROUP BY a.g, b.g ORDER BY a.g",
        "SELECT g, f FROM x ORDER BY g, f",
        "SELECT i FROM x ORDER BY i + 1",
        "SELECT g, i FROM x ORDER BY g COLLATE NOCASE, i",
        "SELECT g, count(*) AS n FROM x GROUP BY ROLLUP (g) ORDER BY g",
        "SELECT i FROM x UNION ALL SELECT i FROM y",
        "SELECT * FROM (SELECT i FROM x ORDER BY i) AS t",
        "SELECT g FROM x LIMIT 3",
        "SELECT sum(i) AS s FROM (SELECT i FROM x LIMIT 3) AS t",
        "SELECT sum(i) AS s FROM (SELECT i FROM x ORDER BY g LIMIT 3) AS t",
        "SELECT i FROM x ORDER BY i LIMIT 10%",
        "SELECT DISTINCT ON (g) g, i FROM x ORDER BY g, i",
        "SELECT (SELECT i FROM y) AS i FROM x ORDER BY 1",
        # what the first rows decide
        *(
            f"SELECT {each} AS a FROM x"
            for each in (
                "first(i)",
                "last(i)",
                "any_value(g)",
                "list(i)",
                "string_agg(g)",
                "mode(i)",
                "arg_max(g, i)",
                "approx_count_distinct(i)",
                "max(i, 2)",
                "sum(i ORDER BY g)",
                "histogram(i)",
                "max(g COLLATE NOCASE)",
            )
        ),
        "SELECT g, row_number() OVER (ORDER BY i) AS n FROM x ORDER BY ALL",
        "SELECT g FROM x QUALIFY rank() OVER (ORDER BY i) = 1 ORDER BY g",
        "SELECT x.i FROM x ASOF JOIN y ON x.i >= y.i ORDER BY 1",
        "SELECT x.i FROM x POSITIONAL JOIN y ORDER BY 1",
        # floats
        *(
            f"SELECT {each} AS a FROM x"
            for each in (
                "sum(f)",
                "avg(f)",
                "min(f)",
                "stddev(i)",
                "var_pop(d)",
                "sum(i / 2)",
                "sum(d * 0.5e0)",
                "avg(i / 3)",
                "fsum(f)",
                "product(i)",
                "avg(u)",
                "median(i)",
                "sum(s) FROM (SELECT avg(i) AS s FROM x GROUP BY g) AS t, (SELECT 1 AS one)",
            )
        ),
        "SELECT f, count(*) AS n FROM x GROUP BY f ORDER BY f",
        "SELECT DISTINCT f FROM x ORDER BY f",
        "SELECT f FROM x UNION SELECT 1.5 ORDER BY 1",
        "SELECT sum(COLUMNS(*)) FROM (SELECT i, f FROM x)",
        # others
        "SELECT count(*) AS n FROM x WHERE g <> '" + "a" * (16 << 10) + "'",
        "SELECT count(*) AS n FROM x WHERE " + " AND ".join(["i > (SELECT min(i) FROM y)"] * 70),
        "SELECT i FROM nowhere ORDER BY i",
        "SELECT i FROM x; SELECT 1",
        "not SQL",
        "WITH RECURSIVE t AS (SELECT 1 AS a UNION SELECT a + 1 FROM t) SELECT sum(a) AS s FROM t",
    ],
)
def test_one_thread_runs_it(con, text):
    assert not may_use_threads(text, con)


def test_queries_of_tpch_that_are_sorted_totally():
    kinds = {name: arrow.type_of(table) for name, table in tpch_data.tables().items()}
    of_one_thread = {number for number in QUERIES if not may_use_threads(sql(number), kinds)}
    assert of_one_thread == {"02", "03", "05", "10", "11", "15", "18", "20"}  # ties, and LIMIT


def test_what_ibis_writes_is_understood():
    def per_group(t):
        return t.filter(t.i > 1).group_by("g").agg(s=t.d.sum(), m=t.i.mean()).order_by("g")

    code = ibis_compile(per_group, mp.FeSignature((KINDS["x"],)), ["x"]).pfunc.attrs["code"]
    assert may_use_threads(read_sql(code), KINDS)


def _bytes(table: pa.Table) -> str:
    rows, buffers = arrow.write(arrow.plain(table))
    return hashlib.sha256(b"".join([b"%d" % rows, *map(bytes, buffers)])).hexdigest()


def _check_same_bytes(seeds):
    tables = sql_queries.tables(300_000)
    kinds = {name: arrow.type_of(table) for name, table in tables.items()}
    texts = [sql_queries.query(random.Random(seed)) for seed in seeds]
    seen: dict[str, set[str]] = {text: set() for text in texts if may_use_threads(text, kinds)}
    assert len(seen) > len(texts) // 8
    for threads in (1, 4):
        with duckdb.connect(config={"threads": threads}) as con:
            for name, table in tables.items():
                con.register("given", table)
                con.execute(f"CREATE TABLE {name} AS FROM given")
            for text, bytes_of in seen.items():
                bytes_of |= {
                    _bytes(con.sql(text).to_arrow_table()) for _ in range(threads - 1 or 1)
                }
    assert not [text for text, bytes_of in seen.items() if len(bytes_of) != 1]


def test_what_threads_may_run_gives_the_same_bytes():
    _check_same_bytes(range(40))


@pytest.mark.long("a hundred and fifty queries on 300,000 rows")
def test_what_threads_may_run_gives_the_same_bytes_always():
    _check_same_bytes(range(1000, 1150))


def test_the_time_of_a_query_includes_how_it_is_to_run(monkeypatch):
    """Parts of it are bound for that, many times; none of them takes an interrupt for an answer."""
    from mplang_ibis import at_source
    from mplang_ibis.bounds import Bounds

    def long(sql, con):
        con.execute("SELECT 1")  # an interrupt between two statements is lost
        con.execute("SELECT count(*) FROM range(1_000_000_000_000)")

    monkeypatch.setattr(at_source, "may_use_threads", long)
    con, kind = at_source.connect(), mp.TableType((("x", "int64"),))
    con.execute("CREATE TEMP TABLE people AS SELECT 1 AS x")
    with pytest.raises(KernelError, match=r"took longer than 0\.2 s"):
        at_source.run(con, "SELECT x FROM people", ["people"], kind, Bounds(seconds=0.2), print)


def test_an_interrupt_while_types_are_bound_ends_the_query():
    class Interrupted:
        def execute(self, *args):
            raise duckdb.InterruptException

    with pytest.raises(duckdb.InterruptException):
        may_use_threads("SELECT 1 AS x", Interrupted())
