"""Which SQL passes numbers on, so that what is known of them is known of its result."""

from __future__ import annotations

import duckdb
import pytest
from ibis_programs import at
from mplang_ibis.ranges import is_selection
from mplang_tables import arrow, to_tensor

import mplang_core as mp

PEOPLE = mp.TableType((("age", "int64"), ("pay", "double"), ("name", "string"), ("ok", "bool")))
ITEMS = mp.TableType((("id", "int64"), ("label", "string")))


def passes(sql):
    con = duckdb.connect()
    con.execute("CREATE TABLE people (age BIGINT, pay DOUBLE, name VARCHAR, ok BOOLEAN)")
    con.execute("CREATE TABLE items (id BIGINT, label VARCHAR)")
    gives = arrow.type_of(con.sql(sql).to_arrow_table().schema)
    return is_selection(sql, (("people", PEOPLE), ("items", ITEMS)), gives)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT age FROM people",
        "SELECT * FROM people WHERE pay > 3 ORDER BY age + 1 LIMIT 7",
        "SELECT DISTINCT t0.age AS a, t0.name FROM people AS t0",
        "SELECT CAST(age AS DOUBLE) AS a, CAST(pay AS FLOAT) AS p FROM people",
        "SELECT t1.a FROM (SELECT t0.age AS a FROM people AS t0 WHERE ok) AS t1",
        "WITH t1 AS (SELECT age AS a FROM people), t2 AS (SELECT a FROM t1) SELECT a FROM t2",
        "SELECT age, id FROM people LEFT JOIN items ON people.age = items.id",
        "SELECT age FROM people UNION ALL SELECT id FROM items",
        "SELECT age FROM people GROUP BY age HAVING count(*) > 2",
        "SELECT rowid AS r FROM (SELECT age AS rowid FROM people)",
        "SELECT name FROM people WHERE length(name) > 3",
    ],
)
def test_what_passes_numbers_on(sql):
    assert passes(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT age + 1 AS a FROM people",
        "SELECT 7 AS a",
        "SELECT count(*) AS n FROM people",
        "SELECT sum(age) AS n FROM people",
        "SELECT rowid FROM people",
        "SELECT CAST(label AS DOUBLE) AS a FROM items",
        "SELECT CAST(pay AS BIGINT) AS a FROM people",
        "SELECT -age AS age FROM people",
        "SELECT age, row_number() OVER () AS n FROM people",
        "SELECT age FROM people UNION ALL SELECT 1000",
        "SELECT a FROM (SELECT age * 2 AS a FROM people)",
        "WITH people AS (SELECT age * 2 AS age FROM people) SELECT age FROM people",
        "WITH RECURSIVE t AS (SELECT age FROM people UNION SELECT age + 1 FROM t WHERE age < 9) "
        "SELECT age FROM t",
        "SELECT * REPLACE (age + 1 AS age) FROM people",
        "SELECT COLUMNS(lambda c: c = 'age') + 1 FROM people",
        "SELECT t.pay FROM people AS t(pay, age, name, ok), (VALUES (1)) AS u",
        "SELECT unnest FROM unnest([1, 2])",
        "SELECT * FROM (VALUES (1000)) AS t(age)",
        "SELECT CASE WHEN ok THEN 1 ELSE 1000 END AS a FROM people",
        "FROM (PIVOT people ON ok USING sum(age))",
    ],
)
def test_what_makes_numbers_is_not_known(sql):
    assert not passes(sql)


def test_intervals_go_through_sql():
    kind = mp.TableType((("a", "int64"), ("s", "string")))

    def total(x):
        kept = at("P0", lambda t: t.filter(t.s == "x")[["a"]], x)
        made = at("P0", lambda t: t.mutate(a=t.a * 2)[["a"]], x)
        return [mp.device("P0")(to_tensor)(each, rows=3) for each in (kept, made)]

    cluster = mp.ClusterSpec.simple(1)
    compiled = mp.compile(total, mp.MPType(kind, mp.Mask.of(0)), cluster_spec=cluster)
    kept, made = mp.analysis.ranges(compiled, {"x": (0, 120)}).rows[-2:]
    assert str(kept.interval) == "[0, 120]"
    assert not made.interval.known
