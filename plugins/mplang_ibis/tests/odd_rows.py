"""A table of odd values, and expressions of it that are equal on all engines."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import pyarrow as pa
from mplang_tables import arrow

from mplang_core import TableType

NAN = float("nan")
UTC = datetime.UTC
DAY, TIME = datetime.date, datetime.datetime

COLUMNS = {
    "i": ("int64", [1, -7, None, 5, 0, 25]),
    "j": ("int32", [3, 2, 0, None, -4, 10]),
    "s": ("int16", [1, 2, 3, None, -5, 7]),
    "f": ("double", [2.5, -2.5, NAN, None, 0.125, -0.0]),
    "g": ("double", [2.675, -2.5, 1.005, None, 1e6, -0.0]),
    "single": ("float", [1.5, -2.5, 0.1, None, 3.0, 0.0]),
    "d": ("decimal128(12, 2)", ["1.25", "-7.50", None, "0.05", "0.00", "99.99"]),
    "e": ("decimal128(5, 4)", ["0.1234", "-1.5", None, "2", "0", "9.9999"]),
    "text": ("string", ["aé", "ß", "İx", None, "", "a_b\\c%"]),
    "spaced": ("string", ["\u00a0a ", " b", "", None, "c\t", "d'"]),
    "number": ("string", ["12.5", "7", " 5", None, "3", "0"]),
    "dt": (
        "date32[day]",
        [
            DAY(2024, 2, 29), DAY(1999, 12, 31), None, DAY(2024, 12, 30), DAY(1, 1, 1),
            DAY(1970, 1, 1),
        ],
    ),
    "ts": (
        "timestamp[us]",
        [
            TIME(2024, 1, 31, 23, 59, 59, 500_000), TIME(1969, 12, 31, 1), None, TIME(2000, 1, 1),
            TIME(2024, 7, 1, 12, 30, 0, 1), TIME(1900, 1, 1),
        ],
    ),
    "tz": (
        "timestamp[us, tz=UTC]",
        [TIME(2024, 1, 31, 23, 59, 59, tzinfo=UTC), None, TIME(2024, 1, 31, tzinfo=UTC)] * 2,
    ),
    "b": ("bool", [True, False, None, True, False, True]),
    "raw": ("binary", [b"a", b"\xff", None, b"", b"ab", b"c"]),
}  # fmt: skip
KIND = TableType(tuple((name, type) for name, (type, _) in COLUMNS.items()))


def _column(type, values):
    kind = arrow.schema(TableType((("x", type),))).field(0).type
    if pa.types.is_decimal(kind):
        values = [value and Decimal(value) for value in values]
    return pa.array(values, kind)


TABLE = pa.table({name: _column(*each) for name, each in COLUMNS.items()})

ROW_WISE = {
    "arithmetic": "i + 1; i * j; s + 1; s * s; i - j; -i; -d; +i; d + 1; d + i; d * d; d * e; "
    "d * 1.5; 1 - d; d - e; f + 1; f * d; i // j; i // 2; i % j; -i % 3; d % e; d % 2; "
    "j % s; mod(i, 2); sign(i) % sign(d); sign(i) // sign(j); sign(i) + sign(d)",
    "division": "i / j; d / e; f / i; i / 0; 0 / f; 1 / f; 1 / g; d / 0.5; i / 3",
    "numbers": "abs(i); abs(d); abs(f); sign(d); sign(i); round(d); round(d, 1); round(d, -1); "
    "round(e, 6); round(i); round(i, 2); floor(d); ceil(d); trunc(d); floor(f); ceil(f); trunc(f); "
    "ceil(i); floor(j); i ** 2; sqrt(abs(i)); exp(d); ln(abs(i) + 1); log(abs(i) + 1); sin(f); "
    "isnan(f)",
    "choices": "greatest(i, j, 1); least(d, 0); greatest(text, 'b'); nullif(i, 0); nullif(d, 0); "
    "coalesce(d, 0); coalesce(i, 0.5); coalesce(text, 'x'); coalesce(s, 0); "
    "CASE WHEN b THEN i WHEN i > 3 THEN 2.5 END; CASE WHEN b THEN 1 ELSE d END; "
    "CASE WHEN b THEN 'x' ELSE text END; CASE WHEN b THEN f ELSE d END; if(b, i, j)",
    "casts": "CAST(g AS BIGINT); CAST(d AS BIGINT); CAST(d AS DECIMAL(10, 1)); CAST(i AS DOUBLE); "
    "CAST(d AS DOUBLE); CAST(i AS VARCHAR); CAST(d AS VARCHAR); CAST(dt AS VARCHAR); "
    "CAST(b AS VARCHAR); CAST(b AS BIGINT); CAST(i AS BOOLEAN); CAST(single AS DOUBLE); "
    "CAST(i AS HUGEINT); CAST(dt AS TIMESTAMP); CAST(ts AS DATE); CAST(ts AS TIMESTAMPTZ); "
    "CAST(tz AS TIMESTAMP); CAST(tz AS DATE); CAST(j AS SMALLINT); CAST('2024-02-29' AS DATE)",
    "comparisons": "i = j; i < d; d >= e; f > 1; f = 'nan'::double; f > 'inf'::double; text < 'b'; "
    "text = 'ß'; text >= spaced; dt = '2024-02-29'; dt < ts; ts < tz; b = true; i IS NULL; NOT b; "
    "i IN (1, 5); d IN (1.25, 2); text IN ('a', 'ß'); i NOT IN (1, 2); i BETWEEN 0 AND 5; "
    "text BETWEEN 'a' AND 'b'; i IS DISTINCT FROM j; b AND i > 0; b OR i > 0; raw = raw; NULL = i",
    "texts": "length(text); strlen(text); text || 'x'; concat(text, '-', spaced); "
    "replace(text, 'a', 'bb'); replace(text, '', 'z'); text LIKE 'a%'; text LIKE '_é'; "
    "text LIKE 'a_b\\\\%'; text LIKE 'a\\_b%'; text NOT LIKE '%x'; text LIKE 'a!_b%' ESCAPE '!'; "
    "substring(text, 1, 1); substr(text, 2); left(text, 1); right(text, 2); trim(text, 'a'); "
    "ltrim(text, 'aé'); rtrim(text, '%c'); strpos(text, 'b'); contains(text, 'b'); "
    "starts_with(text, 'a'); ends_with(text, 'x'); starts_with(text, ''); ends_with(text, ''); "
    "spaced = 'd'''; length('it''s a ''{0}'' % s \\\\')",
    "times": "year(dt); month(dt); day(dt); quarter(dt); week(dt); dayofweek(dt); isodow(dt); "
    "dayofyear(dt); isoyear(dt); hour(ts); minute(ts); second(ts); extract(year from ts); "
    "extract(year from tz); extract(hour from tz); hour(dt); date_trunc('month', dt); "
    "date_trunc('week', ts); date_trunc('quarter', dt); date_trunc('hour', tz); "
    "date_trunc('year', dt)::date; dt + 1; dt + abs(j); dt - dt; dt - '2000-01-01'::date; "
    "dt + INTERVAL 1 MONTH; dt + INTERVAL '3' MONTH; ts + INTERVAL 36 HOUR; tz + INTERVAL 1 DAY; "
    "ts - INTERVAL 1 YEAR; INTERVAL 1 DAY + dt; date_diff('day', dt, date '2024-03-01'); "
    "date_diff('month', dt, date '2024-03-01'); date_diff('year', dt, date '2024-03-01'); "
    "make_date(2024, 2, 29)",
}
"""Expressions of one row, by what they are about."""

AGGREGATES = (
    "sum(i); sum(d); sum(f) FILTER (WHERE b); sum(j); sum(single); avg(i); avg(d); avg(j); "
    "avg(e); min(i); max(d); min(f); max(f); min(text); max(text); min(b); max(b); bool_and(b); "
    "bool_or(b); count(*); count(i); count(DISTINCT text); sum(DISTINCT j); count_if(b); "
    "stddev(i); "
    "var_pop(d); stddev_pop(j); variance(e); median(i); median(j); corr(i, j); covar_pop(i, j); "
    "covar_samp(i, d); sum(i) FILTER (WHERE b); sum(i) + 1; sum(i) * 2; sum(i) / count(*); "
    "sum(i) // 3; sum(i) % 3; sum(d) * 0.5; sum(d) / 7.0; 100.0 * sum(d) / sum(e); 0.2 * avg(d); "
    "sum(d * (1 - e)); min(dt); max(ts); sum(i) > 3; sum(CASE WHEN b THEN 1 ELSE 0 END); max(tz); "
    "sum(0) / sum(0); CAST(sum(i) AS BIGINT); sum(i) = sum(d); count(NULL)"
)
WINDOWS = (
    "rank() OVER (ORDER BY i); rank() OVER (ORDER BY b, i DESC); "
    "dense_rank() OVER (PARTITION BY b ORDER BY d); row_number() OVER (ORDER BY i); "
    "percent_rank() OVER (ORDER BY j); cume_dist() OVER (ORDER BY text); "
    "ntile(2) OVER (ORDER BY i); lag(i) OVER (ORDER BY i); lead(d, 2, 0) OVER (ORDER BY i); "
    "first_value(text) OVER (ORDER BY i); sum(i) OVER (); sum(i) OVER (ORDER BY i); "
    "avg(d) OVER (PARTITION BY b); "
    "sum(d) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW); "
    "count(*) OVER (ORDER BY text); max(text) OVER (PARTITION BY b ORDER BY i NULLS FIRST); "
    "last_value(i) OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
)

QUERIES = [
    "SELECT text, i FROM t ORDER BY text",
    "SELECT text AS x, count(*) AS n FROM t GROUP BY x ORDER BY n DESC, 1 LIMIT 3",
    "SELECT DISTINCT b FROM t ORDER BY b DESC NULLS FIRST",
    "SELECT b, sum(i) AS i FROM t GROUP BY b HAVING count(*) > 1 ORDER BY i",
    "SELECT *, i + 1 AS k, k * 2 AS l FROM t WHERE k > 1",
    "SELECT t.i, u.j FROM t LEFT JOIN t AS u ON t.i = u.j AND u.d > 0",
    "SELECT i, u.d FROM t JOIN t AS u USING (i)",
    "SELECT a.i FROM t a SEMI JOIN t b ON a.i = b.s JOIN t c ON c.i = a.i",
    "SELECT a.i FROM t a ANTI JOIN t b ON a.i = b.s",
    "SELECT a.i, b.j FROM t a, t b WHERE a.i < b.j AND a.text < b.text",
    "SELECT a.i, b.i AS k FROM t a FULL JOIN t b ON a.i = b.s",
    "SELECT i FROM t WHERE i IN (SELECT s FROM t) OR d > (SELECT avg(d) FROM t)",
    "SELECT i FROM t WHERE NOT EXISTS (SELECT 1 FROM t AS u WHERE u.j = t.i AND u.s > t.s)",
    "SELECT i FROM t WHERE i NOT IN (SELECT j FROM t WHERE j IS NOT NULL)",
    "WITH a AS (SELECT i AS x, d FROM t), b(y) AS (SELECT max(x) FROM a) "
    "SELECT x, d, y FROM a, b WHERE x < y",
    "SELECT i FROM t UNION SELECT d FROM t ORDER BY i DESC NULLS LAST LIMIT 5 OFFSET 1",
    "SELECT text FROM t EXCEPT SELECT spaced FROM t",
    "SELECT j FROM t INTERSECT SELECT i FROM t",
    "SELECT i FROM t UNION ALL (SELECT s FROM t ORDER BY s LIMIT 2)",
    "SELECT i, j FROM t QUALIFY rank() OVER (PARTITION BY b ORDER BY i) = 1",
    "SELECT x, n FROM (SELECT b AS x, count(*) AS n FROM t GROUP BY b) AS q",
    "SELECT k, l FROM (VALUES (1, 'a'), (2, 'b')) AS v(k, l) JOIN t ON t.i = v.k",
    "SELECT t.* EXCLUDE (raw, tz) FROM t WHERE b AND i > 0",
    "SELECT sum(i) AS a, sum(sum(i)) OVER () AS b FROM t GROUP BY b",
    "SELECT i, (SELECT max(u.j) FROM t AS u WHERE u.i < t.i) AS k FROM t",
    "SELECT year(dt) AS y, sum(d) AS s FROM t GROUP BY year(dt) ORDER BY year(dt) DESC",
    "SELECT i FROM t ORDER BY j DESC, d LIMIT 2",
]


def select(expressions: str) -> str:
    """Return a query with many expressions."""
    items = [each.strip() for each in expressions.split("; ")]
    return f"SELECT {', '.join(f'{each} AS x{n}' for n, each in enumerate(items))} FROM t"


def same(a, b) -> bool:
    """Return whether two values are equal; floats in twelve digits."""
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-12)
    return a == b


def differing(mine, theirs, *, ordered=False):
    """Return the columns of two tables that differ, with their values."""
    if mine.num_rows != theirs.num_rows:
        return f"{mine.num_rows} and {theirs.num_rows} rows"
    found = [
        list(zip(*(c.to_pylist() for c in each.columns), strict=True)) for each in (mine, theirs)
    ]
    if not ordered:
        found = [sorted(each, key=repr) for each in found]
    columns = [list(zip(*each, strict=True)) for each in found]
    return [
        (name, a, b)
        for name, a, b in zip(theirs.column_names, *columns, strict=True)
        if not all(map(same, a, b))
    ]
