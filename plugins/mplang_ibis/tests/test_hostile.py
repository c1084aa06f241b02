"""Hostile SQL: refused by name, and no process crashes."""

from __future__ import annotations

import re
import zlib

import duckdb
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from mplang_ibis import query, settings
from mplang_ibis.allowlist import FUNCTIONS, PROCESS
from mplang_ibis.ops import RUN
from mplang_ibis.sql import NAME
from mplang_tables import arrow, table

import mplang_core as mp
from mplang_core.errors import AdmissionError, PartyError, TraceError, VerifyError
from mplang_core.ir.compressed_text import pack

KIND = mp.TableType((("a", "int64"), ("s", "string")))
GIVES = mp.TableType((("a", "int64"),))
secret_table = pa.table({"a": [1]})  # DuckDB finds Python variables by name, if it may


@pytest.fixture(scope="module")
def sim():
    with mp.Simulator(mp.ClusterSpec.simple(1), timeout=60) as made:
        yield made


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("private")
    (folder / "f.csv").write_text("a\n42\n")
    parquet.write_table(pa.table({"a": [42]}), folder / "f.parquet")
    return folder


def pfunc(sql, gives=GIVES, names=("x",)):
    code = pack(sql) if isinstance(sql, str) else sql
    attrs = {"code": code, "names": names, "gives": gives, "ibis": "12.0.0"}
    return mp.PFunction("ibis.run", (KIND,) * len(names), (gives,), attrs)


def run(sim, sql, **options):
    """Run hand-written SQL at a party."""

    def program():
        data = pa.table({"a": [3, 1, None], "s": ["x", "y", "z"]})
        made = pfunc(sql, **options)
        value = mp.device("P0")(table(data))()
        return mp.peval(made, [value] * len(made.ins_info))[0]

    return mp.fetch(sim, mp.evaluate(sim, program))[0].to_pylist()


def refused(sim, sql):
    """Return the reason why a rule of ours refuses SQL, before it runs."""
    with pytest.raises(PartyError) as error:
        run(sim, sql)
    assert isinstance(error.value.__cause__, AdmissionError)
    return str(error.value)


# -- what runs, so that the refusals below are not for another reason


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a FROM x", [3, 1, None]),
        ('select "A" as a from X order by 1', [1, 3, None]),
        ("FROM x SELECT a", [3, 1, None]),
        ("WITH t AS (SELECT a + 1 AS a FROM x), u AS (FROM t) SELECT a FROM u", [4, 2, None]),
        ("WITH x AS (SELECT a FROM x LIMIT 1) SELECT * FROM x", [3]),
        ("SELECT a FROM x UNION ALL (SELECT 7) LIMIT 5", [3, 1, None, 7]),
        ("SELECT a FROM (VALUES (1), (2)) AS v(a)", [1, 2]),
        ("SELECT count(*) AS a FROM x p JOIN x q ON p.s = q.s", [3]),
        ("SELECT a FROM x WHERE s IN (SELECT s FROM x WHERE s LIKE '%y')", [1]),
        ("SELECT a FROM x -- a comment does no harm\n", [3, 1, None]),
        ("SELECT a /* none ; */ FROM x;", [3, 1, None]),
        ("SELECT length('; DROP TABLE x; --') AS a", [18]),
        ("SELECT length(E'\\'; DROP TABLE x; --') AS a", [19]),
        ("SELECT length($$'; DROP TABLE x$$) AS a", [15]),
        ("SELECT x.a FROM x WHERE a IS NOT DISTINCT FROM 1", [1]),
        ("SELECT row_number() OVER (ORDER BY a) AS a FROM x", [1, 2, 3]),
        ('SELECT user AS a FROM (SELECT 1 AS one, 5 AS "user") AS t(one, other), x LIMIT 0', None),
        ('SELECT t.user AS a FROM (SELECT 5 AS "user") AS t', [5]),
        ("SELECT CAST('9' AS DECIMAL(10, 2)) AS a", [9]),
    ],
)
def test_one_select_runs(sim, sql, expected):
    if expected is None:
        assert "user" in refused(sim, sql)
    else:
        assert [row["a"] for row in run(sim, sql)] == expected


# -- refusals


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        # files
        ("SELECT * FROM read_csv('{}/f.csv')", "the table function read_csv"),
        ("SELECT * FROM read_csv_auto('{}/f.csv')", "the table function read_csv_auto"),
        ("SELECT * FROM read_parquet('{}/f.parquet')", "the table function read_parquet"),
        ("SELECT * FROM parquet_scan('{}/f.parquet')", "the table function parquet_scan"),
        ("SELECT * FROM read_text('{}/f.csv')", "the table function read_text"),
        ("SELECT * FROM read_blob('/etc/passwd')", "the table function read_blob"),
        ("SELECT * FROM glob('/etc/*')", "the table function glob"),
        ("SELECT * FROM '{}/f.csv'", "the table '.*f.csv'"),
        ("SELECT * FROM '{}/f.parquet'", "the table '.*f.parquet'"),
        ('SELECT * FROM "{}/f.csv"', "the table '.*f.csv'"),
        ("SELECT a FROM x WHERE a IN (SELECT a FROM '{}/f.csv')", "the table '.*f.csv'"),
        ("SELECT (SELECT a FROM '{}/f.csv') AS a", "the table '.*f.csv'"),
        ("SELECT a FROM x ORDER BY (SELECT a FROM '{}/f.csv')", "the table '.*f.csv'"),
        ("SELECT a FROM x LIMIT (SELECT a FROM '{}/f.csv')", "the table '.*f.csv'"),
        ("SELECT a FROM x QUALIFY row_number() OVER (ORDER BY (FROM '{}/f.csv')) = 1", "f.csv"),
        ("SELECT a FROM x JOIN x y ON (SELECT a FROM '{}/f.csv') = 1", "the table '.*f.csv'"),
        ("WITH t AS (SELECT * FROM '{}/f.csv') SELECT * FROM t", "the table '.*f.csv'"),
        ("SELECT * FROM x UNION ALL SELECT * FROM '{}/f.csv'", "the table '.*f.csv'"),
        ("SELECT * FROM 'http://127.0.0.1:1/f.csv'", "the table 'http"),
        ("SELECT * FROM 's3://bucket/f.parquet'", "the table 's3"),
        ("COPY (SELECT 42) TO '{}/out.csv'", "not a SELECT that"),
        ("COPY x FROM '{}/f.csv'", "not a SELECT that"),
        ("EXPORT DATABASE '{}/out'", "not a SELECT that"),
        ("IMPORT DATABASE '{}'", "not a SELECT that"),
        ("ATTACH '{}/db' AS db", "not a SELECT that"),
        ("DETACH memory", "not a SELECT that"),
        ("USE memory", "not a SELECT that"),
        # the process and its settings
        ("SET threads = 8", "not a SELECT that"),
        ("RESET threads", "not a SELECT that"),
        ("SET VARIABLE v = 1", "not a SELECT that"),
        ("LOAD httpfs", "not a SELECT that"),
        ("INSTALL httpfs", "not a SELECT that"),
        ("PRAGMA database_list", "not a SELECT that"),
        ("PRAGMA enable_profiling", "not a SELECT that"),
        ("CALL duckdb_settings()", "not a SELECT that"),
        ("CHECKPOINT", "not a SELECT that"),
        ("SELECT * FROM duckdb_settings()", "the table function duckdb_settings"),
        ("SELECT * FROM pragma_database_list", "the table 'pragma_database_list'"),
        ("SELECT * FROM duckdb_tables", "the table 'duckdb_tables'"),
        ("SELECT * FROM sqlite_master", "the table 'sqlite_master'"),
        ("SELECT * FROM pg_catalog.pg_tables", "the table 'pg_catalog.pg_tables'"),
        ("SELECT * FROM information_schema.tables", "the table 'information_schema.tables'"),
        ("SELECT * FROM memory.information_schema.tables", "the table 'memory.information"),
        ("SELECT * FROM temp.main.x", "the table 'temp.main.x'"),
        ("SELECT * FROM main.x", "the table 'main.x'"),
        ("SELECT getenv('HOME') AS a", "the function getenv"),
        ("SELECT current_setting('threads') AS a", "the function current_setting"),
        ("SELECT getvariable('v') AS a", "the function getvariable"),
        ("SELECT version() AS a", "the function version"),
        ("SELECT pg_sleep(1) AS a", "the function pg_sleep"),
        ("SELECT current_query() AS a", "the function current_query"),
        ("SELECT json_serialize_plan('SELECT * FROM duckdb_settings()') AS a", "json_serialize_pl"),
        ("SELECT * FROM json_execute_serialized_sql('{}')", "the table function json_execute"),
        ("SELECT * FROM query('SELECT 1')", "the table function query"),
        ("SELECT * FROM query_table('x')", "the table function query_table"),
        ("SELECT error('x') AS a", "the function error"),
        ("SELECT write_log('x') AS a", "the function write_log"),
        ("SELECT nextval('s') AS a", "the function nextval"),
        ("SELECT __internal_decompress_string(1::UTINYINT) AS a", "the function __internal"),
        # definitions and changes
        ("CREATE TABLE y AS SELECT 1", "not a SELECT that"),
        ("CREATE MACRO abs(v) AS (SELECT 1)", "not a SELECT that"),
        ("DROP VIEW x", "not a SELECT that"),
        ("INSERT INTO x VALUES (1)", "not a SELECT that"),
        ("DELETE FROM x", "not a SELECT that"),
        ("UPDATE x SET a = 1", "not a SELECT that"),
        ("SELECT 1 AS a INTO y", "SELECT INTO"),
        ("WITH t AS (DELETE FROM x RETURNING *) SELECT * FROM t", "not a SELECT that|may not run"),
        ("PREPARE p AS SELECT 1", "not a SELECT that"),
        ("EXECUTE p", "not a SELECT that"),
        ("BEGIN", "not a SELECT that"),
        ("EXPLAIN SELECT 1", "not a SELECT that"),
        ("EXPLAIN ANALYZE SELECT 1", "not a SELECT that"),
        # two statements, or none
        ("SELECT 1 AS a; SELECT 2 AS a", "2 statements"),
        ("SELECT 1 AS a; DROP VIEW x", "not a SELECT that"),
        ("SELECT 1 AS a; SET threads = 8", "not a SELECT that"),
        ("SELECT 1 AS a /* ; */; COPY x TO '{}/out.csv'", "not a SELECT that"),
        ("SELECT E'\\'' AS a; COPY x TO '{}/out.csv' --'", "not a SELECT that"),
        ("SELECT $q$;$q$ AS a; COPY x TO '{}/out.csv'", "not a SELECT that"),
        ("", "0 statements"),
        (";;", "0 statements"),
        ("-- nothing", "0 statements"),
        # other sources
        ("SELECT * FROM secret_table", "the table 'secret_table'"),
        ("SELECT * FROM range(3) AS t(a)", "the table function range"),
        ("SELECT * FROM unnest([1]) AS t(a)", "the table function unnest"),
        ("SELECT * FROM x, LATERAL (SELECT * FROM range(x.a))", "the table function range"),
        ("SHOW TABLES", "show ref"),
        ("DESCRIBE x", "show ref"),
        ("SUMMARIZE x", "show ref"),
        ("SELECT * FROM (DESCRIBE x)", "show ref"),
        ("SELECT * FROM (PIVOT x ON s USING sum(a))", "not a SELECT that"),
        ("PIVOT x ON s USING sum(a)", "not a SELECT that"),
        ("SELECT * FROM y", "the table 'y'; declared are x"),
        ("SELECT * FROM t0", "the table 't0'"),
        ("WITH duckdb_settings AS (SELECT 1) SELECT * FROM duckdb_settings", "in WITH"),
        ("SELECT * FROM (WITH pg_tables AS (FROM x) FROM pg_tables), pg_tables", "in WITH"),
        ("SELECT * FROM (WITH y AS (FROM x) FROM y), y", "DuckDB refuses the SQL"),
        ("WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT a FROM t) FROM t", "recursive"),
        # not the same each time
        ("SELECT random() AS a", "the function random"),
        ("SELECT RANDOM ( ) AS a", "the function random"),
        ('SELECT "random"() AS a', "the function random"),
        ("SELECT main.random() AS a", "the function random"),
        ("SELECT a FROM x ORDER BY random()", "the function random"),
        ("SELECT sum(a) FILTER (WHERE random() > 0.5) AS a FROM x", "the function random"),
        ("SELECT sum(a ORDER BY random()) AS a FROM x", "the function random"),
        ("SELECT a.random() AS a FROM x", "the function random"),
        ("SELECT gen_random_uuid() AS a", "the function gen_random_uuid"),
        ("SELECT now() AS a", "the function now"),
        ("SELECT today() AS a", "the function today"),
        ("SELECT age(DATE '2020-01-01') AS a", "the function age"),
        ("SELECT current_localtimestamp() AS a", "the function current_localtimestamp"),
        *((f"SELECT {word} AS a", f"(?i)the (word|function) {word}") for word in sorted(PROCESS)),
        ("SELECT a FROM x TABLESAMPLE 50%", "sample"),
        ("SELECT a FROM x USING SAMPLE 1", "sample"),
        ("SELECT a FROM x AT (VERSION => 1)", "at clause"),
        # the rest
        ("SELECT ? AS a", "parameter"),
        ("SELECT $1 AS a", "parameter"),
        ("SELECT list_transform([1], lambda v: v + 1) AS a", "lambda|list_transform"),
        ("SELECT [v + 1 FOR v IN [1]] AS a", "lambda|list_"),
        ("SELECT no_such_column AS a FROM x", "DuckDB refuses the SQL: Binder Error"),
        ("SELECT sum(s) AS a FROM x", "DuckDB refuses the SQL: Binder Error"),
        ("SELECT a::regclass FROM x", "DuckDB refuses the SQL"),
        ("SELECT FROM WHERE", "not a SELECT that"),
        ("SELECT 'a", "not a SELECT that"),
        ("\ufeff\u2028", "not a SELECT that|0 statements"),
    ],
)
def test_what_may_not_run_is_refused(sim, files, sql, message):
    text = refused(sim, sql.replace("{}", str(files)))
    assert re.search(message, text), text
    assert not (files / "out.csv").exists()
    assert "42" not in text.replace(str(files), "")


NESTED = {
    "brackets": "SELECT {o}1{c} AS a".replace("{o}", "(" * 10_000).replace("{c}", ")" * 10_000),
    "open brackets": "SELECT " + "(" * 10_000,
    "lists": "SELECT " + "[" * 10_000 + "]" * 10_000,
    "functions": "SELECT " + "abs(" * 10_000 + "1" + ")" * 10_000 + " AS a",
    "queries": "SELECT * FROM " + "(SELECT * FROM " * 10_000 + "x" + ")" * 10_000,
    "scalar queries": "SELECT " + "(SELECT " * 900 + "1" + ")" * 900 + " AS a",
    "with": "WITH t AS (" * 9_000 + "SELECT 1" + ") SELECT * FROM t" * 9_000,
    "cases": "SELECT " + "CASE WHEN true THEN " * 10_000 + "1" + " END" * 10_000 + " AS a",
    "not": "SELECT " + "NOT " * 10_000 + "true AS a",
    "minus": "SELECT " + "- " * 10_000 + "1 AS a",
    "signs": "SELECT " + "+-" * 100_000 + "1 AS a",
    "plus": "SELECT " + "1 + " * 10_000 + "1 AS a",
    "casts": "SELECT 1" + "::INT" * 10_000 + " AS a",
    "types": "SELECT NULL::" + "STRUCT(a " * 10_000 + "INT" + ")" * 10_000 + " AS a",
    "list types": "SELECT NULL::INT" + "[]" * 10_000 + " AS a",
    "arrows": "SELECT s" + "->'a'" * 300 + " AS a FROM x",
    "lambdas": "SELECT " + "list_transform([1], lambda v: " * 60 + "1" + ")" * 60 + " AS a",
    "rows": "SELECT " + "ROW(" * 300 + "1" + ")" * 300 + " AS a",
    "joins": "SELECT 1 AS a FROM x" + " JOIN x ON true" * 10_000,
    "hidden by quotes": "SELECT '''' || '" + "(" * 300 + "' || E'\\'' || " + "(" * 10_000,
}


@pytest.mark.parametrize("name", NESTED)
def test_deep_nesting_is_refused_and_harms_nobody(sim, name):
    text = refused(sim, NESTED[name])
    assert len(text) < 3000
    assert run(sim, "SELECT 1 AS a") == [{"a": 1}]


def test_a_list_of_10000_numbers_is_not_nesting(sim):
    numbers = ", ".join(map(str, range(10_000)))
    assert len(run(sim, f"SELECT a FROM x WHERE a IN ({numbers})")) == 2
    terms = " AND ".join(["a < 9"] * 10_000)
    assert len(run(sim, f"SELECT a FROM x WHERE {terms}")) == 2


# -- what is refused before it runs


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: pfunc(b"SELECT 1"), "not compressed text"),
        (lambda: pfunc(zlib.compress(b"\0" * (65 << 20))), "larger than"),
        (lambda: pfunc(zlib.compress(b"\xff")), "not compressed text"),
        (lambda: pfunc("SELECT 1 " + " " * (1 << 20)), "larger than"),
        (lambda: pfunc("SELECT 1\0; DROP"), "NUL"),
        (lambda: pfunc("SELECT 1", names=("duckdb_settings",)), "not a name of a table"),
        (lambda: pfunc("SELECT 1", names=("x", "x")), "a different name"),
        (lambda: pfunc("SELECT 1", names=()), "a different name"),
        (lambda: pfunc("SELECT 1", gives=mp.TableType((("a", "object"),))), "'a' is of the type"),
    ],
)
def test_what_is_no_such_op_is_refused_while_tracing(sim, made, message):
    def program():
        op = made()
        value = mp.device("P0")(table({"a": [1], "s": ["x"]}))()
        return mp.peval(op, [value] * len(op.ins_info), 0)[0]

    with pytest.raises(TraceError, match=message):
        mp.evaluate(sim, program)


def test_a_worker_believes_no_types():
    def program(x):
        return mp.peval(mp.PFunction("ibis.run", (KIND,), (GIVES,), pfunc("FROM x").attrs), [x])[0]

    def traced():
        return program(mp.device("P0")(table({"a": [1], "s": ["x"]}))())

    text = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(1)), traced).compiler_ir()
    mp.verify(mp.parse(text))
    for old, new in [
        ('gives = table<["a", "int64"]>', 'gives = table<["a", "string"]>'),
        ('names = ["x"]', 'names = ["x", "y"]'),
        ('names = ["x"]', 'names = ["pg_tables"]'),
        ('names = ["x"]', "names = [1]"),
    ]:
        assert old in text
        with pytest.raises(VerifyError, match=r"ibis\.run"):
            mp.verify(mp.parse(text.replace(old, new)))


# -- the lock by itself, and the lists


@pytest.mark.parametrize("connect", [query._connect, query._without_data])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{}/f.csv')",
        "SELECT * FROM '{}/f.csv'",
        "COPY (SELECT 1) TO '{}/out.csv'",
        "ATTACH '{}/db' AS db",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET threads = 8",
        "RESET memory_limit",
        "SET lock_configuration = false",
        "SELECT * FROM secret_table",
        "SELECT getenv('HOME')",
    ],
)
def test_the_connection_is_locked_whatever_is_admitted(files, connect, sql):
    with connect() as con, pytest.raises(duckdb.Error):
        con.sql(sql.replace("{}", str(files))).fetchall()
    assert not (files / "out.csv").exists()


def test_the_settings_are_those_that_are_written_down():
    with query._connect() as con:
        for name, value in {**query.LOCKED, "TimeZone": "UTC", "threads": 1}.items():
            (found,) = con.execute(f"SELECT current_setting('{name}')").fetchone()
            if name != "memory_limit":
                assert found == value, name


def test_no_function_that_is_allowed_depends_on_the_process():
    with duckdb.connect() as con:
        found = con.execute(
            "SELECT lower(function_name), function_type, stability FROM duckdb_functions() "
            "WHERE function_type IN ('scalar', 'aggregate', 'macro')"
        ).fetchall()
    known = {name for name, _, _ in found}
    windows = {"cume_dist", "dense_rank", "lag", "lead", "ntile", "percent_rank", "rank"}
    windows |= {"row_number", "first_value", "last_value", "nth_value"}  # since 1.5 in the list
    assert known | windows | {"unnest"} >= FUNCTIONS
    assert not {name for name, _, stability in found if stability == "VOLATILE"} & FUNCTIONS
    steady = {name for name, _, stability in found if stability == "CONSISTENT"}
    assert FUNCTIONS - steady - windows - {"unnest"} == {  # macros of others that are
        *("date_add", "fdiv", "fmod", "geomean", "nullif", "round_even", "split_part"),
        "array_to_string",
    }


def test_no_name_of_the_catalogue_may_be_that_of_a_table():
    with duckdb.connect() as con:
        found = con.execute("SELECT schema_name, view_name FROM duckdb_views()").fetchall()
    reached = [name for schema, name in found if schema != "information_schema"]
    assert len(reached) > 20
    assert not [name for name in reached if NAME.fullmatch(name)]


# -- limits


def test_a_query_that_takes_too_long_is_stopped(sim, monkeypatch):
    monkeypatch.setattr(settings, "current", settings.QuerySettings(seconds=0.3))
    crossed = ", ".join(f"(SELECT unnest(split(repeat('x,', 999), ','))) t{i}" for i in range(5))
    with pytest.raises(PartyError, match=r"the query took longer than 0\.3 s"):
        run(sim, f"SELECT count(*) AS a FROM {crossed} WHERE t0 IS NOT NULL")


def test_a_query_that_wants_too_much_memory_fails_alone(sim, monkeypatch):
    monkeypatch.setattr(settings, "current", settings.QuerySettings(memory=20_000_000))
    words = "SELECT unnest(split(repeat('x,', 1999999), ',')) AS word"
    big = f"SELECT array_agg(word) FROM ({words}) GROUP BY word"
    with pytest.raises(PartyError, match=r"ibis\.run: DuckDB fails: Out of Memory"):
        run(sim, f"SELECT len(v) AS a FROM ({big}) AS t(v)")
    assert run(sim, "SELECT 1 AS a") == [{"a": 1}]


def test_what_a_program_says_of_the_op_is_written_down():
    assert RUN.doc
    assert all(attr.doc for attr in RUN.attrs.values())


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT s FROM x", r"the columns are \['s'\], declared are \['a'\]"),
        ("SELECT a, s FROM x", r"the columns are"),
        ("SELECT s AS a FROM x", "column 'a' is string, and does not fit in int64"),
        ("SELECT 0.5 AS a", r"column 'a' is decimal128\(2, 1\), and does not fit in int64"),
    ],
)
def test_a_result_that_is_not_what_was_declared_is_refused(sim, sql, message):
    with pytest.raises(PartyError, match=message):
        run(sim, sql)


def test_no_value_that_a_query_does_not_give_is_beneath_its_nulls():
    """DuckDB leaves there what its memory held: here a column that the query only reads."""
    rows = 5000
    data = pa.table({"id": range(rows), "secret": range(10**6, 10**6 + rows)})
    sql = "SELECT lag(secret) OVER (PARTITION BY id ORDER BY secret) AS a FROM x"
    found = query.run_sql(sql, {"x": data}, GIVES)
    assert found.column("a").null_count == rows
    _, (_, memory) = arrow.write(found)
    assert not any(bytes(memory))
