"""SQL of PostgreSQL."""

from __future__ import annotations

from mplang_ibis.engines.dialect import Written, call_of, quotient, shown
from mplang_ibis.engines.expression import Expression
from mplang_ibis.engines.types import (
    BINARY,
    BOOL,
    DATE,
    DOUBLE,
    FLOAT,
    INT16,
    INT32,
    INT64,
    INT128,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    SqlType,
    is_integer,
)
from mplang_ibis.sql import quoted

_TYPES = {
    BOOL: "boolean", INT16: "smallint", INT32: "integer", INT64: "bigint", FLOAT: "real",
    INT128: "numeric(38, 0)", DOUBLE: "double precision", STRING: "text", BINARY: "bytea",
    DATE: "date", TIME: "time", TIMESTAMP: "timestamp", TIMESTAMPTZ: "timestamp with time zone",
}  # fmt: skip
_INFINITE = "CAST('Infinity' AS double precision)"

_CALLS = {
    "pow": "power({0}, {1})", "log": "log({0})", "log10": "log({0})",
    "isnan": "({0} = CAST('NaN' AS double precision))",
    "make_date": "make_date({0}, {1}, {2})",
    "length": "CAST(length({0}) AS bigint)", "strlen": "CAST(octet_length({0}) AS bigint)",
    "||": "({0} || {1})", "replace": "replace({0}, {1}, {2})",
    "left": "left({0}, {1})", "right": "right({0}, {1})",
    "trim": "btrim({0}, {1})", "ltrim": "ltrim({0}, {1})", "rtrim": "rtrim({0}, {1})",
    "strpos": "CAST(strpos({0}, {1}) AS bigint)", "starts_with": "starts_with({0}, {1})",
    "ends_with": "(right({0}, length({1})) = {1})", "abs": "abs({0})", "sign": "sign({0})",
    "round": "round({0}, {1})", "ceil": "ceil({0})", "floor": "floor({0})", "trunc": "trunc({0})",
}  # fmt: skip
_SAME = {
    "acos",
    "asin",
    "atan",
    "cos",
    "cot",
    "degrees",
    "exp",
    "ln",
    "radians",
    "sin",
    "sqrt",
    "tan",
}
_AGGREGATES = {
    "count", "min", "max", "bool_and", "bool_or", "sum", "stddev_samp", "stddev_pop", "var_samp",
    "var_pop", "corr", "covar_pop", "covar_samp",
}  # fmt: skip


class PostgreSqlDialect:
    """SQL of PostgreSQL; see :class:`mplang_ibis.engines.dialect.SqlDialect`."""

    name = "postgresql"
    repeats_sums = True  # without parallel workers
    compares_exactly = True
    filters_windows = True

    def quoted(self, name: str) -> str:
        """Return a name in double quotes."""
        return quoted(name)

    def table(self, parts: tuple[str, ...]) -> str:
        """Return a view with its schema: no search path is used."""
        return ".".join(map(quoted, parts))

    def type_name(self, kind: SqlType) -> str | None:
        """Return the name of a type."""
        if kind.name == "decimal":
            return f"numeric({kind.width}, {kind.scale})"
        return _TYPES.get(kind)

    def literal(self, value: object, kind: SqlType) -> str:
        """Return a constant, cast to its type."""
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        text = shown(value, "+00" * (kind == TIMESTAMPTZ))
        escaped = text.replace("'", "''")
        return f"CAST('{escaped}' AS {self.type_name(kind)})"

    def cast(self, a: Expression, kind: SqlType) -> str | None:
        """Return a cast, which rounds halves of floats to even, and those of decimals away."""
        return f"CAST({a.sql} AS {self.type_name(kind)})"

    def compared(self, sql: str, kind: SqlType) -> str:
        """Return it as it is."""
        return sql

    def ordered(self, sql: str, kind: SqlType) -> str:
        """Return text with the collation by its bytes."""
        return f'({sql} COLLATE "C")' if kind == STRING else sql

    def divide(self, a: Expression, b: Expression) -> str:
        """Return the quotient of two doubles."""
        is_zero, is_minus = f"{b.sql} = 0", f"CAST({b.sql} AS text) = '-0'"
        return quotient(a, b, _INFINITE, is_zero, is_minus)

    def divide_integers(self, a: Expression, b: Expression) -> str:
        """Return the quotient of integers."""
        if a.type == INT128:
            return f"div({a.sql}, NULLIF({b.sql}, 0))"
        return f"({a.sql} / NULLIF({b.sql}, 0))"

    def modulo(self, a: Expression, b: Expression) -> str:
        """Return the remainder."""
        return f"({a.sql} % NULLIF({b.sql}, 0))"

    def like(self, text: str, pattern: Expression, escape: str, *, negated: bool) -> str | None:
        """Return LIKE with its escape character, which is none by default in DuckDB."""
        word = "NOT LIKE" if negated else "LIKE"
        escaped = escape.replace("'", "''")
        return f"({text} {word} {pattern.sql} ESCAPE '{escaped}')"

    def add_interval(self, a: Expression, unit: str, count: int) -> str:
        """Return a time plus an interval."""
        return f"({a.sql} + CAST('{count} {unit}' AS interval))"

    def add_days(self, a: str, days: str) -> str:
        """Return a date plus days."""
        return f"({a} + {days})"

    def days_between(self, a: str, b: str) -> str:
        """Return the days between two dates."""
        return f"CAST(({a} - {b}) AS bigint)"

    def date_part(self, field: str, a: Expression) -> str | None:
        """Return a field; years before 1 are 0, -1, … in DuckDB."""
        part = f"CAST(TRUNC(EXTRACT({field} FROM {a.sql})) AS bigint)"
        if field in ("year", "isoyear"):
            return f"({part} + CASE WHEN EXTRACT({field} FROM {a.sql}) < 0 THEN 1 ELSE 0 END)"
        return part

    def date_trunc(self, field: str, a: Expression) -> str:
        """Return a time truncated; those with a zone in UTC, the zone of the session."""
        return f"date_trunc('{field}', {a.sql})"

    def call(self, name: str, args: list[Expression]) -> str | None:
        """Return a function of one row."""
        texts = [each.sql for each in args]
        if name in ("left", "right", "substring"):  # positions are int4
            texts[1:] = [self.literal(each.value, INT32) for each in args[1:]]
        if name == "substring":
            return f"substr({', '.join(texts)})"
        if name == "concat":
            return f"concat({', '.join(texts)})"
        if name == "||" and len(texts) != 2:
            return None
        if name == "sign" and is_integer(args[0].type):
            texts[0] = f"CAST({texts[0]} AS numeric)"
        template = f"{name}({{0}})" if name in _SAME else _CALLS.get(name)
        return template and template.format(*texts)

    def aggregate(self, name: str, args: list[Expression], distinct: str) -> Written | None:
        """Return an aggregate."""
        if name == "count_star":
            return lambda options: f"COUNT(*){options}"
        if name == "sum_exact":
            return call_of("SUM", args, distinct, "numeric")
        if name == "avg":
            return call_of("AVG", args, distinct, "double precision")
        if name == "count_if":
            counted = args[0]._replace(sql=f"NULLIF({args[0].sql}, FALSE)")
            return call_of("COUNT", [counted], distinct, "numeric")
        if name == "median":
            called = f"PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY {args[0].sql})"
            return lambda options: f"{called}{options}"
        return call_of(name.upper(), args, distinct) if name in _AGGREGATES else None
