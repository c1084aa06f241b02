"""Data sets as views of a DuckDB connection, held against what their owner says. Imports Arrow."""

from __future__ import annotations

from typing import Any

from mplang_core import TableType
from mplang_data.columns import check_schema
from mplang_data.description import Description, SourceError


class View:
    """View of a source: the columns that are read, and no other.

    Args:
        con: a connection of DuckDB.
        relation: what SQL selects from.
        description: what its owner says.
        kind: the columns that are read.
    """

    def __init__(self, con: Any, relation: str, description: Description, kind: TableType) -> None:
        self._con = con
        self._relation = relation
        self._description = description
        self._kind = kind
        self._floats = [name for name, type in kind.columns if type in ("float", "double")]

    def is_exact(self) -> bool:
        """Return whether DuckDB reads the columns by the types that they are declared with."""
        columns = ", ".join(quoted(name) for name, _ in self._kind.columns)
        empty = self._con.sql(f"SELECT {columns} FROM {self._relation} LIMIT 0").to_arrow_table()
        try:
            check_schema(empty.schema, self._kind)
        except SourceError:
            return False
        return True

    def create(self, name: str) -> None:
        """Check the rows, and give the view its name.

        Raises:
            SourceError: they are not what the owner says; names the column.
        """
        self._check()
        columns = ", ".join(
            f"{self._value(column)} AS {quoted(column)}" for column, _ in self._kind.columns
        )
        self._con.execute(
            f"CREATE TEMP VIEW {quoted(name)} AS SELECT {columns} FROM {self._relation}"
        )

    def _value(self, column: str) -> str:
        if self._description.nan == "missing" and column in self._floats:
            return f"CASE WHEN isnan({quoted(column)}) THEN NULL ELSE {quoted(column)} END"
        return quoted(column)

    def _check(self) -> None:
        """Check what is published of the rows, all in one query."""
        ranges = self._description.ranges_of(self._kind)
        ends = {
            column: each
            for (column, _), each in zip(self._kind.columns, ranges, strict=bool(ranges))
            if each is not None
        }
        asked = {("rows", ""): "count(*)"} if self._description.rows is not None else {}
        for column in ends:
            value = self._value(column)
            asked |= {("low", column): f"min({value})", ("high", column): f"max({value})"}
        no_nan = self._floats if self._description.nan == "error" else []
        for column in {*no_nan, *(each for each in self._floats if each in ends)}:
            asked["nan", column] = f"coalesce(bool_or(isnan({self._value(column)})), false)"
        values = self._description.values_of(self._kind)
        for column, listed in values.items():
            literals = ", ".join(map(_literal, listed))
            # null is no value, and outside of no list
            outside = f"{quoted(column)} NOT IN ({literals})"
            asked["other", column] = f"coalesce(bool_or({outside}), false)"
        if not asked:
            return
        sql = f"SELECT {', '.join(asked.values())} FROM {self._relation}"
        found = dict(zip(asked, self._con.execute(sql).fetchone(), strict=True))
        if ("rows", "") in found:
            self._description.check_rows(found["rows", ""])
        for column in no_nan:
            if found["nan", column]:
                raise SourceError(f"column {column!r} has NaN, which is an error by its catalogue")
        for column in values:
            if found["other", column]:
                raise SourceError(
                    f"column {column!r} has values that are not in the list published"
                )
        for column, (low, high) in ends.items():
            smallest, largest = found["low", column], found["high", column]
            is_within = smallest is None or low <= smallest <= largest <= high
            if found.get(("nan", column)) or not is_within:
                raise SourceError(
                    f"column {column!r} has numbers outside of the range that is published"
                )


def _literal(value: object) -> str:
    return text(value) if isinstance(value, str) else str(value)


def quoted(name: str) -> str:
    """Return a name as SQL reads it."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Return a text as a literal of SQL.

    Example:
        >>> print(text("it's"))
        'it''s'
    """
    return "'" + value.replace("'", "''") + "'"
