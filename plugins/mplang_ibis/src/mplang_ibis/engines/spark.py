"""SQL of Spark, in a session as :data:`SPARK_SETTINGS` configures it."""

from __future__ import annotations

from mplang_ibis.engines.dialect import Written, call_of, quotient, shown
from mplang_ibis.engines.expression import Expression
from mplang_ibis.engines.spark_functions import AGGREGATES, call
from mplang_ibis.engines.types import (
    BINARY,
    BOOL,
    DATE,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    INT128,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    SqlType,
    is_integer,
)

SPARK_SETTINGS = {
    "spark.sql.ansi.enabled": "true",  # what overflows is an error
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",  # digits are an error, too
    "spark.sql.variable.substitute": "false",  # ${…} is text
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.groupByOrdinal": "false",
    "spark.sql.orderByOrdinal": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.legacy.statisticalAggregate": "false",  # of one row it is NULL
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.sizeOfNull": "false",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
}
"""Options of the session on which answers depend."""

_TYPES = {
    BOOL: "BOOLEAN", INT8: "TINYINT", INT16: "SMALLINT", INT32: "INT", INT64: "BIGINT",
    INT128: "DECIMAL(38, 0)", FLOAT: "FLOAT", DOUBLE: "DOUBLE", STRING: "STRING",
    BINARY: "BINARY", DATE: "DATE", TIMESTAMP: "TIMESTAMP_NTZ", TIMESTAMPTZ: "TIMESTAMP",
}  # fmt: skip
_INFINITE = "CAST('Infinity' AS DOUBLE)"
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:;-_/()+*=")
_MAX_DAYS = 3_652_058  # from year 1 to 9999; Spark adds more days in 32 bits, which wrap
_UNITS = {"months": "MONTH", "days": "DAY", "seconds": "SECOND"}
_FIELDS = {"dow": "dayofweek", "isodow": "DAYOFWEEK_ISO", "isoyear": "YEAROFWEEK"}


class SparkDialect:
    """SQL of Spark; see :class:`mplang_ibis.engines.dialect.SqlDialect`."""

    name = "spark"
    repeats_sums = False  # tasks end in another order each time
    compares_exactly = False  # it leaves out digits if there are more than 38
    filters_windows = False

    def quoted(self, name: str) -> str:
        """Return a name in backticks."""
        return "`" + name.replace("`", "``") + "`"

    def table(self, parts: tuple[str, ...]) -> str:
        """Return a table or view with its schema: none of the session's own."""
        return ".".join(map(self.quoted, parts))

    def type_name(self, kind: SqlType) -> str | None:
        """Return the name of a type."""
        if kind.name == "decimal":
            return f"DECIMAL({kind.width}, {kind.scale})"
        return _TYPES.get(kind)

    def literal(self, value: object, kind: SqlType) -> str:
        """Return a constant, cast to its type; characters that are not plain as their numbers."""
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, str):
            return text(value)
        plain = shown(value, "+00:00" * (kind == TIMESTAMPTZ))
        return f"CAST('{plain}' AS {self.type_name(kind)})"

    def cast(self, a: Expression, kind: SqlType) -> str | None:
        """Return a cast; those to integers round first, as Spark truncates."""
        sql, name = a.sql, self.type_name(kind)
        if kind == FLOAT and not (is_integer(a.type) and a.type != INT128):
            return None  # of a double it is infinite, of decimals another one in the last digit
        if is_integer(kind) and a.type in (FLOAT, DOUBLE):
            sql = f"RINT(CAST({sql} AS DOUBLE))"
        elif is_integer(kind) and a.type.name == "decimal":
            sql = f"ROUND({sql}, 0)"
        return f"CAST({sql} AS {name})"

    def compared(self, sql: str, kind: SqlType) -> str:
        """Return floats in a function, so that no file is left out by its statistics.

        Those of Parquet do not count NaN, which is the largest number in a comparison.
        """
        return f"NANVL({sql}, CAST('NaN' AS DOUBLE))" if kind in (FLOAT, DOUBLE) else sql

    def ordered(self, sql: str, kind: SqlType) -> str:
        """Return what :meth:`compared` does: text is in the order of its bytes."""
        return self.compared(sql, kind)

    def divide(self, a: Expression, b: Expression) -> str:
        """Return the quotient of two doubles."""
        is_zero, is_minus = f"{b.sql} = 0D", f"CAST({b.sql} AS STRING) = '-0.0'"
        return quotient(a, b, _INFINITE, is_zero, is_minus)

    def divide_integers(self, a: Expression, b: Expression) -> str:
        """Return the quotient of integers; Spark's own wraps those of more than 64 bits."""
        name, divisor = self.type_name(a.type), f"NULLIF({b.sql}, {self.literal(0, b.type)})"
        if a.type == INT128:
            return f"CAST(ROUND(({a.sql} - {a.sql} % {divisor}) / {divisor}, 0) AS {name})"
        return f"CAST(({a.sql} DIV {divisor}) AS {name})"

    def modulo(self, a: Expression, b: Expression) -> str:
        """Return the remainder."""
        return f"({a.sql} % NULLIF({b.sql}, {self.literal(0, b.type)}))"

    def like(self, text: str, pattern: Expression, escape: str, *, negated: bool) -> str | None:
        """Return LIKE of a constant, whose characters Spark escapes by a backslash."""
        made = _pattern(pattern.value, escape) if isinstance(pattern.value, str) else None
        if made is None:
            return None
        return f"({text} {'NOT LIKE' if negated else 'LIKE'} {self.literal(made, STRING)})"

    def add_interval(self, a: Expression, unit: str, count: int) -> str:
        """Return a time plus an interval."""
        sql = f"CAST({a.sql} AS TIMESTAMP_NTZ)" if a.type == DATE else a.sql
        return f"({sql} + INTERVAL '{count}' {_UNITS[unit]})"

    def add_days(self, a: str, days: str) -> str:
        """Return a date plus days."""
        is_far = f"{days} > {_MAX_DAYS} OR {days} < -{_MAX_DAYS}"
        return f"CASE WHEN {is_far} THEN RAISE_ERROR('days') ELSE DATE_ADD({a}, {days}) END"

    def days_between(self, a: str, b: str) -> str:
        """Return the days between two dates."""
        return f"CAST(DATEDIFF({a}, {b}) AS BIGINT)"

    def date_part(self, field: str, a: Expression) -> str | None:
        """Return a field; Spark's days of the week begin with 1."""
        if field == "dow":
            return f"CAST(DAYOFWEEK({a.sql}) - 1 AS BIGINT)"
        if field == "second":
            return f"CAST(SECOND({a.sql}) AS BIGINT)"
        return f"CAST(EXTRACT({_FIELDS.get(field, field)} FROM {a.sql}) AS BIGINT)"

    def date_trunc(self, field: str, a: Expression) -> str:
        """Return a time truncated, in UTC, the zone of the session."""
        return f"CAST(DATE_TRUNC('{field}', {a.sql}) AS {self.type_name(a.type)})"

    def call(self, name: str, args: list[Expression]) -> str | None:
        """Return a function of one row."""
        return call(name, args)

    def aggregate(self, name: str, args: list[Expression], distinct: str) -> Written | None:
        """Return an aggregate; sums of integers have as many digits as they need."""
        if name == "count_star":
            return lambda options: f"COUNT(*){options}"
        if name == "sum_exact":
            (a,) = args
            wide = self.type_name(INT128) if is_integer(a.type) else ""
            return call_of("SUM", [_summed(a)], distinct, wide or "")
        if name == "avg" and args[0].type != DOUBLE:
            total = call_of("SUM", [_summed(args[0])], distinct, "DOUBLE")
            count = call_of("COUNT", args, distinct)
            return lambda options: f"({total(options)} / NULLIF({count(options)}, 0L))"
        if name == "count_if":
            counted = args[0]._replace(sql=f"NULLIF({args[0].sql}, FALSE)")
            return call_of("COUNT", [counted], distinct, "DECIMAL(38, 0)")
        if name in ("stddev_samp", "stddev_pop", "var_samp", "var_pop"):
            made = call_of(name.upper(), args)
            return lambda options: _finite(made(options))
        return call_of(name.upper(), args, distinct) if name in AGGREGATES else None


def text(value: str) -> str:
    r"""Return a constant text, in ASCII, without a quote or backslash in it.

    Example:
        >>> text("it's ä")
        "'it\\u0027s \\u00e4'"
    """
    return "'" + "".join(each if each in _PLAIN else _escaped(each) for each in value) + "'"


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"


def _pattern(text: str, escape: str) -> str | None:
    """Return a pattern of LIKE whose escape character is a backslash; ``None`` if it is none."""
    made, characters = "", iter(text)
    for each in characters:
        if escape and each == escape:
            literal = next(characters, None)
            if literal is None:
                return None
            made += f"\\{literal}" if literal in "%_\\" else literal
        else:
            made += "\\\\" if each == "\\" else each
    return made


def _summed(a: Expression) -> Expression:
    """Return what is added, in a type in which sums do not overflow where they might fit."""
    kind = {INT64: "DECIMAL(19, 0)", INT128: ""}.get(a.type, "BIGINT" if is_integer(a.type) else "")
    return a._replace(sql=f"CAST({a.sql} AS {kind})") if kind else a


def _finite(sql: str) -> str:
    """Return a number that is finite, or an error, as DuckDB has it; NaN is the largest."""
    is_infinite = f"ABS({sql}) >= {_INFINITE}"
    return f"CASE WHEN {is_infinite} THEN RAISE_ERROR('out of range') ELSE {sql} END"
