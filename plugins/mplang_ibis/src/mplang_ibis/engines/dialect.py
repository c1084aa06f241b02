"""SQL dialect of an engine: what it writes differently."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Protocol, TypeAlias

from mplang_ibis.engines.expression import Expression
from mplang_ibis.engines.types import SqlType

Written: TypeAlias = Callable[[str], str]
"""Aggregate that takes its options, such as FILTER and OVER, which begin with a space."""


class SqlDialect(Protocol):
    """SQL of one engine. Operands need no parentheses, and results need none.

    Attributes:
        name: of the engine, as a catalogue publishes it.
        repeats_sums: whether it adds floats in the same order each time.
        compares_exactly: whether it compares integers and decimals of any digits as they are.
        filters_windows: whether a window has FILTER.
    """

    name: str
    repeats_sums: bool
    compares_exactly: bool
    filters_windows: bool

    def quoted(self, name: str) -> str:
        """Return a name as the engine reads it, exactly."""

    def table(self, parts: tuple[str, ...]) -> str:
        """Return a table or view that an owner offers, by its schema and name."""

    def type_name(self, kind: SqlType) -> str | None:
        """Return the engine's name of a type; ``None`` if it has none with the same values."""

    def literal(self, value: object, kind: SqlType) -> str:
        """Return a constant of a type."""

    def cast(self, a: Expression, kind: SqlType) -> str | None:
        """Return a value cast to another type, whose cast DuckDB has; ``None`` if it is another."""

    def compared(self, sql: str, kind: SqlType) -> str:
        """Return an expression that is compared by equality as DuckDB does it."""

    def ordered(self, sql: str, kind: SqlType) -> str:
        """Return an expression that is compared by order as DuckDB does it: text by its bytes."""

    def divide(self, a: Expression, b: Expression) -> str:
        """Return the quotient of two doubles, which by zero is infinite or NaN."""

    def divide_integers(self, a: Expression, b: Expression) -> str:
        """Return the quotient of integers, truncated; NULL by zero."""

    def modulo(self, a: Expression, b: Expression) -> str:
        """Return the remainder of exact numbers with the sign of the first; NULL by zero."""

    def like(self, text: str, pattern: Expression, escape: str, *, negated: bool) -> str | None:
        """Return whether a text matches a pattern; ``None`` if the engine cannot say it."""

    def add_interval(self, a: Expression, unit: str, count: int) -> str:
        """Return a date or time plus an interval, as a time."""

    def add_days(self, a: str, days: str) -> str:
        """Return a date plus days."""

    def days_between(self, a: str, b: str) -> str:
        """Return the days from date ``b`` to date ``a``, as an int64."""

    def date_part(self, field: str, a: Expression) -> str | None:
        """Return a field of a date or time, as an int64; ``None`` if the engine has another."""

    def date_trunc(self, field: str, a: Expression) -> str:
        """Return a date or time truncated to a field, as a time."""

    def call(self, name: str, args: list[Expression]) -> str | None:
        """Return a function of :data:`mplang_ibis.engines.functions.SIMPLE`, or ``None``."""

    def aggregate(self, name: str, args: list[Expression], distinct: str) -> Written | None:
        """Return an aggregate; ``None`` if the engine has none that gives the same answers.

        Args:
            name: one that :mod:`mplang_ibis.engines.windows` knows.
            args: its operands.
            distinct: what stands before them: ``DISTINCT`` and a space, or nothing.
        """


def shown(value: object, zone: str = "") -> str:
    """Return a number, a date or a time as engines read it in a cast of a text.

    Args:
        value: the value.
        zone: what follows a time.
    """
    if isinstance(value, float):
        return repr(value).replace("inf", "Infinity").replace("nan", "NaN")
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ") + zone
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def quotient(a: Expression, b: Expression, infinite: str, is_zero: str, is_minus: str) -> str:
    """Return the quotient of two doubles, for an engine that fails by zero.

    Args:
        a: the dividend.
        b: the divisor.
        infinite: the infinite double.
        is_zero: condition that the divisor is zero.
        is_minus: condition that it is the zero whose sign is minus.
    """
    if b.value == 0 and isinstance(b.value, float | int | Decimal):
        return f"({a.sql} * {infinite})"
    if isinstance(b.value, float | int | Decimal):
        return f"({a.sql} / {b.sql})"
    sign = f"CASE WHEN {is_minus} THEN -{infinite} ELSE {infinite} END"
    return f"CASE WHEN {is_zero} THEN {a.sql} * {sign} ELSE {a.sql} / {b.sql} END"


def call_of(name: str, args: list[Expression], distinct: str = "", kind: str = "") -> Written:
    """Return a call of an aggregate, cast to a type if one is named."""
    call = f"{name}({distinct}{', '.join(each.sql for each in args)})"
    if kind:
        return lambda options: f"CAST({call}{options} AS {kind})"
    return lambda options: f"{call}{options}"
