"""State of the translation of one statement."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from mplang_ibis.engines.dialect import SqlDialect
from mplang_ibis.engines.differences import DIFFERENCES
from mplang_ibis.engines.expression import EngineRefusal, Expression, NotTranslatedError, Query

MAX_LENGTH = 1 << 20  # characters of a statement; some templates write an operand twice
MAX_WORK = 1 << 25  # characters of all expressions that are made on the way
MAX_PARTS = 50_000  # expressions; names of the select list are written out


class Context:
    """State of one translation.

    Args:
        dialect: that of the engine.
        translate: :func:`mplang_ibis.engines.expressions.translate`.
        query: :func:`mplang_ibis.engines.queries.query`.

    Attributes:
        translate: the same, of this translation, as expressions have queries within, and those
            expressions.
        query: the same.
        refusals: what is refused so far.
        sums_floats: whether the result depends on the order in which floats are added.
        varies: whether what has been translated of the current expression does.
    """

    def __init__(
        self, dialect: SqlDialect, translate: Callable[..., Expression], query: Callable[..., Query]
    ) -> None:
        self.dialect = dialect
        self.translate = functools.partial(translate, self)
        self.query = functools.partial(query, self)
        self.refusals: list[EngineRefusal] = []
        self.sums_floats = self.varies = False
        self._names = 0
        self._work = self._parts = 0

    def name(self, letter: str) -> str:
        """Return a quoted name that no other part of the statement has."""
        self._names += 1
        return self.dialect.quoted(f"{letter}{self._names}")

    def refuse(self, key: str, part: str) -> NoReturn:
        """Refuse a part of the SQL by a row of the table of differences.

        Raises:
            NotTranslatedError: always.
        """
        row = DIFFERENCES[key]
        refusal = EngineRefusal(part, row.reason(self.dialect.name), row.instead)
        if refusal not in self.refusals:
            self.refusals.append(refusal)
        raise NotTranslatedError

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Go on after a part that is refused, so that the next ones are looked at, too."""
        try:
            yield
        except NotTranslatedError:
            if not self.refusals:
                raise

    def check_length(self, sql: str) -> str:
        """Return a text that is not too long, and nor were all before."""
        self._work, self._parts = self._work + len(sql), self._parts + 1
        is_much = self._work > MAX_WORK or self._parts > MAX_PARTS
        if len(sql) > MAX_LENGTH or is_much:
            self.refuse("length", "what is so long")
        return sql
