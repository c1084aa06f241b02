"""Expressions of another engine's SQL, with their types, and the state of a translation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from mplang_ibis.engines.differences import DIFFERENCES
from mplang_ibis.engines.types import NULL, SqlType

if TYPE_CHECKING:
    from mplang_ibis.engines.dialect import Dialect

MAX_LENGTH = 1 << 20  # characters of a statement; some templates write an operand twice
MAX_WORK = 1 << 25  # characters of all expressions that are made on the way
MAX_PARTS = 50_000  # expressions; names of the select list are written out


class Expression(NamedTuple):
    """Expression in the SQL of another engine.

    Attributes:
        sql: its text, which needs no parentheses around it.
        type: its type by DuckDB's rules; values of the other engine's type may be more.
        value: of a constant its value; ``None`` of any other expression, and of NULL.
        is_literal: whether it is an integer, to which DuckDB gives the type of its neighbour.
    """

    sql: str
    type: SqlType
    value: Any = None
    is_literal: bool = False

    @property
    def is_null(self) -> bool:
        """Whether it is a bare NULL."""
        return self.type == NULL


class Refusal(NamedTuple):
    """What another engine would answer in another way than DuckDB.

    Attributes:
        part: the part of the SQL.
        reason: what differs.
        instead: how to write it.
    """

    part: str
    reason: str
    instead: str


class RefusedError(Exception):
    """A part of the SQL is refused; those that depend on it are not looked at."""


class Context:
    """State of one translation.

    Args:
        dialect: that of the engine.

    Attributes:
        refusals: what is refused so far.
        sums_floats: whether the result depends on the order in which floats are added.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.refusals: list[Refusal] = []
        self.sums_floats = False
        self._names = 0
        self._work = self._parts = 0

    def name(self, letter: str) -> str:
        """Return a quoted name that no other part of the statement has."""
        self._names += 1
        return self.dialect.quoted(f"{letter}{self._names}")

    def refuse(self, key: str, part: str) -> NoReturn:
        """Refuse a part of the SQL by a row of the table of differences.

        Raises:
            RefusedError: always.
        """
        row = DIFFERENCES[key]
        refusal = Refusal(part, row.reason(self.dialect.name), row.instead)
        if refusal not in self.refusals:
            self.refusals.append(refusal)
        raise RefusedError

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Go on after a part that is refused, so that the next ones are looked at, too."""
        try:
            yield
        except RefusedError:
            if not self.refusals:
                raise

    def check_length(self, sql: str) -> str:
        """Return a text that is not too long, and nor were all before."""
        self._work, self._parts = self._work + len(sql), self._parts + 1
        is_much = self._work > MAX_WORK or self._parts > MAX_PARTS
        if len(sql) > MAX_LENGTH or is_much:
            self.refuse("length", "what is so long")
        return sql
