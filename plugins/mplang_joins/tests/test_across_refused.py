"""What cannot be asked of tables of several parties is refused while compiling, with a reason."""

from __future__ import annotations

import pytest
from across_parties import compiled, held
from mplang_joins.across.refused import REASONS
from test_across import DATA, JOIN, ONE_ROW, PEOPLE, SALES

from mplang_core.errors import TraceError

REFUSED = {
    "no aggregate": {
        "rows": (f"SELECT city, price {JOIN}", "aggregate them"),
    },
    "no key": {
        "a join by no key": (
            "SELECT sum(debt) AS a FROM {people} p JOIN {sales} s ON p.debt < s.price",
            "no equal columns",
        ),
        "no join": ("SELECT sum(debt * price) AS a FROM {people}, {sales}", "no equal columns"),
    },
    "join": {
        "a full join": (
            "SELECT sum(debt) AS a FROM {people} p FULL JOIN {sales} s ON p.id = s.who",
            "inner, left, semi and anti",
        ),
        "a condition of what a left join adds": (
            "SELECT count(*) AS n FROM {people} p LEFT JOIN {sales} s ON p.id = s.who "
            "WHERE s.price IS NULL",
            "stands in its ON",
        ),
        "groups of what a left join adds": (
            "SELECT kind, count(*) AS n FROM {people} p LEFT JOIN {sales} s ON p.id = s.who "
            "GROUP BY kind",
            "what a left join keeps",
        ),
    },
    "condition": {
        "of a left join": (
            "SELECT count(*) AS n FROM (SELECT DISTINCT id, debt FROM {people}) p LEFT JOIN (SELECT"
            " who, max(price) AS top FROM {sales} GROUP BY who) t ON p.id = t.who AND debt < top",
            "by equal columns",
        ),
        "of rows that are not one of a key": (
            "SELECT count(*) AS n FROM (SELECT DISTINCT id, debt FROM {people}) p JOIN (SELECT who,"
            " max(price) AS top FROM {sales} GROUP BY who) t ON p.id = t.who WHERE debt < top",
            "join (SELECT key, max(x) AS x FROM t GROUP BY key)",
        ),
        "of keys, in two units": (f"SELECT count(*) AS n {ONE_ROW} WHERE debt > heavy", "one unit"),
        "of keys, that computes": (
            f"SELECT count(*) AS n {ONE_ROW} WHERE debt - top > 3", "with a number of another"
        ),
        "of both": (f"SELECT sum(price) AS a {JOIN} WHERE debt > price", "of rows of several"),
        "of groups, in two units": (
            f"SELECT city, sum(price) AS a {JOIN} GROUP BY city HAVING sum(price) > sum(pay)",
            "in one unit",
        ),
        "of groups, that rounds": (
            f"SELECT city {JOIN} GROUP BY city HAVING CAST(avg(price) AS INTEGER) > 2",
            "comparisons of aggregates",
        ),
        "of groups, with a constant that is rounded": (
            f"SELECT city {JOIN} GROUP BY city HAVING count(*) > CAST(2.6 AS INTEGER)",
            "comparisons of aggregates",
        ),
        "of groups, as a bool": (
            f"SELECT city {JOIN} GROUP BY city HAVING CAST(sum(debt) AS BOOLEAN) = true",
            "comparisons of aggregates",
        ),
        "of rows that are several": (
            "SELECT count(*) AS n FROM (SELECT id, unnest([max(debt), 3]) AS debt FROM {people} "
            "GROUP BY id) p JOIN (SELECT who, max(price) AS top FROM {sales} GROUP BY who) t "
            "ON p.id = t.who WHERE debt < top",
            "one row of a key",
        ),
        "by a number of the other party": (
            "SELECT count(*) AS n FROM (SELECT DISTINCT id FROM {people}) p JOIN {sales} s "
            "ON p.id = s.who WHERE p.id < (SELECT max(who) FROM {sales})",
            "",
        ),
        "of groups, that computes": (
            f"SELECT city, sum(price) AS a {JOIN} GROUP BY city HAVING sum(price) % 2 = 0",
            "comparisons of aggregates",
        ),
    },
    "expression": {
        "a quotient of both": (f"SELECT sum(price / debt) AS a {JOIN}", "added, subtracted"),
        "a quotient of aggregates": (
            f"SELECT sum(price) / count(*) AS a {JOIN}", "compute with these"
        ),
        "a group of both": (
            f"SELECT debt > price AS c, count(*) AS n {JOIN} GROUP BY 1", "one party's columns"
        ),
        "rounding": (f"SELECT CAST(sum(pay) AS BIGINT) AS a {JOIN}", "would be rounded"),
    },
    "function": {
        "a median": (f"SELECT median(price) AS a {JOIN}", "sum, count"),
        "a window": (f"SELECT sum(price) OVER () AS a {JOIN}", "no windows"),
    },
    "distinct": {
        "of no key": (f"SELECT count(DISTINCT kind) AS n {JOIN}", "of the key alone"),
        "of the key of what a left join adds": (
            "SELECT count(DISTINCT s.who) AS n FROM {people} p LEFT JOIN {sales} s ON p.id = s.who",
            "of the key alone",
        ),
        "a sum": (f"SELECT sum(DISTINCT price) AS n {JOIN}", "DISTINCT key"),
    },
    "clause": {
        "LIMIT without groups": (
            f"SELECT sum(debt) AS a {JOIN} ORDER BY a LIMIT 1", "leave LIMIT out"
        ),
        "LIMIT without an order": (
            f"SELECT city, sum(debt) AS a {JOIN} GROUP BY city LIMIT 1", "write ORDER BY"
        ),
        "a limit": (f"SELECT city, sum(price) AS a {JOIN} GROUP BY city LIMIT 2", "LIMIT"),
        "a union": (
            "SELECT sum(debt) AS a FROM {people} UNION ALL SELECT sum(price) FROM {sales}", "UNION"
        ),
        "rollup": (f"SELECT city, sum(price) AS a {JOIN} GROUP BY ROLLUP (city)", "ROLLUP"),
        "an order by what nobody gets": (
            f"SELECT city {JOIN} GROUP BY city ORDER BY sum(price)", "columns of the result"
        ),
    },
    "nested": {
        "rows of both within": (
            "SELECT sum(a) AS a FROM (SELECT DISTINCT debt * price AS a "
            f"{JOIN}) t",
            "",
        ),
        "NOT IN": (
            "SELECT sum(debt) AS a FROM {people} WHERE id NOT IN (SELECT who FROM {sales})",
            "ANTI JOIN",
        ),
        "EXISTS": (
            "SELECT sum(debt) AS a FROM {people} p "
            "WHERE EXISTS (SELECT 1 FROM {sales} s WHERE s.who = p.id)",
            "SEMI JOIN",
        ),
    },
    "groups": {
        "no published values": (
            f"SELECT weight, count(*) AS n {JOIN} GROUP BY weight", "publish values: or ranges:"
        ),
    },
    "column": {
        "too many digits behind the point": (
            "SELECT sum(CAST(p.pay AS DECIMAL(18, 10)) * CAST(s.price AS DECIMAL(18, 10))) AS a "
            "FROM {people} p JOIN {sales} s ON p.id = s.who",
            "20 digits behind the point",
        ),
        "a variance of floats": (f"SELECT stddev(weight) AS b {JOIN}", "to a DECIMAL"),
        "a decimal times a float": (f"SELECT sum(pay * weight) AS b {JOIN}", "cast it to DOUBLE"),
    },
    "tables": {
        "of one party": (
            "SELECT count(*) AS n FROM {people} p JOIN {regions} r ON p.region = r.region",
            "all its tables are of one party",
        ),
    },
}  # fmt: skip
CASES = {
    f"{reason}: {name}": (reason, *case)
    for reason, cases in REFUSED.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize(("reason", "query", "told"), CASES.values(), ids=CASES)
def test_what_cannot_be_asked_is_refused_with_a_reason(reason, query, told):
    with pytest.raises(TraceError) as caught:
        compiled(DATA, query)
    text = str(caught.value)
    assert "SP0: the query cannot run: " in text
    found = text.partition("cannot run: ")[2].partition(":")[0]
    assert found in REASONS
    assert told in text
    assert found == reason or not told


def test_a_key_without_a_bound_is_refused():
    data = {**DATA, "shop": {"sales": held(SALES, {})}}
    with pytest.raises(TraceError, match="bound: .*keys: of that column"):
        compiled(data, f"SELECT sum(price) AS a {JOIN}")


def test_a_small_field_has_no_room_for_variances():
    with pytest.raises(TraceError, match="bound: .*take FM128"):
        compiled(DATA, f"SELECT var_samp(price) AS a {JOIN}", field="FM64")


def test_variances_choose_no_groups():
    query = f"SELECT city {JOIN} GROUP BY city HAVING var_samp(debt) > 3"
    with pytest.raises(TraceError, match="function: .*choose no groups"):
        compiled(DATA, query, field="FM128")


def test_keys_of_other_types_are_refused():
    data = {
        "bank": {"people": held(PEOPLE, {"pay": 8})}, "shop": {"sales": held(SALES, {"kind": 9})}
    }  # fmt: skip
    with pytest.raises(TraceError, match="column: the key: .* does not match"):
        compiled(data, "SELECT count(*) AS n FROM {people} p JOIN {sales} s ON p.pay = s.kind")
