"""SQL of programs on a real Spark server, against DuckDB."""

from __future__ import annotations

import grpc
import odd_rows
import pyarrow as pa
import pytest
from mplang_ibis import query
from mplang_ibis.engines import DIFFERENCES, Offered, refusal, to_dialect
from mplang_ibis.result_types import declared
from mplang_spark.run import run_on_spark

from mplang_core import TableType
from mplang_core.errors import AdmissionError, KernelError

pytestmark = pytest.mark.slow("a Spark server")

T = {"t": Offered(odd_rows.KIND, ("default", "odd"))}
S = {"t": Offered(TableType((("x", "double"), ("y", "double"))), ("default", "special"))}
SPECIAL = [-8.0, -1.0, 0.0, -0.0, 0.5, 1.0, 2.0, 1e300, float("inf"), float("-inf"), float("nan")]
HERE = {key: row for key, row in DIFFERENCES.items() if row.example_on("spark")}
NAIVE = [key for key, row in HERE.items() if row.others["spark"].naive]
WRITTEN = [key for key, row in HERE.items() if row.written]
AGGREGATES = odd_rows.AGGREGATES.replace("corr(i, j); ", "")
MORE = {
    "digits": "sum(i) = sum(d); sum(e * d) > sum(d); sum(i) // sum(j); sum(i) % sum(s)",
    "floats": "avg(f); avg(g); stddev(g); min(f); max(g); median(g); count(DISTINCT f)",
    "none": "sum(i) FILTER (WHERE i > 99); avg(i) FILTER (WHERE i > 99); min(i) FILTER (WHERE "
    "false); count(i) FILTER (WHERE i > 99); avg(DISTINCT s)",
}
DOMAINS = {
    **dict.fromkeys(("acos", "asin"), "abs(x) <= 1"),
    **dict.fromkeys(("ln", "log", "log10"), "x > 0"),
    **dict.fromkeys(("sin", "cos", "tan"), "abs(x) <= 2"),
    "cot": "abs(x) <= 2 AND x <> 0",
    "sqrt": "x >= 0",
    **dict.fromkeys(("atan", "degrees", "exp", "radians"), "true"),
}
"""Functions, and where DuckDB has them; elsewhere it fails."""


@pytest.fixture(scope="module")
def connection(server):
    """Connect to the server, with tables of odd values."""
    server.create("odd", odd_rows.TABLE)
    pairs = [(x, y) for x in SPECIAL for y in SPECIAL]
    special = pa.table({"x": [x for x, _ in pairs], "y": [y for _, y in pairs]})
    server.create("special", special)
    with server.connect() as made:
        made.special = special
        yield made


def gives(sql, tables):
    return declared(query.types_of(sql, {name: each.kind for name, each in tables.items()}))


def on_spark(connection, sql, tables=T):
    return pa.Table.from_batches(list(run_on_spark(connection, sql, tables, gives(sql, tables))))


def on_duckdb(sql, tables=T, table=odd_rows.TABLE):
    return query.run_sql(sql, {"t": table}, gives(sql, tables))


@pytest.mark.parametrize("about", odd_rows.ROW_WISE)
def test_expressions_are_equal(connection, about):
    sql = odd_rows.select(odd_rows.ROW_WISE[about])
    assert odd_rows.differing(on_spark(connection, sql), on_duckdb(sql)) == []


@pytest.mark.parametrize("expressions", [AGGREGATES, odd_rows.WINDOWS, *MORE.values()])
def test_aggregates_and_windows_are_equal(connection, expressions):
    sql = odd_rows.select(expressions)
    assert odd_rows.differing(on_spark(connection, sql), on_duckdb(sql)) == []


@pytest.mark.parametrize("sql", odd_rows.QUERIES)
def test_queries_are_equal(connection, sql):
    assert odd_rows.differing(on_spark(connection, sql), on_duckdb(sql)) == []


def test_rows_are_in_the_order_of_the_query_and_ties_in_that_of_all_columns(connection):
    sql = "SELECT b, i FROM t ORDER BY b DESC"
    assert on_spark(connection, sql)["i"].to_pylist() == [1, 5, 25, -7, 0, None]
    assert on_spark(connection, "SELECT text FROM t")["text"].to_pylist() == [
        "", "a_b\\c%", "aé", "ß", "İx", None,
    ]  # fmt: skip


def test_floats_that_are_not_finite_are_equal(connection):
    expressions = (
        "x / y; x * y; x + y; pow(x, y); x = y; x < y; x <> y; greatest(x, y); floor(x); ceil(x); "
        "trunc(x); 1 / floor(x); 1 / ceil(x); 1 / trunc(x); abs(x); isnan(x); -x; 1 / (-x)"
    )
    sql = odd_rows.select(expressions)
    mine = on_spark(connection, sql, S)
    assert odd_rows.differing(mine, on_duckdb(sql, S, connection.special)) == []


@pytest.mark.parametrize("name", DOMAINS)
def test_a_function_is_equal_in_its_domain_and_fails_outside_as_in_duckdb(connection, name):
    where = f"{DOMAINS[name]} OR isnan(x)" if name != "cot" else DOMAINS[name]
    sql = f"SELECT {name}(x) AS v FROM t WHERE {where}"
    mine = on_spark(connection, sql, S)
    assert odd_rows.differing(mine, on_duckdb(sql, S, connection.special)) == []
    for value in SPECIAL:
        test = "isnan(x)" if value != value else f"x = {value!r}".replace("inf", "'inf'::DOUBLE")
        test = test.replace("-'inf'", "'-inf'")
        sql = f"SELECT max({name}(x)) AS v FROM t WHERE {test}"
        try:
            theirs = on_duckdb(sql, S, connection.special)
        except KernelError:
            with pytest.raises(KernelError, match="out of range"):
                on_spark(connection, sql, S)
        else:
            assert odd_rows.differing(on_spark(connection, sql, S), theirs) == []


@pytest.mark.parametrize(
    "where",
    ["x > 10", "x >= 10", "x <> 5", "x NOT IN (5, 6)", "x = 'nan'::DOUBLE", "isnan(x)", "5 < x"],
)
def test_no_row_is_left_out_by_the_statistics_of_a_file(server, connection, where):
    """Those of Parquet do not count NaN."""
    table = pa.table({"x": [5.0, 5.0, float("nan")]})
    server.execute("DROP TABLE IF EXISTS nans")
    server.create("nans", table)
    offered = {"t": Offered(TableType((("x", "double"),)), ("default", "nans"))}
    found = on_spark(connection, f"SELECT count(*) AS n, max(x) AS x FROM t WHERE {where}", offered)
    assert found["n"].to_pylist() == [1]


def test_a_spread_of_what_is_not_finite_fails_as_in_duckdb(connection):
    for sql in ("SELECT stddev(x) AS v FROM t", "SELECT var_pop(x) AS v FROM t WHERE x < 9"):
        with pytest.raises(KernelError):
            on_duckdb(sql, S, connection.special)
        with pytest.raises(KernelError, match="out of range"):
            on_spark(connection, sql, S)


# -- the table of differences


@pytest.mark.parametrize("key", NAIVE)
def test_a_difference_is_real(connection, key):
    """What is refused is another answer, or an error, on the real engine."""
    row = DIFFERENCES[key]
    theirs = on_duckdb(f"SELECT {row.example_on('spark')} AS x FROM t")["x"].to_pylist()
    try:
        parts = list(connection.query(f"SELECT {row.others['spark'].naive} FROM odd", 60))
    except grpc.RpcError:
        return
    mine = [value for part in parts for value in part.column(0).to_pylist()]
    assert sorted(map(repr, theirs)) != sorted(map(repr, mine))


@pytest.mark.parametrize("key", WRITTEN)
def test_what_is_written_instead_is_equal(connection, key):
    sql = f"SELECT {DIFFERENCES[key].written} AS x FROM t"
    assert odd_rows.differing(on_spark(connection, sql), on_duckdb(sql)) == []


@pytest.mark.parametrize("key", HERE)
def test_a_difference_is_refused_by_name(key):
    row = DIFFERENCES[key]
    sql = f"SELECT {row.example_on('spark')} AS x FROM t"
    found = refusal(sql, "spark", {"t": odd_rows.KIND})
    assert [(each.reason, each.instead) for each in found] == [(row.reason("spark"), row.instead)]
    with pytest.raises(AdmissionError, match="does not run on spark: .*; write "):
        to_dialect(sql, "spark", T)


EQUALITIES = [
    "SELECT sum(f) = 1 AS x FROM t",
    "SELECT sum(f) >= avg(g) AS x FROM t",
    "SELECT count(*) AS x FROM (SELECT b, sum(f) AS s FROM t GROUP BY b) GROUP BY s",
    "SELECT DISTINCT sum(f) AS x FROM t GROUP BY b",
    "SELECT a.i FROM t a JOIN (SELECT avg(f) AS m FROM t GROUP BY b) q ON a.f = q.m",
    "WITH q AS (SELECT b, stddev(f) AS s FROM t GROUP BY b) SELECT b FROM q "
    "WHERE s = (SELECT max(s) FROM q)",
    "SELECT i FROM t WHERE f IN (SELECT sum(g) FROM t)",
    "SELECT sum(f) AS x FROM t UNION SELECT 1.0::DOUBLE",
    "SELECT nullif(sum(f), 0) AS x FROM t",
    "SELECT rank() OVER (PARTITION BY sum(f) ORDER BY b) AS x FROM t GROUP BY b",
    "SELECT CAST(sum(f) AS BIGINT) = 3 AS x FROM t",
    "SELECT CASE sum(f) WHEN 1 THEN 2 END AS x FROM t",
]


@pytest.mark.parametrize("sql", EQUALITIES)
def test_a_test_of_equality_of_a_sum_of_floats_is_refused(sql):
    found = refusal(sql, "spark", {"t": odd_rows.KIND})
    assert [each.reason for each in found] == [DIFFERENCES["float-sum"].reason("spark")]
    assert refusal(sql, "postgresql", {"t": odd_rows.KIND}) == []


def test_a_sum_of_floats_may_be_shown_and_compared_by_order():
    for sql in (
        "SELECT b, sum(f) AS s FROM t GROUP BY b HAVING sum(f) >= 10 ORDER BY s",
        "SELECT avg(i) = 3 AS x, sum(d) = 2.5 AS y, median(f) = 1 AS z FROM t",
    ):
        assert refusal(sql, "spark", {"t": odd_rows.KIND}) == []


# -- texts


def test_texts_and_names_are_no_sql(server, connection):
    """A constant, an alias and the name of a column cannot end what they stand in."""
    name = "a`b'c\\d{0}%s${user};--"
    text = 'it\'s \\ "x" $$ %s {0} ${spark.master} \n \U0001f600 \\u0041 /* -- */'
    server.create("quoted", pa.table({name: [text]}))
    offered = {"t": Offered(TableType(((name, "string"),)), ("default", "quoted"))}
    column, value = '"' + name + '"', text.replace("'", "''")
    sql = f"SELECT {column} AS {column} FROM t AS {column} WHERE {column} = '{value}'"
    assert on_spark(connection, sql, offered).to_pylist() == [{name: text}]


@pytest.mark.parametrize(
    ("text", "pattern", "escape"),
    [
        ("a\\b", "a\\b", ""), ("a%b", "a!%b", "!"), ("axb", "a!%b", "!"), ("a\\%", "a\\_", ""),
        ("a\U0001f600b", "a_b", ""), ("a\nb", "a%b", ""), ("a.b", "a.b", ""), ("axb", "a.b", ""),
        ("ab", "a!b", "!"), ("a!b", "a!!b", "!"), ("\\E", "\\E", ""),
    ],
)  # fmt: skip
def test_patterns_are_equal(connection, text, pattern, escape):
    escaped = f" ESCAPE '{escape}'" * bool(escape)
    column = f"(CASE WHEN i = 1 THEN '{text}' END)"
    sql = f"SELECT {column} LIKE '{pattern}'{escaped} AS x FROM t"
    assert odd_rows.differing(on_spark(connection, sql), on_duckdb(sql)) == []


def test_types_are_those_of_duckdb():
    every = "; ".join([*odd_rows.ROW_WISE.values(), odd_rows.WINDOWS])
    for sql in (odd_rows.select(every), odd_rows.select(AGGREGATES)):
        types = to_dialect(sql, "spark", T).types
        expected = query.types_of(sql, {"t": odd_rows.KIND})
        for (name, theirs), mine in zip(expected, types, strict=True):
            assert str(mine).replace(" ", "") == theirs.replace(" ", ""), name
