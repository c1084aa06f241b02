"""Queries over the rows of several owners, one below the other, give what DuckDB gives."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from across_parties import asked, compiled, expected, held
from test_across import alike, in_order

import mplang_core as mp
from mplang_core.errors import PartyError, TraceError


def rows(count, step):
    schema = pa.schema(
        [("g", pa.string()), ("x", pa.int32()), ("d", pa.decimal128(7, 2)), ("f", pa.float64())]
    )
    columns = {
        "g": [["u", "v", "w"][i * step % 3] for i in range(count)],
        "x": [None if i % 4 == 0 else i * step - 5 for i in range(count)],
        "d": [Decimal(i).scaleb(-2) for i in range(count)],
        "f": [i / 7 for i in range(count)],
    }
    return pa.table(columns, schema=schema)


DATA = {
    "bank": {"one": held(rows(9, 1), {}, values={"g": ["u", "v", "w"]})},
    "shop": {"two": held(rows(14, 2), {}, values={"g": ["v", "w", "u", "z"]})},
    "lab": {"three": held(rows(0, 1), {}, values={"g": ["u"]})},
}
BOTH = "(SELECT * FROM {one} WHERE x > -3 OR x IS NULL UNION ALL SELECT * FROM {two})"
QUERIES = {
    "aggregates of groups":
        "SELECT g, sum(x) AS a, count(*) AS n, avg(x) AS m, min(x) AS lo, max(d) AS hi, "
        f"sum(f) AS f FROM {BOTH} GROUP BY g",
    "conditions and FILTER":
        "SELECT sum(d * 2) AS a, count(x) AS n, max(x) FILTER (WHERE g = 'u') AS h "
        f"FROM {BOTH} WHERE d < 0.09",
    "variances": f"SELECT g, var_samp(x) AS a, stddev_pop(d) AS s FROM {BOTH} GROUP BY g",
    "having": f"SELECT g, count(*) AS n FROM {BOTH} GROUP BY g HAVING count(*) > 6",
    "the first groups": f"WITH a AS {BOTH} SELECT g, count(*) AS n FROM a GROUP BY g "
        "ORDER BY n DESC, g LIMIT 2",
    "groups that are computed":
        f"SELECT x > 2 AS big, count(*) AS n FROM {BOTH} WHERE x IS NOT NULL GROUP BY 1",
    "other names, and expressions":
        "SELECT k, sum(y) AS a FROM (SELECT g AS k, x * 2 AS y FROM {one} UNION ALL "
        "SELECT g, x FROM {two} WHERE f > 0.5) WHERE k IN ('u', 'z') GROUP BY k",
}  # fmt: skip
REFUSED = {
    "a union of different rows":
        ("SELECT count(*) AS n FROM (SELECT * FROM {one} UNION SELECT * FROM {two})", "clause"),
    "a limit of rows": (
        "SELECT sum(x) AS n FROM (SELECT x FROM {one} UNION ALL SELECT x FROM {two} LIMIT 3)",
        "clause",
    ),
    "columns by name": (
        "SELECT sum(x) AS n FROM (SELECT g, x FROM {one} UNION ALL BY NAME SELECT x, g FROM {two})",
        "clause",
    ),
    "a condition by rows of another party": (
        "SELECT sum(x) AS n FROM (SELECT x FROM {one} WHERE x IN (SELECT x FROM {three}) "
        "UNION ALL SELECT x FROM {two})", "condition",
    ),
    "different keys": (f"SELECT count(DISTINCT g) AS n FROM {BOTH}", "distinct"),
    "a median": (f"SELECT median(x) AS n FROM {BOTH}", "function"),
    "an aggregate below": (
        "SELECT sum(n) AS n FROM (SELECT count(*) AS n FROM {one} UNION ALL "
        "SELECT x FROM {two})", "nested",
    ),
    "numbers of two scales": (
        "SELECT sum(y) AS n FROM (SELECT d AS y FROM {one} UNION ALL SELECT x FROM {two})", "column"
    ),
    "groups that nobody publishes": (f"SELECT d, count(*) AS n FROM {BOTH} GROUP BY d", "groups"),
}  # fmt: skip


@pytest.mark.parametrize("name", QUERIES)
def test_it_gives_what_duckdb_gives(name):
    found, right = (
        asked(DATA, QUERIES[name], parties=3, field="FM128"),
        expected(DATA, QUERIES[name]),
    )
    if "ORDER BY" not in QUERIES[name]:
        found, right = in_order(found), in_order(right)
    alike(found, right)


@pytest.mark.long("twenty seconds")
def test_three_owners():
    query = QUERIES["aggregates of groups"].replace(
        "FROM {two}", "FROM {two} UNION ALL SELECT * FROM {three}"
    )
    found = asked(DATA, query, "ABY3", parties=3)
    alike(in_order(found), in_order(expected(DATA, query)))


@pytest.mark.parametrize("name", REFUSED)
def test_what_owners_cannot_add_up_is_refused(name):
    query, reason = REFUSED[name]
    with pytest.raises(TraceError, match=f"the query cannot run: {reason}: "):
        compiled(DATA, query, parties=3)


def test_a_match_is_of_joined_tables():
    with pytest.raises(TraceError, match="tables: a match joins tables of two parties"):
        compiled(DATA, QUERIES["having"], parties=3, match="psi")


def test_a_group_that_no_owner_publishes_ends_the_run():
    data = {**DATA, "bank": {"one": held(rows(9, 1), {}, values={"g": ["u", "v"]})}}
    data["shop"] = {"two": held(rows(14, 2), {}, values={"g": ["v", "u"]})}
    with pytest.raises(PartyError, match="published"):
        asked(data, QUERIES["having"], parties=3)


def test_nothing_is_told_but_the_result():
    rows = mp.analysis.disclosure(compiled(DATA, QUERIES["having"], parties=3)).rows
    told = {row.what for row in rows if row.discloses}
    assert told == {"move", "reveal", "result", "failure"}
