"""Expressions and queries in another engine's SQL, with their types, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mplang_ibis.engines.types import NULL, SqlType


class Expression(NamedTuple):
    """Expression in the SQL of another engine.

    Attributes:
        sql: its text, which needs no parentheses around it.
        type: its type by DuckDB's rules; values of the other engine's type may be more.
        value: of a constant its value; ``None`` of any other expression, and of NULL.
        is_literal: whether it is an integer, to which DuckDB gives the type of its neighbour.
        varies: whether it depends on the order in which floats are added.
    """

    sql: str
    type: SqlType
    value: Any = None
    is_literal: bool = False
    varies: bool = False

    @property
    def is_null(self) -> bool:
        """Whether it is a bare NULL."""
        return self.type == NULL


class EngineRefusal(NamedTuple):
    """Expression that another engine would evaluate differently from DuckDB.

    Attributes:
        part: the part of the SQL.
        reason: what differs.
        instead: how to write it.
    """

    part: str
    reason: str
    instead: str


class NotTranslatedError(Exception):
    """A part of the SQL is refused; those that depend on it are not looked at."""


class SqlColumn(NamedTuple):
    """Column of a table in FROM.

    Attributes:
        name: by which the SQL of DuckDB knows it; ``None`` if by none.
        sql: by which that of the other engine does.
        type: its type; ``None`` if what it is computed by is refused.
        varies: whether it depends on the order in which floats are added.
    """

    name: str | None
    sql: str
    type: SqlType | None
    varies: bool = False


class Query(NamedTuple):
    """Query in the SQL of another engine.

    Attributes:
        sql: its text.
        columns: those of its result: their names in DuckDB's SQL, and in the engine's.
    """

    sql: str
    columns: Sequence[SqlColumn]
