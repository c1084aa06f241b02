"""Statements for other engines, and what they refuse. Uses DuckDB."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

from mplang_core import MPLangError, TableType
from mplang_core.ext import AdmissionError, ConfigError
from mplang_ibis.engines.context import Context
from mplang_ibis.engines.dialect import SqlDialect
from mplang_ibis.engines.expression import EngineRefusal, NotTranslatedError, SqlColumn
from mplang_ibis.engines.expressions import translate
from mplang_ibis.engines.names import NameScope, Table
from mplang_ibis.engines.postgresql import PostgreSqlDialect
from mplang_ibis.engines.queries import query
from mplang_ibis.engines.spark import SparkDialect
from mplang_ibis.engines.types import SqlType, type_of_column
from mplang_ibis.query import admit, parse
from mplang_ibis.syntax import fold

_DIALECTS: Mapping[str, type[SqlDialect]] = {"postgresql": PostgreSqlDialect, "spark": SparkDialect}
MAX_NAME = 63  # bytes of a name; PostgreSQL cuts longer ones


class Offered(NamedTuple):
    """Table or view that an owner offers.

    Attributes:
        kind: its columns that may be read.
        parts: its schema, if any, and its name.
    """

    kind: TableType
    parts: tuple[str, ...]


class SqlStatement(NamedTuple):
    """SELECT in the SQL of another engine.

    Attributes:
        sql: its text.
        types: DuckDB's types of its columns.
        sums_floats: whether it adds floats, whose sum depends on their order.
    """

    sql: str
    types: tuple[SqlType, ...]
    sums_floats: bool


def to_dialect(
    sql: str, engine: str, tables: Mapping[str, Offered], *, ordered: bool = True
) -> SqlStatement:
    """Return the statement of another engine that gives what DuckDB's SQL gives.

    Args:
        sql: one SELECT in the dialect of DuckDB.
        engine: one of :data:`mplang_ibis.engines.ENGINES`.
        tables: what the SQL's tables are there, by name.
        ordered: whether its rows come in one order, which all of its columns complete.

    Raises:
        AdmissionError: the SQL is not allowed at a party, or the engine would give another answer.

    Example:
        >>> people = Offered(TableType((("age", "int64"),)), ("public", "people"))
        >>> made = to_dialect("SELECT count(*) FROM t WHERE age > 17", "postgresql", {"t": people})
        >>> print(made.sql)  # doctest: +ELLIPSIS
        SELECT "c0" FROM (SELECT COUNT(*) AS "c0" FROM "public"."people" AS "r1" WHERE ...
    """
    made = _translate(sql, engine, tables, ordered)
    if isinstance(made, SqlStatement):
        return made
    raise AdmissionError(f"ibis.run: {describe(made[0], engine)}", code="A005")


def refusal(sql: str, engine: str, types: Mapping[str, TableType]) -> list[EngineRefusal]:
    """Return what another engine would not answer as DuckDB does; empty if it runs the SQL.

    Args:
        sql: one SELECT in the dialect of DuckDB.
        engine: one of :data:`mplang_ibis.engines.ENGINES`.
        types: those of its tables, by name.

    Raises:
        AdmissionError: the SQL is not allowed at a party.

    Example:
        >>> people = {"people": TableType((("name", "string"),))}
        >>> result = refusal("SELECT upper(name) AS name FROM people", "postgresql", people)
        >>> [each.part for each in result]
        ['upper']
    """
    made = _translate(sql, engine, {name: Offered(kind, (name,)) for name, kind in types.items()})
    return [] if isinstance(made, SqlStatement) else made


@functools.lru_cache(maxsize=256)  # a program is checked wherever it is compiled
def refusals_of(sql: str, engine: str, types: tuple[tuple[str, TableType], ...]) -> list[str]:
    """Return :func:`refusal` as sentences of an error."""
    try:
        return [describe(each, engine) for each in refusal(sql, engine, dict(types))]
    except MPLangError as error:
        return [str(error)]


def describe(result: EngineRefusal, engine: str) -> str:
    """Return a refusal as a sentence of an error."""
    return f"{result.part} does not run on {engine}: {result.reason}; write {result.instead}"


def _translate(
    sql: str, engine: str, tables: Mapping[str, Offered], ordered: bool = True
) -> SqlStatement | list[EngineRefusal]:
    if engine not in _DIALECTS:
        raise ConfigError(f"no engine {engine!r}; there are {', '.join(_DIALECTS)}", code="C006")
    admit(sql, tables)
    ctx = Context(_DIALECTS[engine](), translate, query)
    try:
        known = {fold(name): _table(ctx, offered) for name, offered in tables.items()}
        made = ctx.query(parse(sql)["node"], NameScope(known), is_result=ordered)
    except NotTranslatedError:
        return ctx.refusals
    except RecursionError:
        return [EngineRefusal("deep nesting", "it takes long to plan", "it in several steps")]
    types = tuple(each.type for each in made.columns if each.type is not None)
    if ctx.refusals or len(types) != len(made.columns):
        return ctx.refusals
    return SqlStatement(made.sql, types, ctx.sums_floats)


def _table(ctx: Context, offered: Offered) -> Table:
    """Return a table.

    Raises:
        NotTranslatedError: the engine lacks the type of a column.
    """
    columns = []
    for name, kind in offered.kind.columns:
        result = type_of_column(kind)
        if result is None or ctx.dialect.type_name(result) is None:
            ctx.refuse("type", f"the column {name!r} of {kind}")
        if len(name.encode()) > MAX_NAME:
            ctx.refuse("name", f"the column {name[:20]!r}…, whose name is too long")
        columns.append(SqlColumn(name, ctx.dialect.quoted(name), result))
    return Table(ctx.dialect.table(offered.parts), columns)
