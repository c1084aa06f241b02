"""``mp.sql``: SQL text over tables of a party, its placeholders, dialects and refusals."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from mplang_ibis.dialects import to_duckdb
from mplang_ibis.selection import selection_of
from mplang_ibis.sql_text import filled, located

import mplang_core as mp
from mplang_core.errors import DisclosureError, TraceError

PEOPLE = {"name": ["Ann", "Bo", "Cy"], "age": [17, 44, 71], "shop": [1, 1, 2]}
SHOPS = {"shop": [1, 2], "city": ["Bern", "Zug"]}
CLUSTER = mp.ClusterSpec([{"name": "bank"}, {"name": "other"}])


@pytest.fixture(scope="module")
def sim():
    data = {"bank": {"people": PEOPLE, "shops": SHOPS}, "other": {"people": PEOPLE}}
    with mp.Simulator(CLUSTER, data=data) as made:
        yield made


def ran(sim, text, party="bank", **options):
    def program():
        return mp.sql(party, text, people=mp.dataset("bank", "people"), **options)

    return mp.fetch(sim, mp.evaluate(sim, program)).to_pylist()


# -- results


def test_a_select_over_a_data_set(sim):
    expected = [{"age": 57.5}]
    text = "SELECT avg(age) AS age FROM {people} WHERE age > 17"
    assert ran(sim, text) == ran(sim, text, party="P0") == expected


def test_a_select_over_two_tables_and_what_another_one_gave(sim):
    def program():
        people, shops = mp.dataset("bank", "people"), mp.dataset("bank", "shops")
        old = mp.device("P0")(lambda t: t.filter(t.age > 17))(people)
        text = """
            SELECT city, count(*) AS n
            FROM {people} JOIN {shops} ON people.shop = shops.shop
            GROUP BY city ORDER BY city
        """
        found = mp.sql("bank", text, people=old, shops=shops)
        return mp.sql("bank", "SELECT sum(n) AS n FROM {found}", found=found)

    assert mp.fetch(sim, mp.evaluate(sim, program)).to_pylist() == [{"n": 2}]


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("mysql", "SELECT `age` DIV 10 AS n FROM {people} ORDER BY `name` LIMIT 1, 1"),
        ("postgres", "SELECT age / 10 AS n FROM {people} WHERE name ~ '^B'"),
        ("spark", "SELECT CAST(age / 10 AS INT) AS n FROM {people} WHERE name RLIKE '^B'"),
        ("tsql", "SELECT TOP 1 [age] / 10 AS n FROM {people} WHERE LEN(name) = 2 ORDER BY [age]"),
        ("duckdb", "FROM {people} SELECT age // 10 AS n WHERE name SIMILAR TO 'B.*'"),
    ],
)
def test_other_dialects_are_translated(sim, dialect, text):
    (row,) = ran(sim, text, dialect=dialect)
    assert row["n"] in (1, 4)
    assert type(row["n"]) is int


NUMBERS = mp.TableType((("a", "int64"), ("b", "int32"), ("d", "decimal128(10, 2)")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a / b AS x FROM t", "a // b"),
        ("SELECT (a + 1) / (b - 1) AS x FROM t", "(a + 1) // (b - 1)"),
        ("SELECT a / b / 2 AS x FROM t", "a // b) // 2"),
        ("SELECT a / d AS x FROM t", "a / d"),
        ("SELECT a / 2.0 AS x FROM t", "a / 2.0"),
        ("SELECT sum(a) / count(*) AS x FROM t", "SUM(a) // COUNT(*)"),
        ("SELECT a::numeric / b AS x FROM t", "CAST(a AS DECIMAL) / b"),
        ("SELECT x / 2 AS y FROM (SELECT a AS x FROM t) AS u", "x // 2"),
        ("SELECT * FROM t WHERE a / 2 > 1 ORDER BY a / 3", "a // 3"),
        ("SELECT length(a::text) / 2 AS x FROM t", "// 2"),
    ],
)
def test_a_division_of_integers_stays_one(text, expected):
    """sqlglot would round, as by CAST(a / b AS BIGINT), or divide doubles."""
    made = to_duckdb(text, "postgres", {"t": NUMBERS})
    assert expected.replace(" ", "") in "".join(made.split())
    assert "BIGINT" not in made


def test_a_division_of_what_is_not_known_is_refused():
    text = "SELECT unknown_function(a) / 2 AS x FROM t"
    with pytest.raises(ValueError, match="a division of integers, which has no fraction"):
        to_duckdb(text, "postgres", {"t": NUMBERS})
    assert "/" in to_duckdb(text, "mysql", {"t": NUMBERS})  # whose division has a fraction


# -- placeholders


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT '{t}' FROM {t}", "SELECT '{t}' FROM \"t\""),
        ("SELECT 'it''s {t}' FROM {t}", "SELECT 'it''s {t}' FROM \"t\""),
        ("SELECT E'\\'{t}' FROM {t}", "SELECT E'\\'{t}' FROM \"t\""),
        ('SELECT "{t}" FROM {t}', 'SELECT "{t}" FROM "t"'),
        ("SELECT 1 -- {t}, it's\nFROM {t}", 'SELECT 1 -- {t}, it\'s\nFROM "t"'),
        ("SELECT /* {t} ' */ 1 FROM {t}", 'SELECT /* {t} \' */ 1 FROM "t"'),
        ("SELECT $x${t}'$x$ FROM {t}", 'SELECT $x${t}\'$x$ FROM "t"'),
        ("SELECT {'a': 1}.a FROM {t} AS u", "SELECT {'a': 1}.a FROM \"t\" AS u"),
    ],
)
def test_a_placeholder_is_one_outside_of_texts_and_comments(text, expected):
    assert filled(text, {"t": '"t"'}) == expected
    with duckdb.connect() as con:
        con.execute('CREATE TABLE t AS SELECT 1 AS "{t}"')
        assert len(con.sql(expected)) == 1


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("SELECT 1 FROM {peopl}", {}, r"line 1 \(SELECT 1 FROM \{peopl\}\): no table is called"),
        ("SELECT 1 FROM people", {}, r"does not read the table 'people'.* not an f-string"),
        ("SELECT 1 FROM '{people}'", {}, "without quotes"),
        ("SELECT x\nFROM {people}", {}, r"line 1 \(SELECT x\): .*\"x\" not found.*Candidate"),
        ("SELECT age,\nsum(shop) AS s\nFROM {people}", {}, r"line 1 .*GROUP BY"),
        ("SELECT 1\nFROM {people}\nWHER a = 3", {}, r"line 3 \(WHER a = 3\): .*near \"a\""),
        ("SELECT 'ü'\nFROM {people}\nWHER a = 3", {}, r"line 3 \(WHER a = 3\)"),
        ("SELECT 1 AS a FROM {people}; SELECT 2", {}, "2 statements"),
        ("DELETE FROM {people}", {}, "not a SELECT"),
        ("SELECT [age] AS ages FROM {people}", {}, r"column 'ages' is of DuckDB's type BIGINT\[\]"),
        ("SELECT age, AGE FROM {people}", {}, "names each column once"),
        ("SELECT 1 FROM {people}, shops", {}, "the table 'shops'; declared are people"),
        ("SELECT random() AS r FROM {people}", {}, "the function random"),
        ("SELECT * FROM read_csv('x'), {people}", {}, "the table function read_csv"),
        ("SELECT 1 FROM {people}", {"dialect": "postgre"}, "no dialect 'postgre'; 'postgres'"),
        ("SELECT 1 FROM {people}", {"dialect": "DuckDB"}, "no dialect 'DuckDB'; 'duckdb'"),
        ("SELECT 1 FROM {people}", {"dialect": ""}, "no dialect ''"),
        ("SELECT 1 FROM {people}", {"dialect": None}, "no dialect None"),
        ("SELECT 1 FROM {people} FOR UPDATE", {"dialect": "postgres"}, "FOR UPDATE"),
        ("SELECT 1 FROM\n{people} WHERE", {"dialect": "postgres"}, r"line 2 .*'postgres'"),
        ("SELECT 1 FROM {people}; SELECT 2", {"dialect": "mysql"}, "2 statements"),
        ("SELECT pg_sleep(3) AS x FROM {people}", {"dialect": "postgres"}, "pg_sleep"),
        ("SELECT 1 FROM {people}, {age}", {"age": 17}, "'age' is not a table, but int"),
        (b"SELECT 1 FROM {people}", {}, "SQL is a text, got a bytes"),
    ],
)
def test_what_is_refused_has_the_line_and_the_reason(sim, text, options, message):
    with pytest.raises(TraceError, match=message) as error:
        ran(sim, text, **options)
    assert "test_sql_text.py:" in str(error.value)


def test_a_party_reads_its_own_tables(sim):
    with pytest.raises(DisclosureError, match="mp.put"):
        ran(sim, "SELECT age FROM {people}", party="other")
    with pytest.raises(TraceError, match="no party 'nobody'.*the parties are bank, other"):
        ran(sim, "SELECT age FROM {people}", party="nobody")
    with pytest.raises(TraceError, match="it reads no table"):
        mp.evaluate(sim, lambda: mp.sql("bank", "SELECT 1 AS one"))
    with pytest.raises(TraceError, match="not a name of a table here"):
        mp.evaluate(sim, lambda: mp.sql("bank", "FROM {T}", T=mp.dataset("bank", "people")))


def test_text_runs_on_values_that_were_put(sim):
    with mp.with_ctx(sim):
        t = mp.put("P0", pa.table(PEOPLE))
        found = mp.fetch(sim, mp.sql("P0", "SELECT name FROM {t} WHERE age > 44", t=t))
    assert found.to_pylist() == [{"name": "Cy"}]


def test_rows_of_a_text_are_told_as_those_of_the_data_set():
    """Rules of owners count on it, as on a filter of Ibis."""
    kind = mp.TableType((("id", "int64"), ("age", "int64")))
    gives = mp.TableType((("id", "int64"),))
    text = "SELECT id  -- of adults\nFROM people AS p WHERE p.age > 17"
    found = selection_of(text, (("people", kind),), gives)
    assert (found.columns, found.filtered) == ((("id", "id"),), {(0, "age")})


def test_the_same_text_gives_the_same_program(sim):
    def program():
        return mp.sql("bank", "SELECT age FROM {people}", people=mp.dataset("bank", "people"))

    one, other = (mp.compile(program, cluster_spec=CLUSTER).trace(sim).program for _ in range(2))
    assert one.digest == other.digest


def test_a_reason_that_names_nothing_stays_as_it_is():
    assert located("SELECT 1", "it is too long") == "it is too long"
    assert located("SELECT 1", 'no "x"') == 'no "x"'
