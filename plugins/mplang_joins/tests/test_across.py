"""Queries over tables of several parties give what DuckDB gives over all tables together."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from across_parties import asked, expected, held, program_of
from secret_joining import cluster

import mplang_core as mp
from mplang_core.errors import PartyError, TraceError

PEOPLE = pa.table(
    {
        "id": ["a", "b", "c", "d", "e", None],
        "city": ["X", "Y", "X", "Y", "Z", "Z"],
        "debt": pa.array([5, -7, 11, None, 2, 100], pa.int32()),
        "pay": pa.array([Decimal(f"{n}.25") for n in (5, 10, -20, 35, 40, 1)], pa.decimal128(9, 2)),
        "region": pa.array([1, 2, 1, 2, 3, 3], pa.int64()),
    }
)
REGIONS = pa.table({"region": pa.array([1, 2, 3], pa.int64()), "zone": ["in", "out", "out"]})
SALES = pa.table(
    {
        "who": ["a", "a", "b", "x", "d", "d", "d", None],
        "price": pa.array([10, 20, 30, 40, 50, None, 70, 80], pa.int64()),
        "weight": [0.5, 1.5, None, 2.0, 0.25, 0.75, 3.0, 9.0],
        "kind": [0, 1, 1, 0, 2, 2, 0, 1],
        "order": pa.array([1, 2, 3, 4, 5, 6, 7, 8], pa.int64()),
    }
)
ORDERS = pa.table(
    {"number": pa.array([1, 2, 3, 5, 7], pa.int64()), "open": [True, False] * 2 + [True]}
)
VISITS = pa.table({"who": ["b", "d", "d", "z"], "length": pa.array([3, 4, 5, 6], pa.int64())})

DATA = {
    "bank": {
        "people": held(
            PEOPLE, {"id": 8}, values={"city": ["X", "Y", "Z"]}, ranges={"pay": (-50, 50)}
        ),
        "regions": held(REGIONS, {}, values={"zone": ["out", "in"]}),
    },
    "shop": {"sales": held(SALES, {"who": 9}, ranges={"kind": (0, 3)}), "orders": held(ORDERS, {})},
}
JOIN = "FROM {people} p JOIN {sales} s ON p.id = s.who"
ONE_ROW = """
FROM (SELECT id, min(city) AS city, max(debt) AS debt, max(pay) AS pay FROM {people} GROUP BY id) p
JOIN (SELECT who, max(price) AS top, sum(weight) AS heavy FROM {sales} GROUP BY who) t
ON p.id = t.who"""
QUERIES = {
    "a sum of a product": f"SELECT sum(p.debt * s.price) AS total {JOIN}",
    "counts": f"SELECT count(*) AS n, count(s.price) AS m, count(DISTINCT p.id) AS k {JOIN}",
    "constants": f"SELECT count(NULL) AS n, sum(3) AS a, count(1) AS m {JOIN}",
    "decimals": f"SELECT sum(p.pay * s.price) AS a, sum(p.pay) AS b {JOIN}",
    "means": f"SELECT avg(s.price) AS a, avg(p.pay) AS b, avg(s.weight) AS c {JOIN}",
    "floats": f"SELECT sum(s.weight * p.debt) AS a {JOIN}",
    "the least and the largest":
        f"SELECT min(price) AS a, max(debt) AS b, max(pay) AS c, min(weight) AS d {JOIN}",
    "the largest of groups":
        f"SELECT city, kind, max(pay) AS a, min(p.debt) AS b {JOIN} GROUP BY city, kind",
    "the largest where something holds":
        f"SELECT city, max(price) FILTER (WHERE kind = 2) AS a, count(*) AS n {JOIN} GROUP BY city "
        "HAVING min(price) < 40",
    "the largest of a left join":
        "SELECT max(debt) AS a, min(price) AS b FROM {people} p "
        "LEFT JOIN {sales} s ON p.id = s.who",
    "variances":
        "SELECT var_samp(price) AS a, stddev(pay) AS b, var_pop(debt) AS c, stddev_pop(kind) AS d, "
        f"stddev_samp(price * debt - price) AS e {JOIN}",
    "variances of groups":
        f"SELECT kind, variance(price) AS a, var_pop(debt) AS b {JOIN} GROUP BY kind ORDER BY kind",
    "a condition of several owners' columns":
        f"SELECT city, sum(top) AS a, count(*) AS n {ONE_ROW} WHERE p.debt * 4 < t.top "
        "OR p.city = 'X' GROUP BY city",
    "conditions of several owners' floats and decimals":
        f"SELECT count(*) AS n, min(debt) AS a {ONE_ROW} "
        "WHERE NOT CAST(pay AS DOUBLE) BETWEEN t.heavy AND t.heavy + 9 AND t.top - 0.75 > pay",
    "the first groups":
        f"SELECT city, kind, sum(price) AS a {JOIN} GROUP BY city, kind ORDER BY a DESC LIMIT 2",
    "the first groups by several keys":
        f"SELECT kind, max(debt) AS a, count(*) AS n {JOIN} GROUP BY kind "
        "ORDER BY a DESC NULLS LAST, kind DESC LIMIT 2",
    "the first groups of those that are left": "SELECT * FROM (SELECT city, kind, sum(price) AS a "
        f"{JOIN} GROUP BY city, kind HAVING sum(price) < 60) ORDER BY city DESC, kind LIMIT 3",
    "fewer groups than the first ones":
        f"SELECT city, count(*) AS n {JOIN} GROUP BY city ORDER BY city LIMIT 9",
    "sums of products": f"SELECT sum(p.debt * s.price - (p.debt - 3 * s.price)) AS a {JOIN}",
    "groups of both": f"SELECT city, kind, sum(price) AS a {JOIN} GROUP BY city, kind",
    "a group that is computed":
        f"SELECT floor(pay / 10) AS f, count(*) AS n {JOIN} GROUP BY floor(pay / 10)",
    "a group by CASE":
        "SELECT CASE WHEN price > 25 THEN 'high' ELSE 'low' END AS c, count(*) AS n "
        f"{JOIN} WHERE price IS NOT NULL GROUP BY 1",
    "a group by a condition":
        f"SELECT debt > 0 AS c, count(*) AS n {JOIN} WHERE debt < 9 GROUP BY 1",
    "conditions of both": f"SELECT sum(price) AS a {JOIN} WHERE city <> 'Y' AND weight > 0.4",
    "nothing matches": f"SELECT sum(price) AS a, count(*) AS n {JOIN} WHERE city = 'Z'",
    "having":
        f"SELECT city, sum(price) AS a {JOIN} GROUP BY city HAVING count(*) >= 2 AND city <> 'Z'",
    "having a sum that may be null":
        f"SELECT city, count(*) AS n {JOIN} GROUP BY city HAVING NOT (sum(debt) > 7.5)",
    "having constants of any size and on either side":
        f"SELECT city, sum(price) AS a {JOIN} GROUP BY city "
        "HAVING 99999999999999999999 > sum(price) AND 20.5 <= sum(price) AND sum(pay) <> 20.255 "
        "AND sum(pay) BETWEEN -30.123 AND 200.001",
    "having casts that change nothing":
        f"SELECT city, count(*) AS n {JOIN} GROUP BY city HAVING CAST(sum(price) AS DOUBLE) > 5.5 "
        "AND CAST(count(*) AS BIGINT) >= CAST(1 AS TINYINT) AND city = CAST('X' AS VARCHAR)",
    "having another aggregate": f"SELECT count(*) AS n {JOIN} HAVING sum(debt) < sum(price)",
    "a query within that has a WITH":
        "SELECT sum(t.top) AS a FROM {people} p JOIN (WITH x AS (SELECT who, max(price) AS top "
        "FROM {sales} GROUP BY who) SELECT * FROM x WHERE top > 20) t ON p.id = t.who",
    "USING": "WITH x AS (SELECT who AS id, price FROM {sales}) "
        "SELECT sum(price) AS a FROM {people} JOIN x USING (id)",
    "having a mean": f"SELECT city, count(*) AS n {JOIN} GROUP BY city HAVING avg(price) > 40.5",
    "in order": f"SELECT city, sum(price) AS a {JOIN} GROUP BY city ORDER BY a DESC, city",
    "tables of one party":
        "SELECT zone, sum(price) AS a FROM {people} p JOIN {regions} r ON p.region = r.region "
        'JOIN {sales} s ON p.id = s.who JOIN {orders} o ON s."order" = o.number '
        "WHERE o.open GROUP BY zone",
    "a query within":
        "SELECT city, sum(t.top) AS a FROM {people} p JOIN (SELECT who, max(price) AS top "
        "FROM {sales} GROUP BY who) t ON p.id = t.who GROUP BY city",
    "WITH": "WITH s AS (SELECT who, price FROM {sales} WHERE kind < 2) "
        "SELECT sum(price) AS a FROM {people} p JOIN s ON p.id = s.who",
    "a query within a condition": f"SELECT sum(price) AS a {JOIN} "
        "WHERE p.region IN (SELECT region FROM {regions} WHERE zone = 'out')",
    "a left join": "SELECT city, count(*) AS n, count(price) AS m, sum(price) AS a, sum(debt) AS d "
        "FROM {people} p LEFT JOIN {sales} s ON p.id = s.who AND s.kind > 0 GROUP BY city",
    "a semi join": "SELECT sum(debt) AS d FROM {people} p SEMI JOIN {sales} s ON p.id = s.who",
    "an anti join": "SELECT sum(debt) AS d, count(*) AS n FROM {people} p "
        "ANTI JOIN {sales} s ON p.id = s.who",
    "IN": "SELECT sum(debt) AS d FROM {people} "
        "WHERE id IN (SELECT who FROM {sales} WHERE kind = 1)",
    "FILTER": f"SELECT sum(price) FILTER (WHERE kind > 0 AND debt > 0) AS a {JOIN}",
    "DISTINCT": f"SELECT DISTINCT city {JOIN}",
    "a condition of what was grouped":
        f"SELECT * FROM (SELECT city, count(*) AS n {JOIN} GROUP BY city) "
        "WHERE n > 1 OR city = 'X'",
}  # fmt: skip


def in_order(rows):
    return sorted(rows, key=lambda row: [str(each) for each in row.values()])


def alike(found, right):
    assert [list(each) for each in found] == [list(each) for each in right]
    for one, other in zip(found, right, strict=True):
        for name, value in other.items():
            close = isinstance(value, float) and one[name] is not None
            assert one[name] == (pytest.approx(value, rel=1e-3, abs=1e-3) if close else value), name


LONG = {"the least and the largest", "the largest of groups", "the largest of a left join"}
"""Queries that sort along what three others sort, too, and that take half a minute."""


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(query, id=name, marks=[pytest.mark.long("it sorts thrice")] * (name in LONG))
        for name, query in QUERIES.items()
    ],
)
def test_a_query_gives_what_duckdb_gives(query):
    field = "FM128" if "var" in query else "FM64"
    found, right = asked(DATA, query, field=field), expected(DATA, query)
    if "ORDER BY" not in query:
        found, right = in_order(found), in_order(right)
    alike(found, right)


@pytest.mark.parametrize("protocol", ["ABY3", "CHEETAH"])
def test_other_protocols_give_the_same(protocol):
    query = QUERIES["groups of both"]
    alike(in_order(asked(DATA, query, protocol)), in_order(expected(DATA, query)))


def by_ibis(people, sales):
    both = people.join(sales, people.id == sales.who).filter(sales.kind < 2)
    made = both.group_by("city").agg(n=both.id.nunique(), total=both.price.sum())
    return made.filter(made.n >= 1).order_by("city")


def test_a_function_of_ibis_tables_is_a_query_too():
    data = {"bank": {"people": DATA["bank"]["people"]}, "shop": {"sales": DATA["shop"]["sales"]}}
    alike(asked(data, by_ibis), expected(data, by_ibis))


def test_three_parties_join_by_one_key():
    data = {**DATA, "lab": {"visits": held(VISITS, {"who": 5})}}
    query = (
        f"SELECT city, sum(price * length) AS a {JOIN} JOIN {{visits}} v ON v.who = p.id GROUP BY 1"
    )
    alike(in_order(asked(data, query, parties=3)), in_order(expected(data, query)))


def test_the_groups_are_a_table_at_the_party_that_has_them():
    query = (
        f"SELECT city, kind > 1 AS high, sum(pay) AS a {JOIN} GROUP BY 1, 2 ORDER BY 2 DESC, city"
    )
    with mp.Simulator(cluster(), data=DATA) as sim:
        found = mp.fetch(sim, mp.evaluate(sim, program_of(DATA, query, as_table=True)))
    alike(found.to_pylist(), expected(DATA, query))


def test_groups_that_are_secret_are_no_table_yet():
    def program():
        people, sales = mp.dataset("bank", "people"), mp.dataset("shop", "sales")
        return mp.sql("SP0", f"SELECT count(*) AS n {JOIN}", people=people, sales=sales).table()

    with mp.Simulator(cluster(), data=DATA) as sim, pytest.raises(TraceError, match="at one party"):
        mp.evaluate(sim, program)


def test_groups_show_themselves():
    query = QUERIES["having"]
    with mp.Simulator(cluster(), data=DATA) as sim:
        found = mp.fetch(sim, mp.evaluate(sim, program_of(DATA, query)))
        assert "city" in str(found)
        assert found.to_pandas().columns.tolist() == ["city", "a"]
    made = type(found)(None, ("x",), (None,), None, found.columns, found.type)
    assert str(made).startswith("JoinedG")


LARGE = {
    "two factors": (1 << 40, 1 << 40),
    "a factor that is negative": (-(1 << 35), 1 << 35),
    "many keys": (1 << 31, 1 << 30),
}


@pytest.mark.parametrize("protocol", ["SEMI2K", "ABY3"])
@pytest.mark.parametrize("large", LARGE.values(), ids=LARGE)
def test_a_sum_that_does_not_fit_is_an_error(large, protocol):
    """It wrapped, as integers on shares do, where DuckDB says that a number is out of range."""
    ids = pa.array(range(4), pa.int64())
    a, b = (pa.table({"id": ids, name: pa.array([n] * 4, pa.int64())})
            for name, n in zip("xy", large, strict=True))  # fmt: skip
    data = {"bank": {"a": held(a, {"id": 4})}, "shop": {"b": held(b, {"id": 4})}}
    query = "SELECT sum(x * y) AS s FROM {a} JOIN {b} ON {a}.id = {b}.id"
    with mp.Simulator(cluster(protocol), data=data) as sim:
        found = mp.fetch(sim, mp.evaluate(sim, program_of(data, query)))
        with pytest.raises(OverflowError, match="may not fit into 64 bits"):
            found.to_arrow()
        with pytest.raises(PartyError, match="may not fit into 64 bits"):
            mp.evaluate(sim, program_of(data, query, as_table=True))


def test_the_largest_sums_that_fit_are_right():
    ids = pa.array(range(4), pa.int64())
    a = pa.table({"id": ids, "x": pa.array([(1 << 28) - 1] * 4, pa.int64())})
    b = pa.table({"id": ids, "y": pa.array([-(1 << 27)] * 4, pa.int64())})
    data = {"bank": {"a": held(a, {"id": 4})}, "shop": {"b": held(b, {"id": 4})}}
    query = "SELECT sum(x * y) AS s FROM {a} JOIN {b} ON {a}.id = {b}.id"
    alike(asked(data, query), expected(data, query))


def test_a_variance_that_does_not_fit_is_an_error():
    """Squares are the larger ones: a number that sums hold has none that shares compute with."""
    ids = [f"p{i}" for i in range(20)]
    shop = {"b": held(pa.table({"who": ids}), {"who": 20})}
    query = "SELECT var_samp(x) AS v FROM {a} JOIN {b} ON id = who"
    for value, fits in ((1 << 22, False), (1 << 18, True)):
        numbers = pa.array([value * (i % 2) for i in range(20)], pa.int64())
        data = {"bank": {"a": held(pa.table({"id": ids, "x": numbers}), {"id": 20})}, "shop": shop}
        if fits:
            alike(asked(data, query, field="FM128"), expected(data, query))
        else:
            with pytest.raises(OverflowError, match="may not fit"):
                asked(data, query, field="FM128")


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.uint16(), pa.decimal128(18, 2)])
def test_squares_do_not_have_to_fit_in_the_type_of_their_values(kind):
    ids = [f"p{i}" for i in range(4)]
    numbers = pa.array([100, 120, 7, 0], pa.int8()).cast(kind)
    data = {
        "bank": {"a": held(pa.table({"id": ids, "x": numbers}), {"id": 9})},
        "shop": {"b": held(pa.table({"who": ids}), {"who": 9})},
    }  # fmt: skip
    query = "SELECT var_samp(x) AS v FROM {a} JOIN {b} ON id = who"
    alike(asked(data, query, field="FM128"), expected(data, query))


@pytest.mark.parametrize("far", [0, 10**5])
def test_a_variance_of_values_that_are_close_is_right(far):
    """A mean that is rounded, squared and subtracted leaves nothing right of such values."""
    ids = [f"p{i}" for i in range(9)]
    numbers = pa.array([far + i % 2 for i in range(9)], pa.int64())
    data = {
        "bank": {"a": held(pa.table({"id": ids, "x": numbers}), {"id": 9})},
        "shop": {"b": held(pa.table({"who": ids}), {"who": 9})},
    }  # fmt: skip
    query = "SELECT var_pop(x) AS v, stddev(x) AS s FROM {a} JOIN {b} ON id = who"
    alike(asked(data, query, field="FM128"), expected(data, query))


def test_the_variance_of_equal_values_is_zero():
    """A quotient of zero on shares was a step below it."""
    ids = ["p0", "p1", "p2"]
    data = {
        "bank": {"a": held(pa.table({"id": ids, "x": [7, 7, 7]}), {"id": 9})},
        "shop": {"b": held(pa.table({"who": ids}), {"who": 9})},
    }
    query = "SELECT var_pop(x) AS v, variance(x) AS w FROM {a} JOIN {b} ON id = who"
    for _ in range(3):  # shares are rounded at random
        assert asked(data, query, field="FM128") == [{"v": 0.0, "w": 0.0}]


def test_floats_that_shares_do_not_hold_are_an_error():
    a = pa.table({"id": ["a"], "x": [1e12]})
    b = pa.table({"id": ["a"], "y": [1e12]})
    data = {"bank": {"a": held(a, {"id": 4})}, "shop": {"b": held(b, {"id": 4})}}
    query = "SELECT sum(x * y) AS s FROM {a} JOIN {b} ON {a}.id = {b}.id"
    with pytest.raises(PartyError, match="has more than 13 bits"):
        asked(data, query)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_named(wrong):
    a = pa.table({"id": ["a", "b"], "x": [wrong, 1.0]})
    data = {"bank": {"a": held(a, {"id": 4})}, "shop": {"b": held(a, {"id": 4})}}
    query = "SELECT sum({a}.x) AS s FROM {a} JOIN {b} ON {a}.id = {b}.id"
    with pytest.raises(PartyError, match=r"is NaN or infinite.*WHERE isfinite\(x\)"):
        asked(data, query)
    kept = query + " WHERE isfinite({a}.x)"
    alike(asked(data, kept), expected(data, kept))


def test_a_condition_does_not_multiply_a_sum_beyond_64_bits():
    """A sum of 2^50 was compared times 10^4, which is below zero in 64 bits."""
    ids = pa.array(["a", "b"])
    a = pa.table({"id": ids, "x": pa.array([1 << 50, 1], pa.int64())})
    b = pa.table({"id": ids, "y": pa.array([1, 1], pa.int64())})
    data = {"bank": {"a": held(a, {"id": 4})}, "shop": {"b": held(b, {"id": 4})}}
    query = "SELECT count(*) AS n FROM {a} a JOIN {b} b ON a.id = b.id HAVING sum(x) > 0.0001"
    alike(asked(data, query), expected(data, query))


def test_the_least_integer_is_an_error():
    """Its absolute value is itself, so it was taken for one that fits."""
    a = pa.table({"id": ["a"], "x": pa.array([-(1 << 63)], pa.int64())})
    b = pa.table({"id": ["a"], "y": pa.array([1], pa.int64())})
    data = {"bank": {"a": held(a, {"id": 4})}, "shop": {"b": held(b, {"id": 4})}}
    query = "SELECT sum(x) AS s FROM {a} a JOIN {b} b ON a.id = b.id"
    with pytest.raises(PartyError, match="has more than 62 bits"):
        asked(data, query, field="FM128")


@pytest.mark.filterwarnings("ignore::mplang_core.errors.PrecisionWarning")  # on a simulator alone
@pytest.mark.parametrize(("field", "value"), [("FM64", 10**7), ("FM128", 10**13)])
def test_a_mean_that_shares_do_not_divide_right_is_an_error(field, value):
    """It was told, and wrong: a quotient is a product with a reciprocal, which the field bounds."""
    ids = [f"p{i}" for i in range(60)]
    a = pa.table({"id": ids, "x": pa.array([value + i for i in range(60)], pa.int64())})
    data = {
        "bank": {"a": held(a, {"id": 64})},
        "shop": {"b": held(pa.table({"who": ids}), {"who": 64})},
    }  # fmt: skip
    query = "SELECT avg(x) AS m FROM {a} JOIN {b} ON id = who"
    with pytest.raises(OverflowError, match="may not fit"):
        asked(data, query, field=field)
    smaller = query.replace("avg(x)", "avg(x // 1000)")
    alike(asked(data, smaller, field=field), expected(data, smaller))
