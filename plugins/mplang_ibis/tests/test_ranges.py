"""Which SQL passes numbers on, so that what is known of them is known of its result."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from ibis_programs import at
from mplang_ibis.ranges import selected
from mplang_tables import arrow

import mplang_core as mp

PEOPLE = mp.TableType((("age", "int64"), ("pay", "double"), ("name", "string"), ("ok", "bool")))
ITEMS = mp.TableType((("id", "int64"), ("label", "string")))
MADE = {"age": "BIGINT", "pay": "DOUBLE", "name": "VARCHAR", "ok": "BOOLEAN"}


def passes(sql, gives=None):
    con = duckdb.connect()
    con.execute(f"CREATE TABLE people ({', '.join(map(' '.join, MADE.items()))})")
    con.execute("CREATE TABLE items (id BIGINT, label VARCHAR)")
    kind = arrow.type_of(con.sql(sql).to_arrow_table().schema)
    return selected(sql, (("people", PEOPLE), ("items", ITEMS)), gives or kind) is not None


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
        "SELECT people.age FROM people SEMI JOIN items ON people.age = items.id",
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
        "WITH q(name, age) AS (SELECT age, name FROM people) SELECT CAST(name AS DOUBLE) FROM q",
        "SELECT CAST(name AS DOUBLE) FROM (SELECT age, name FROM people UNION ALL BY NAME "
        "SELECT name, age FROM people)",
        "SELECT CAST(label AS DOUBLE) AS a FROM (SELECT items.* FROM people, items UNION ALL "
        "SELECT age, name FROM people)",
        "SELECT * FROM people JOIN (SELECT age, label FROM items, people) AS i USING (age)",
        "SELECT q.a FROM people, LATERAL (SELECT people.age AS a FROM items) AS q",
        "SELECT age_1 FROM (SELECT * FROM people, people AS p, (SELECT id AS age_1 FROM items))",
        "SELECT age FROM people UNION ALL SELECT pay FROM people",
        "SELECT CAST(age AS DECIMAL(3, 0)) AS a FROM people",
        "SELECT age FROM people POSITIONAL JOIN items",
        "SELECT age FROM people TABLESAMPLE 3 ROWS",
        "FROM (PIVOT people ON ok USING sum(age))",
    ],
)
def test_what_makes_numbers_is_not_known(sql):
    assert not passes(sql)


@pytest.mark.parametrize(
    ("column", "gives", "kept"),
    [
        ("age", "double", True),
        ("age", "int32", True),
        ("pay", "float", True),
        ("ok", "int64", True),
        ("age", "bool", False),
        ("pay", "decimal128(3, 0)", False),
        ("name", "double", False),
    ],
)
def test_the_cast_to_its_type_may_make_other_numbers(column, gives, kept):
    assert passes(f"SELECT {column} FROM people", mp.TableType(((column, gives),))) == kept


@pytest.mark.parametrize(
    ("fn", "known"),
    [
        (lambda t, u: t.filter(t.s == "x")[["a"]], "[-1, 120]"),
        (lambda t, u: t.filter(t.a > 3).mutate(a=t.a.cast("float64")).order_by("a"), "[-1, 120]"),
        (lambda t, u: t.mutate(a=t.a.cast("float32")), "[-1, 120]"),
        (lambda t, u: t.distinct().drop_null().limit(3), "[-1, 120]"),
        (lambda t, u: t.rename(b="a"), "[-1, 120]"),
        (lambda t, u: t.semi_join(u, "s"), "[-1, 120]"),
        (lambda t, u: t.inner_join(u, t.s == u.s)[["a", "b"]], "[-1, 120]"),
        (lambda t, u: t.union(u.rename(a="b")), "[-1, 120]"),
        (lambda t, u: t.filter(t.s.isin(u.s)), "[-1, 120]"),
        (lambda t, u: t.mutate(a=t.a * 2), "not known"),
        (lambda t, u: t.group_by("s").agg(a=t.a.sum()), "not known"),
    ],
)
def test_intervals_go_through_what_ibis_writes(fn, known):
    cluster, at_p0 = mp.ClusterSpec.simple(1), mp.Mask.of(0)
    tables = [mp.MPType(mp.TableType(((name, "int64"), ("s", "string"))), at_p0) for name in "ab"]
    compiled = mp.compile(lambda t, u: at("P0", fn, t, u), *tables, cluster_spec=cluster)
    ranges = mp.analysis.ranges(compiled, {"t": (0, 120), "u": (-1, 5)})
    assert str(ranges.rows[-1].interval) == known


@pytest.mark.parametrize(
    ("kind", "high", "fn", "least"),
    [
        ("double", 0.1, lambda t: t, 0.1),
        ("double", 0.1, lambda t: t.mutate(a=t.a.cast("float32")), float(np.float32(0.1))),
        (
            "double", 0.1, lambda t: t.mutate(a=t.a.cast("float32").cast("float64")),
            float(np.float32(0.1)),
        ),
        (
            "double", 0.1, lambda t: t.union(t.mutate(a=t.a.cast("float32").cast("float64"))),
            float(np.float32(0.1)),
        ),
        ("int64", 2**63 - 1, lambda t: t.mutate(a=t.a.cast("float64")), 2.0**63),
        ("int64", 2**24 + 1, lambda t: t.mutate(a=t.a.cast("float32")), 2**24 + 1),
    ],
)  # fmt: skip
def test_what_is_rounded_is_within_its_interval(kind, high, fn, least):
    made = mp.MPType(mp.TableType((("a", kind),)), mp.Mask.of(0))
    compiled = mp.compile(lambda t: at("P0", fn, t), made, cluster_spec=mp.ClusterSpec.simple(1))
    found = mp.analysis.ranges(compiled, {"t": (0, high)}).rows[-1].interval
    assert found.low == 0
    assert found.high >= least
    assert found.high <= least * (1 + 1e-7)
