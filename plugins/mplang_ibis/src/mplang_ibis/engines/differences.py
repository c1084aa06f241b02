"""Table of differences: what another engine answers in another way than DuckDB.

Each row is refused while compiling, and is tested on the real engine: its example differs there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

ENGINES = ("postgresql", "spark")
"""Engines, beside DuckDB, that a catalogue may publish, and that SQL is translated for."""


class EngineAnswer(NamedTuple):
    """Difference between an engine's answer and DuckDB's.

    Attributes:
        does: what it does.
        naive: the example in its SQL, as it is often written; empty if there is none.
        example: the example in DuckDB's SQL, where it is another than that of the row.
    """

    does: str
    naive: str = ""
    example: str = ""


class DialectDifference(NamedTuple):
    """Row of the table.

    Attributes:
        what: what is refused.
        duckdb: what DuckDB answers.
        others: what engines answer, by their names; those that are not named answer as DuckDB.
        instead: how to write it.
        example: an expression in DuckDB's SQL that is refused.
        written: an expression that is not refused, and equal on the engines.
    """

    what: str
    duckdb: str
    others: Mapping[str, EngineAnswer]
    instead: str
    example: str = ""
    written: str = ""

    def reason(self, engine: str) -> str:
        """Return the reason of a refusal, for an error."""
        other = self.others.get(engine) or next(iter(self.others.values()))
        return f"{self.what}: DuckDB {self.duckdb}, {TITLES.get(engine, engine)} {other.does}"

    def example_on(self, engine: str) -> str:
        """Return an expression in DuckDB's SQL that is refused on an engine; empty if none is."""
        return self.others[engine].example or self.example if engine in self.others else ""


TITLES = {"postgresql": "PostgreSQL", "spark": "Spark"}
"""Names of the engines in sentences."""


def _row(
    what: str, duckdb: str, other: str, instead: str, example: str = "", naive: str = "",
    written: str = "",
) -> DialectDifference:  # fmt: skip
    others = {"postgresql": EngineAnswer(other, naive)}
    return DialectDifference(what, duckdb, others, instead, example, written)


_ROWS: Mapping[str, DialectDifference] = {
    "round": _row(
        "rounding of floats", "rounds halves away from zero", "rounds them to even",
        "floor(x + 0.5), or round(CAST(x AS DECIMAL(…))) of a column that is a decimal",
        "round(CAST(i AS DOUBLE) / 2)", "round(CAST(i AS float8) / 2)",
        "floor(CAST(i AS DOUBLE) / 2 + 0.5)",
    ),
    "float-to-decimal": _row(
        "floats as decimals", "rounds what the float is", "rounds its first 15 digits",
        "floor(x * 100 + 0.5) / 100, or have the owner offer a decimal",
        "CAST(g AS DECIMAL(18, 2))", "CAST(g AS numeric(18, 2))", "floor(g * 100 + 0.5) / 100",
    ),
    "float-to-text": _row(
        "floats as text", "writes 1.0", "writes 1",
        "the number as it is, or CAST(CAST(x AS BIGINT) AS VARCHAR)",
        "CAST(CAST(i AS DOUBLE) AS VARCHAR)", "CAST(CAST(i AS float8) AS text)",
        "CAST(i AS VARCHAR)",
    ),
    "text-to-value": _row(
        "text as another type", "reads 12.5 as the integer 13", "fails",
        "a column that the owner offers with that type",
        "CAST(number AS INTEGER)", "CAST(number AS integer)",
    ),
    "text-as-value": _row(
        "a text that stands for a value", "reads more ways of writing it", "reads others",
        "dates as '2024-02-29', times as '2024-02-29 12:30:00', numbers without quotes",
        "CAST('29 Feb 2024' AS DATE) > '2024-01-01'", "", "CAST('2024-02-29' AS DATE)",
    ),
    "cast": _row(
        "a cast", "has its own rules", "has others",
        "it with types that are alike, or leave it to the result",
        "CAST(ts AS VARCHAR)", "to_char(ts, 'YYYY')", "CAST(dt AS VARCHAR)",
    ),
    "try_cast": _row(
        "TRY_CAST", "gives NULL for what does not fit", "has none",
        "CASE WHEN x < … THEN CAST(…) END",
        "TRY_CAST(i AS SMALLINT)", "", "CASE WHEN i < 10 THEN CAST(i AS SMALLINT) END",
    ),
    "type": _row(
        "a type", "has more of them",
        "has no 8-bit or unsigned integers, no lists and structs",
        "SMALLINT or BIGINT", "CAST(i AS UTINYINT)", "", "CAST(i AS SMALLINT)",
    ),
    "single": _row(
        "single precision", "computes FLOAT with integers and decimals in 32 bits",
        "computes it in 64", "CAST(x AS DOUBLE)", "single * 0.1", "single * 0.1",
        "CAST(single AS DOUBLE) * 0.5",
    ),
    "mixed": _row(
        "values of several types", "casts one of them by its own rules", "has other rules",
        "a cast to the type that is meant", "text = i", "", "text = CAST(i AS VARCHAR)",
    ),
    "digits": _row(
        "decimals of more than 38 digits", "refuses or caps them", "has more digits",
        "CAST(x AS DOUBLE), or fewer digits",
    ),
    "case": _row(
        "upper and lower case", "knows all letters", "knows those of the database's locale",
        "x IN ('Abc', 'ABC'), or have the owner offer the column in lower case",
        "upper(text)", "upper(text COLLATE \"C\")", "text IN ('ä', 'Ä')",
    ),
    "ilike": _row(
        "comparison without case", "knows all letters", "knows those of the database's locale",
        "x LIKE 'abc' OR x LIKE 'Abc'", "text ILIKE 'AÉ'", "(text COLLATE \"C\") ILIKE 'AÉ'",
        "text LIKE 'aé' OR text LIKE 'AÉ'",
    ),
    "trim": _row(
        "trimming of spaces", "trims spaces of all kinds", "trims the space of ASCII",
        "trim(x, ' '), with the characters", "trim(spaced)", "trim(spaced)", "trim(spaced, ' ')",
    ),
    "substring": _row(
        "parts of text from its end", "counts negative positions from the end",
        "counts them before the beginning", "right(x, 3), substring(x, 2, 3)",
        "substring(text, -2)", "substr(text, -2)", "right(text, 2)",
    ),
    "regexp": _row(
        "regular expressions", "has those of RE2", "has those of POSIX",
        "LIKE, starts_with, contains", "regexp_matches(text, '^\\w')", "text ~ '^\\w'",
        "text LIKE 'a%'",
    ),
    "format": _row(
        "dates as text", "has strftime", "has its own formats", "year(x), month(x), CAST(x AS "
        "VARCHAR)", "strftime(dt, '%Y')", "to_char(dt, '%Y')", "year(dt)",
    ),
    "list": _row(
        "lists", "has lists", "has arrays with other rules", "a row for each element",
        "list_value(i)[1]",
    ),
    "hash": _row(
        "hashes", "hashes what it keeps", "hashes in other ways", "the value itself", "md5(text)",
    ),
    "function": _row(
        "a function", "has it", "has none that gives the same answers",
        "it by others: + - * / // %, abs, floor, ln, exp, sqrt, year, month, date_trunc, length, "
        "replace, concat, LIKE, CASE; the reference lists them", "levenshtein(text, text)",
    ),
    "float-modulo": _row(
        "% and // of non-integers", "has them of floats", "has none", "x - y * floor(x / y)",
        "f % 2", "", "floor(f / 2)",
    ),
    "field": _row(
        "a field of a time", "has more of them", "has others",
        "year, quarter, month, week, day, dayofweek, hour, minute, second of a date or time; "
        "date_diff of dates in days, months, years", "century(dt)", "", "year(dt)",
    ),
    "interval": _row(
        "intervals", "adds any, and gives days for a difference of times",
        "keeps months, days and seconds apart",
        "x + INTERVAL 3 MONTH (a constant), date_diff('day', CAST(a AS DATE), CAST(b AS DATE))",
        "ts - ts = INTERVAL 1 DAY", "", "date_diff('day', CAST(ts AS DATE), dt)",
    ),
    "first": _row(
        "one of several rows", "takes it in the order in which it reads rows",
        "reads them in another order", "min(x) or max(x)", "first(i)", "", "min(i)",
    ),
    "approximate": _row(
        "approximate counts and quantiles", "has its own sketches", "has others",
        "count(DISTINCT x), median(x)", "approx_count_distinct(i)", "", "count(DISTINCT i)",
    ),
    "median": _row(
        "the median of decimals", "rounds it to their digits", "does not",
        "median(CAST(x AS DOUBLE))", "median(d)", "percentile_cont(0.5) WITHIN GROUP (ORDER BY d)",
        "median(CAST(d AS DOUBLE))",
    ),
    "aggregate": _row(
        "an aggregate", "has it", "has none that gives the same answers",
        "count, sum, avg, min, max, stddev, variance, median, corr, covar of numbers; bool_and, "
        "bool_or", "skewness(i)", "", "stddev(i)",
    ),
    "window": _row(
        "a window", "has more functions and frames", "has others",
        "rank, dense_rank, row_number, ntile, lag, lead, first_value, sum, avg, min, max, count; "
        "frames of ROWS with constants", "nth_value(i, 2) OVER (ORDER BY i)", "",
        "lag(i, 2) OVER (ORDER BY i)",
    ),
    "window-order": _row(
        "rows in no order", "numbers them as it reads them", "reads them in another order",
        "OVER (ORDER BY …)", "row_number() OVER ()", "", "row_number() OVER (ORDER BY i)",
    ),
    "limit": _row(
        "some rows in no order", "gives the first that it reads", "reads them in another order",
        "ORDER BY … LIMIT 10",
    ),
    "distinct": _row(
        "one row of each kind", "takes the first that it reads", "reads them in another order",
        "GROUP BY with min(x) or max(x)",
    ),
    "grouping": _row(
        "several groupings at once", "has ROLLUP and CUBE", "orders and names them in other ways",
        "a query for each, joined by UNION ALL",
    ),
    "join": _row(
        "a join", "has more kinds of them", "has others",
        "JOIN, LEFT JOIN, SEMI JOIN … ON a.x = b.x",
    ),
    "condition": _row(
        "a condition", "reads numbers and texts as conditions", "takes bool", "x <> 0",
        "CASE WHEN i THEN 1 END", "", "CASE WHEN i <> 0 THEN 1 END",
    ),
    "collate": _row(
        "a collation", "has its own collations", "has others", "the order of bytes, by default",
        "text COLLATE nocase = 'a'", "", "text = 'a'",
    ),
    "text": _row("a text", "takes any character", "takes none that is NUL", "another text"),
    "name": _row("a name", "resolves it", "is asked for tables and columns that are known alone",
                 "table.column"),
    "syntax": _row("a part of the SQL", "has it", "is not known to answer in the same way",
                   "it in plain SELECT, JOIN, WHERE, GROUP BY, ORDER BY, UNION"),
    "length": _row("a long expression", "takes it", "takes long to plan it", "it in several steps"),
}  # fmt: skip
_OF_SPARK = {
    "round": EngineAnswer("rounds the digits that it shows", "ROUND(g, 2)", "round(g, 2)"),
    "float-to-decimal": EngineAnswer(
        "rounds the digits that it shows", "CAST(g AS DECIMAL(18, 2))"
    ),
    "float-to-text": EngineAnswer(
        "writes 1.0E8", "CAST(g * 100 AS STRING)", "CAST(g * 100 AS VARCHAR)"
    ),
    "text-to-value": EngineAnswer("fails", "CAST(number AS INT)"),
    "text-as-value": EngineAnswer("reads others"),
    "cast": EngineAnswer("has others"),
    "try_cast": EngineAnswer("has other rules"),
    "type": EngineAnswer("has no TIME, no unsigned integers, other lists and structs"),
    "single": EngineAnswer("computes it in 64", "single * 0.1"),
    "mixed": EngineAnswer("has other rules"),
    "digits": EngineAnswer("leaves out digits after the point"),
    "case": EngineAnswer("makes two letters of some", "UPPER(text)"),
    "ilike": EngineAnswer("makes two letters of some"),
    "trim": EngineAnswer("trims the space of ASCII", "TRIM(spaced)"),
    "substring": EngineAnswer("has other rules before the beginning"),
    "regexp": EngineAnswer("has those of Java"),
    "format": EngineAnswer("has its own formats", "DATE_FORMAT(dt, '%Y')"),
    "list": EngineAnswer("has arrays with other rules"),
    "hash": EngineAnswer("hashes in other ways"),
    "function": EngineAnswer("has none that gives the same answers"),
    "float-modulo": EngineAnswer("has no //"),
    "field": EngineAnswer("has others"),
    "interval": EngineAnswer("keeps months and seconds apart"),
    "first": EngineAnswer("reads them in another order"),
    "approximate": EngineAnswer("has others"),
    "median": EngineAnswer("does not", "MEDIAN(d)"),
    "aggregate": EngineAnswer("has none that gives the same answers"),
    "window": EngineAnswer("has others"),
    "window-order": EngineAnswer("reads them in another order"),
    "limit": EngineAnswer("reads them in another order"),
    "distinct": EngineAnswer("reads them in another order"),
    "grouping": EngineAnswer("orders and names them in other ways"),
    "join": EngineAnswer("has others"),
    "condition": EngineAnswer("takes bool"),
    "collate": EngineAnswer("has others"),
    "text": EngineAnswer("is not asked for one that is NUL"),
    "name": EngineAnswer("is asked for tables and columns that are known alone"),
    "syntax": EngineAnswer("is not known to answer in the same way"),
    "length": EngineAnswer("takes long to plan it"),
}
_OF_SPARK_ALONE = {
    "float-sum": DialectDifference(
        "a test of equality of what adds floats", "adds them in the order of rows",
        {"spark": EngineAnswer("in another one each time, so the last digits differ")},
        "< or >, or sums of decimals, as sum(CAST(x AS DECIMAL(18, 2))) of integers",
        "sum(f) = 2.5", "sum(d) = 2.5",
    ),
    "corr": DialectDifference(
        "a correlation", "is NaN for a column of one value",
        {"spark": EngineAnswer("fails", "CORR(s * 0, j)", "corr(s * 0, j)")},
        "covar_samp(x, y) / (stddev(x) * stddev(y))", "corr(i, j)",
        "covar_samp(i, j) / (stddev(i) * stddev(j))",
    ),
    "pattern": DialectDifference(
        "LIKE by a pattern that is not a constant", "takes any",
        {"spark": EngineAnswer("fails at a backslash", "text LIKE text", "text LIKE text")},
        "x LIKE 'a%', starts_with(x, y), ends_with(x, y), contains(x, y)", "text LIKE spaced",
        "starts_with(text, spaced)",
    ),
}  # fmt: skip

DIFFERENCES: Mapping[str, DialectDifference] = {
    **{
        key: row._replace(others={**row.others, "spark": _OF_SPARK[key]})
        for key, row in _ROWS.items()
    },
    **_OF_SPARK_ALONE,
}
