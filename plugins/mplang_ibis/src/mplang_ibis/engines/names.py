"""Names in a query: its tables, their columns, and what its select list calls its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mplang_ibis.engines.context import Context
from mplang_ibis.engines.expression import Expression, NotTranslatedError, SqlColumn
from mplang_ibis.syntax import Node, fold


class Table(NamedTuple):
    """Table that a query may read.

    Attributes:
        sql: its name in the SQL of the other engine.
        columns: its columns, by their quoted names.
    """

    sql: str
    columns: Sequence[SqlColumn]


class Relation(NamedTuple):
    """Table in FROM.

    Attributes:
        name: what the SQL calls it, folded.
        columns: its columns.
    """

    name: str
    columns: Sequence[SqlColumn]


@dataclass
class NameScope:
    """Names that a query sees.

    Attributes:
        tables: what its tables are, by their folded names.
        parent: those of the query around it.
        relations: its tables.
        merged: columns of joins by USING that a bare name and ``*`` leave out, by their SQL.
        items: the expressions of its select list by their folded names.
        filters: conditions of semi-joins, which are part of WHERE.
        following: names of the select list that are being resolved.
    """

    tables: Mapping[str, Table]
    parent: NameScope | None = None
    relations: list[Relation] = field(default_factory=list)
    merged: set[str] = field(default_factory=set)
    items: Mapping[str, Node] = field(default_factory=dict)
    filters: list[str] = field(default_factory=list)
    following: set[str] = field(default_factory=set)

    def columns(self, relation: str | None = None) -> list[SqlColumn]:
        """Return the columns of ``*``, or of ``relation.*``."""
        result = [each for each in self.relations if relation in (None, each.name)]
        return [
            column
            for each in result
            for column in each.columns
            if relation is not None or column.sql not in self.merged
        ]

    def find(self, ctx: Context, names: Sequence[str]) -> SqlColumn | None:
        """Return the column that a reference names, here or around; ``None`` if there is none."""
        shown = ".".join(names)
        if len(names) > 2:
            ctx.refuse("name", shown)
        relation = fold(names[0]) if len(names) == 2 else None
        if relation is not None and not any(each.name == relation for each in self.relations):
            return self.parent.find(ctx, names) if self.parent else None
        wanted = fold(names[-1])
        result = [c for c in self.columns(relation) if c.name and fold(c.name) == wanted]
        if len(result) > 1:
            ctx.refuse("name", f"{shown}, which may be several columns")
        if result:
            return result[0]
        is_item = relation is None and wanted in self.items
        return self.parent.find(ctx, names) if self.parent and not is_item else None


def column(ctx: Context, result: SqlColumn) -> Expression:
    """Return the expression of a column."""
    if result.type is None:
        raise NotTranslatedError  # what it is computed by was refused
    return Expression(result.sql, result.type, varies=result.varies)
