"""SQL of programs on a real PostgreSQL server, against DuckDB."""

from __future__ import annotations

import odd_rows
import psycopg
import pyarrow as pa
import pytest
from mplang_ibis import query
from mplang_ibis.engines import DIFFERENCES, Offered, refusal, to_dialect
from mplang_ibis.engines.postgresql import PostgreSqlDialect
from mplang_ibis.engines.run_postgresql import Bounds, run_on_postgresql
from mplang_ibis.engines.types import type_of_column
from mplang_ibis.result_types import declared
from mplang_tables import arrow
from postgres import server as server

from mplang_core import TableType
from mplang_core.errors import AdmissionError, KernelError

T = {"t": Offered(odd_rows.KIND, ("public", "odd"))}
HERE = {key: row for key, row in DIFFERENCES.items() if "postgresql" in row.others}
WITH_EXAMPLES = [key for key, row in HERE.items() if row.example]
NAIVE = [key for key in WITH_EXAMPLES if HERE[key].others["postgresql"].naive]
WRITTEN = [key for key in WITH_EXAMPLES if DIFFERENCES[key].written]
GIVES = TableType((("x", "int64"),))


@pytest.fixture(scope="module")
def connection(server):
    """Connect to a database with the table of odd values."""
    dialect = PostgreSqlDialect()
    columns = [f'"{n}" {dialect.type_name(type_of_column(t))}' for n, t in odd_rows.KIND.columns]
    server.execute(f"CREATE TABLE odd ({', '.join(columns)})")
    with psycopg.connect(server.place, autocommit=True) as made:
        row = ", ".join(["%s"] * len(columns))
        with made.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO odd VALUES ({row})",
                [tuple(each.values()) for each in odd_rows.TABLE.to_pylist()],
            )
        yield made


def gives(sql, tables):
    """Return the type of a result; sums of integers are int64, as programs declare them."""
    return declared(query.types_of(sql, {name: each.kind for name, each in tables.items()}))


def on_postgresql(connection, sql, tables=T, **bounds):
    kind = gives(sql, tables)
    batches = run_on_postgresql(connection, sql, tables, kind, Bounds(**bounds))
    return pa.Table.from_batches(list(batches))


def on_duckdb(sql):
    return query.run_sql(sql, {"t": odd_rows.TABLE}, gives(sql, T))


@pytest.mark.parametrize("about", odd_rows.ROW_WISE)
def test_expressions_are_equal(connection, about):
    sql = odd_rows.select(odd_rows.ROW_WISE[about])
    assert odd_rows.differing(on_postgresql(connection, sql), on_duckdb(sql)) == []


@pytest.mark.parametrize("expressions", [odd_rows.AGGREGATES, odd_rows.WINDOWS])
def test_aggregates_and_windows_are_equal(connection, expressions):
    sql = odd_rows.select(expressions)
    assert odd_rows.differing(on_postgresql(connection, sql), on_duckdb(sql)) == []


@pytest.mark.parametrize("sql", odd_rows.QUERIES)
def test_queries_are_equal(connection, sql):
    assert odd_rows.differing(on_postgresql(connection, sql), on_duckdb(sql)) == []


def test_rows_are_in_the_order_of_the_query_and_ties_in_that_of_all_columns(connection):
    sql = "SELECT b, i FROM t ORDER BY b DESC"
    found = on_postgresql(connection, sql).to_pylist()
    assert [each["b"] for each in found] == [True, True, True, False, False, None]
    assert [each["i"] for each in found] == [1, 5, 25, -7, 0, None]
    assert on_postgresql(connection, "SELECT text FROM t")["text"].to_pylist() == [
        "", "a_b\\c%", "aé", "ß", "İx", None,
    ]  # fmt: skip


# -- the table of differences


@pytest.mark.parametrize("key", NAIVE)
def test_a_difference_is_real(connection, key):
    """What is refused is another answer, or an error, on the real engine."""
    row = DIFFERENCES[key]
    naive = row.others["postgresql"].naive
    theirs = query.run_sql(*_checked(f"SELECT {row.example} AS x FROM t", key))
    try:
        found = connection.execute(f"SELECT {naive} FROM odd").fetchall()
    except psycopg.Error:
        return
    assert sorted(map(repr, theirs["x"].to_pylist())) != sorted(repr(each[0]) for each in found)


def _checked(sql, key):
    """Return what DuckDB runs: of columns that it can read."""
    table = odd_rows.TABLE
    if key == "cast":
        sql = sql.replace("ts", "CAST(ts AS TIMESTAMP)")
    return sql, {"t": table}, gives(sql, T)


@pytest.mark.parametrize("key", WITH_EXAMPLES)
def test_a_difference_is_refused_by_name(key):
    row = DIFFERENCES[key]
    found = refusal(f"SELECT {row.example} AS x FROM t", "postgresql", {"t": odd_rows.KIND})
    assert [(each.reason, each.instead) for each in found] == [
        (row.reason("postgresql"), row.instead)
    ]
    with pytest.raises(AdmissionError, match="does not run on postgresql: .*; write "):
        to_dialect(f"SELECT {row.example} AS x FROM t", "postgresql", T)


@pytest.mark.parametrize("key", WRITTEN)
def test_what_is_written_instead_is_equal(connection, key):
    sql = f"SELECT {DIFFERENCES[key].written} AS x FROM t"
    assert odd_rows.differing(on_postgresql(connection, sql), on_duckdb(sql)) == []


# -- types and bounds


def test_types_are_those_of_duckdb():
    every = "; ".join([*odd_rows.ROW_WISE.values(), odd_rows.WINDOWS])
    for sql in (odd_rows.select(every), odd_rows.select(odd_rows.AGGREGATES)):
        types = to_dialect(sql, "postgresql", T).types
        expected = query.types_of(sql, {"t": odd_rows.KIND})
        for (name, theirs), mine in zip(expected, types, strict=True):
            assert str(mine).replace(" ", "") == theirs.replace(" ", ""), name


def test_decimals_keep_their_digits(connection, server):
    server.execute(
        "CREATE TABLE money AS SELECT 99999999.99::numeric(10, 2) AS x, generate_series(1, 3) n"
    )
    offered = {"t": Offered(TableType((("x", "decimal128(10, 2)"),)), ("public", "money"))}
    found = on_postgresql(connection, "SELECT sum(x * x) AS s FROM t", offered)
    assert str(found["s"][0]) == "29999999994000000.0003"
    small = TableType((("x", "int8"),))
    with pytest.raises(KernelError, match="'x' .* does not fit in int8"):
        list(run_on_postgresql(connection, "SELECT 300 AS x FROM t", offered, small))


def test_a_large_result_comes_in_batches_and_within_bounds(connection, server):
    server.execute("CREATE TABLE many AS SELECT x::bigint FROM generate_series(1, 25000) x")
    offered = {"t": Offered(GIVES, ("public", "many"))}
    batches = list(run_on_postgresql(connection, "SELECT x FROM t", offered, GIVES))
    assert [batch.num_rows for batch in batches] == [10_000, 10_000, 5_000]
    assert batches[0].schema == arrow.schema(GIVES)
    for bound in ({"rows": 20_000}, {"bytes": 100_000}):
        with pytest.raises(KernelError, match="the query gives more than"):
            on_postgresql(connection, "SELECT x FROM t", offered, **bound)
    empty = on_postgresql(connection, "SELECT x FROM t WHERE x < 0", offered)
    assert empty.num_rows == 0
    assert empty.schema == arrow.schema(GIVES)


def test_a_query_that_takes_long_is_ended(connection, server):
    server.execute("CREATE TABLE few AS SELECT x::bigint FROM generate_series(1, 3000) x")
    offered = {"t": Offered(GIVES, ("public", "few"))}
    sql = "SELECT count(*) AS x FROM t a, t b, t c, t d WHERE a.x + b.x + c.x + d.x = 7"
    with pytest.raises(KernelError, match=r"longer than 0\.2 s"):
        on_postgresql(connection, sql, offered, seconds=0.2)
    assert on_postgresql(connection, "SELECT max(x) AS x FROM t", offered)["x"][0].as_py() == 3000


def test_a_view_of_other_types_is_refused_with_the_cast(connection, server):
    server.execute("CREATE VIEW chars AS SELECT 'a'::char(3) AS c, 1.5::numeric AS n")
    for column, kind, told in [
        (
            "c",
            "string",
            r"is character\(3\) there, and string in the catalogue; .* casts it to text",
        ),
        ("n", "decimal128(4, 2)", r"is numeric there, .* casts it to numeric\(4,2\)"),
        ("none", "int64", "it has no column 'none'"),
    ]:
        offered = {"t": Offered(TableType(((column, kind),)), ("public", "chars"))}
        with pytest.raises(KernelError, match=told):
            on_postgresql(connection, f'SELECT "{column}" AS x FROM t', offered)


def test_texts_that_a_collation_takes_for_equal_are_refused(connection, server):
    server.execute(
        "CREATE COLLATION same (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
    )
    server.execute("CREATE TABLE texts (x text COLLATE same)")
    offered = {"t": Offered(TableType((("x", "string"),)), ("public", "texts"))}
    with pytest.raises(
        KernelError, match='different texts are equal; offer a view with COLLATE "C"'
    ):
        on_postgresql(connection, "SELECT count(*) AS n FROM t WHERE x = 'a'", offered)


# -- hostile SQL


HOSTILE = [
    "SELECT pg_sleep(1000) IS NULL AS x FROM t",
    "SELECT pg_read_file('/etc/passwd') AS x FROM t",
    "SELECT dblink('host=evil', 'SELECT 1') AS x FROM t",
    "SELECT lo_import('/etc/passwd') AS x FROM t",
    "SELECT query_to_xml('DROP TABLE odd', true, true, '') AS x FROM t",
    "SELECT set_config('statement_timeout', '0', false) AS x FROM t",
    "SELECT current_setting('data_directory') AS x FROM t",
    "SELECT usename AS x FROM pg_catalog.pg_shadow",
    "SELECT table_name AS x FROM information_schema.tables",
    "SELECT x FROM secrets",
    "SELECT i FROM t; DROP TABLE odd",
    "COPY odd TO PROGRAM 'sh'",
    "SET statement_timeout = 0",
    "DO $$ BEGIN PERFORM 1; END $$",
    "INSERT INTO t VALUES (1)",
    "DELETE FROM t",
    "SELECT x FROM generate_series(1, 1000000000000) AS g(x)",
    "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r) SELECT x FROM r",
    "SELECT my_function(i) AS x FROM t",
    "SELECT public.my_function(i) AS x FROM t",
    "SELECT i::regclass AS x FROM t",
    "SELECT i OPERATOR(public.+) 1 AS x FROM t",
    "SELECT ctid AS x FROM t",
    "SELECT xmin AS x FROM t",
    "SELECT tableoid AS x FROM t",
    "SELECT t AS x FROM t",
    "SELECT t.* FROM t, LATERAL (SELECT pg_sleep(9)) s",
    "SELECT i FROM t FOR UPDATE",
    "SELECT i INTO stolen FROM t",
    "SELECT current_user AS x FROM t",
    "SELECT now() AS x FROM t",
    "SELECT random() AS x FROM t",
]


@pytest.mark.parametrize("sql", HOSTILE)
def test_hostile_sql_is_refused_before_it_is_sent(connection, sql):
    with pytest.raises(AdmissionError):
        list(run_on_postgresql(connection, sql, T, GIVES))


def test_texts_and_names_are_no_sql(connection, server):
    """A constant, an alias and the name of a column cannot end what they stand in."""
    name = "a\"b'c\\d{0}%s;--"
    quoted = '"' + name.replace('"', '""') + '"'
    server.execute(f"CREATE TABLE quoted ({quoted} text)")
    server.execute("INSERT INTO quoted VALUES ('it''s \\ \"x\" $$ %s {0}')")
    offered = {"t": Offered(TableType(((name, "string"),)), ("public", "quoted"))}
    text = "it''s \\ \"x\" $$ %s {0}"
    sql = f"SELECT {quoted} AS {quoted} FROM t AS {quoted} WHERE {quoted} = '{text}'"
    found = on_postgresql(connection, sql, offered)
    assert found.to_pylist() == [{name: text.replace("''", "'")}]


def test_a_function_of_a_user_is_not_called_by_the_name_of_another(connection, server):
    """The search path is empty, so an own operator or function stands for none of PostgreSQL."""
    server.execute(
        "CREATE FUNCTION public.abs(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 666::bigint'"
    )
    server.execute("ALTER ROLE owner SET search_path = public, pg_catalog")
    with psycopg.connect(server.place, autocommit=True) as other:
        assert other.execute("SELECT abs(1::bigint)").fetchone() == (666,)
        found = on_postgresql(other, "SELECT max(abs(i)) AS x FROM t")
    assert found["x"].to_pylist() == [25]


def test_a_view_that_writes_is_stopped(connection, server):
    server.execute("CREATE TABLE log (x bigint)")
    server.execute(
        "CREATE FUNCTION noted() RETURNS bigint LANGUAGE sql VOLATILE AS "
        "'INSERT INTO public.log VALUES (1) RETURNING x'"
    )
    server.execute("CREATE VIEW noting AS SELECT noted() AS x")
    offered = {"t": Offered(GIVES, ("public", "noting"))}
    with pytest.raises(KernelError, match="read-only transaction"):
        on_postgresql(connection, "SELECT x FROM t", offered)
    assert server.execute("SELECT count(*) FROM log") is not None


def test_long_sql_is_refused_before_it_is_made():
    doubled = ", ".join(f"x{n} + x{n} AS x{n + 1}" for n in range(40))
    deep = "(" * 150 + "i" + " / j)" * 150
    for sql in (f"SELECT i AS x0, {doubled} FROM t", f"SELECT {deep} AS x FROM t"):
        with pytest.raises(AdmissionError, match="long|nest"):
            to_dialect(sql, "postgresql", T)


def test_all_that_is_refused_is_told_at_once():
    sql = "SELECT upper(text) AS a, round(f) AS b, i AS c FROM t WHERE text ILIKE 'a' AND i > 1"
    found = refusal(sql, "postgresql", {"t": odd_rows.KIND})
    assert [each.part for each in found] == ["upper", "round of DOUBLE", "~~*"]


def test_a_transaction_of_somebody_else_is_left_alone(connection):
    with connection.transaction(), pytest.raises(KernelError):
        on_postgresql(connection, "SELECT i FROM t")
    assert on_postgresql(connection, "SELECT count(*) AS n FROM t")["n"].to_pylist() == [6]
