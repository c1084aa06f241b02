"""SQL whose work has no bound by the rows of its tables."""

from __future__ import annotations

import ibis
import pytest
from mplang_ibis.unbounded import work_of

X = ibis.table({"id": "int64", "pay": "float64", "city": "string"}, name="x")
Y = ibis.table({"id": "int64", "amount": "float64", "city": "string"}, name="y")

BOUNDED = {
    "filter": X.filter(X.pay > X.id),
    "join": X.join(Y, "id"),
    "join, filter, group": X.join(Y, X.id == Y.id)
    .filter(lambda r: r.amount > 3)
    .group_by("city")
    .agg(m=lambda r: r.pay.mean()),
    "join by two": X.join(Y, [X.id == Y.id, X.city == Y.city.lower(), X.pay > 3]),
    "semi": X.semi_join(Y, "id"),
    "anti": X.anti_join(Y, X.id == Y.id),
    "left": X.left_join(Y, "id"),
    "outer": X.outer_join(Y, "id"),
    "in": X.filter(X.id.isin(Y.id)),
    "mean": X.filter(X.pay > X.pay.mean()),
    "mean of another": X.filter(X.pay > Y.amount.mean().as_scalar()),
    "one row": X.cross_join(Y.agg(a=Y.amount.mean())),
    "nearest": X.asof_join(Y, X.pay >= Y.amount),
    "window": X.mutate(r=ibis.row_number().over(group_by="city", order_by="pay")),
    "like": X.filter(X.city.like("%a%b%c%")),
    "like one": X.filter(X.city.like("a_b%")),
    "like in any case": X.filter(X.city.ilike("%a_b%")),
    "contains": X.filter(X.city.contains("a"), X.city.startswith("b"), X.city.find("c") > 1),
    "regex": X.filter(X.city.re_search(r"^(\w+|\d{8}(-\d{4}){3}-\d{12})$")),
    "replaced": X.mutate(s=X.city.re_replace(r"[^a-z]+", ""), t=X.city.replace("a", "b")),
    "words": X.mutate(s=X.city.re_replace("foo|bar", ""), t=X.city.split(",")[0]),
    "texts of numbers": X.mutate(s=X.id.cast("string").cast("int64").cast("string") + "!"),
    "list": X.join(Y, "id").group_by("city").agg(l=lambda r: r.pay.collect()).order_by("city"),
    "moving mean": X.mutate(r=X.pay.mean().over(ibis.window(preceding=6, order_by="id"))),
    "median of a group": X.mutate(r=X.pay.median().over(group_by="city")),
    "parts": X.mutate(s=X.city.split(",").join(";")),
    "union": X[["id"]].union(Y[["id"]]).distinct(),
    "top": X.order_by(X.pay.desc()).limit(3),
}
UNBOUNDED = {
    "cross join": X.cross_join(Y),
    "inequality": X.join(Y, X.pay < Y.amount),
    "equality and inequality": X.join(Y, [X.id == Y.id, X.pay < Y.amount]),
    "filter above": X.join(Y, X.id == Y.id).filter(lambda r: r.pay < r.amount),
    "semi": X.semi_join(Y, X.pay < Y.amount),
    "repeat": X.mutate(s=X.city.repeat(X.id)),
    "pad": X.mutate(s=X.city.lpad(X.id, "x")),
    "unnest": X.select(z=X.city.split(",").unnest()),
    "texts": X.mutate(s=X.city.repeat(1000).repeat(1000)),
    "texts of a filter": X.filter(X.city.repeat(1000).lpad(5000, "x").length() > 3),
    "texts that are replaced": X.mutate(s=X.city.replace("e", "x" * 100).replace("x", "e" * 100)),
}
SQL = [
    "SELECT * FROM x, y WHERE x.id = y.id AND x.pay < y.amount",
    "SELECT * FROM x JOIN y ON true",
    "SELECT * FROM x JOIN y ON x.id = x.id",
    "SELECT * FROM x JOIN y ON id = amount",  # perhaps both of one of them
    "SELECT * FROM x JOIN y ON x.id = y.id JOIN x z ON x.id = y.id",
    "SELECT * FROM x JOIN y ON x.id = y.id OR x.pay < y.amount",
    "SELECT * FROM x JOIN y ON x.id + y.id = 3",
    "SELECT x.id FROM x LEFT JOIN y ON x.id = y.id WHERE x.pay < y.amount",
    "WITH j AS (SELECT x.pay p, y.amount q FROM x JOIN y ON x.id = y.id) "
    "SELECT * FROM j WHERE p < q",
    "SELECT (SELECT count(*) FROM y WHERE y.amount < x.pay) FROM x",
    "SELECT * FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.amount < x.pay)",
    "SELECT * FROM x, LATERAL (SELECT count(*) c FROM y WHERE y.amount < x.pay) z",
    "SELECT id FROM x WHERE pay < ANY (SELECT y.amount FROM y)",
    "SELECT unnest(generate_series(1, id)) FROM x",
    "SELECT string_agg(city, ',') OVER (ORDER BY id) FROM x",
    "SELECT count(*) FROM x GROUP BY CUBE (id, pay, city, id + 1, pay + 1)",
    "WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r, x WHERE n < pay) "
    "SELECT * FROM r",
    "WITH a0 AS (SELECT * FROM x), "
    + ", ".join(f"a{i + 1} AS (SELECT * FROM a{i} UNION ALL SELECT * FROM a{i})" for i in range(9))
    + " SELECT * FROM a9",
    "SELECT * FROM x WHERE city LIKE '%a_%b'",
    "SELECT * FROM x WHERE city NOT LIKE '%a_%b'",
    "SELECT * FROM x WHERE city LIKE ('%a' || city)",
    "SELECT * FROM x WHERE city LIKE '%a%b' ESCAPE '$'",
    "SELECT * FROM x WHERE NOT city ILIKE '%a%b'",
    "SELECT * FROM x WHERE city COLLATE NOCASE LIKE '%a%b'",
    "SELECT * FROM (SELECT city COLLATE NOCASE AS c FROM x) WHERE c LIKE '%a%b'",
    "SELECT * FROM x WHERE city GLOB '*a*b'",
    "SELECT * FROM x WHERE city SIMILAR TO pay",
    "SELECT * FROM x WHERE regexp_matches(city, city)",
    "SELECT * FROM x WHERE regexp_matches(city, '.*(.|a){900}(.|a){900}b')",
    "SELECT regexp_replace(city, 'a*b|a', '', 'g') FROM x",
    "SELECT regexp_split_to_array(city, 'a(a*b)?') FROM x",
    "SELECT contains(city, city) FROM x",
    "SELECT replace(city, city, '') FROM x",
    "SELECT position(city IN city) FROM x",
    f"SELECT contains(city, '{'a' * 2000}') FROM x",
    "SELECT city @> city FROM x",
    "SELECT count(*) FROM x CROSS JOIN (SELECT y.id, count(*) AS n FROM y GROUP BY ALL) AS c",
    "SELECT * FROM x WHERE list_contains((SELECT list(y.id) FROM y), x.id)",
    "SELECT x.id FROM x JOIN (SELECT city, list(id) AS l FROM y GROUP BY city) AS g "
    "ON x.city = g.city WHERE list_contains(g.l, x.id)",
    "WITH l AS (SELECT list(y.id) AS l FROM y) SELECT * FROM x, l",
    "SELECT list_contains(max(l) OVER (), id) FROM (SELECT id, NULL AS l FROM x UNION ALL "
    "SELECT NULL, list(y.id) FROM y)",
    "SELECT mad(pay) OVER (ORDER BY id) FROM x",
    "SELECT count(DISTINCT pay) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING EXCLUDE GROUP) FROM x",
    "SELECT sum(pay) OVER (ORDER BY id ROWS id PRECEDING) FROM x",
    "SELECT length(" + "CAST(str_split(" * 4 + "city" + ", '') AS VARCHAR)" * 4 + ") FROM x",
    "SELECT length("
    + "array_to_string(str_split(" * 2
    + "city"
    + f", ''), '{'-' * 63}')" * 2
    + ") FROM x",
    "SELECT array_to_string(str_split(city, ''), repeat('-', 63)) FROM x",
    "SELECT string_agg(city, repeat('-', 5000)) FROM x",
    "SELECT length(" + "encode(CAST(" * 4 + "city" + " AS VARCHAR))" * 4 + ") FROM x",
    "SELECT length(" + "CAST(CAST(" * 4 + "city" + " AS BLOB) AS VARCHAR)" * 4 + ") FROM x",
    "SELECT length(" + "concat_ws(" * 4 + "city" + ", 1, 2, 3, 4)" * 4 + ") FROM x",
    "WITH a AS (SELECT id FROM x GROUP BY CUBE (id, pay, city)), "
    "b AS (SELECT id FROM a GROUP BY CUBE (id, id + 1, id + 2)), "
    "c AS (SELECT id FROM b GROUP BY CUBE (id, id + 1, id + 2)) "
    "SELECT id FROM c GROUP BY CUBE (id, id + 1)",
    "not SQL",
]


def is_unbounded(sql):
    return work_of(sql).is_unbounded


def multiplies(sql):
    return work_of(sql).multiplies


@pytest.mark.parametrize("name", BOUNDED)
def test_what_analysts_write_is_bounded(name):
    assert not is_unbounded(ibis.to_sql(BOUNDED[name], dialect="duckdb"))


@pytest.mark.parametrize("name", UNBOUNDED)
def test_products_of_rows_and_generators_are_not(name):
    assert is_unbounded(ibis.to_sql(UNBOUNDED[name], dialect="duckdb"))


@pytest.mark.parametrize("sql", SQL)
def test_nor_are_they_by_another_way_to_write_them(sql):
    assert is_unbounded(sql)


def test_what_gives_at_most_what_it_reads_does_not_multiply():
    """Of others, one after the other, a program has few."""
    found = {k for k, e in BOUNDED.items() if not multiplies(ibis.to_sql(e, dialect="duckdb"))}
    assert found == {
        *("filter", "window", "top", "like", "like one", "like in any case", "contains", "regex"),
        *("moving mean", "median of a group"),
    }  # the others read two tables, or one twice, or make texts longer
    assert multiplies("SELECT city || city AS c FROM x")
    assert multiplies("SELECT upper(hex(city)) AS c FROM x")
    assert multiplies("SELECT count(*) FROM x GROUP BY CUBE (id, pay)")
