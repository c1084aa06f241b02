"""Data sets as views of a DuckDB connection, held against what their owner says. Imports Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from mplang_tables.ext import quoted, quoted_text

from mplang_core import TableType
from mplang_data.columns import check_schema, check_there
from mplang_data.description import Description, SourceError

Run: TypeAlias = Callable[[str, TableType], Iterable[Any]]
"""Runs one SELECT; takes it and the type of its result, and returns Arrow batches."""


class Published:
    """Published bounds of the rows of a table, as SQL checks.

    Args:
        description: what the owner says.
        kind: the columns that are read.
    """

    def __init__(self, description: Description, kind: TableType) -> None:
        self._description = description
        self._types = dict(kind.columns)
        self._floats = {name for name, type in kind.columns if type in ("float", "double")}
        self._values = description.values_of(kind)
        ranges = description.ranges_of(kind)
        self._ends = {
            column: ends
            for (column, _), ends in zip(kind.columns, ranges, strict=bool(ranges))
            if ends is not None
        }

    def value(self, column: str) -> str:
        """Return the value of a column in SQL, where NaN may be a missing one."""
        if self._description.nan == "missing" and column in self._floats:
            return f"CASE WHEN isnan({quoted(column)}) THEN NULL ELSE {quoted(column)} END"
        return quoted(column)

    def check_by(self, run: Run, relation: str) -> None:
        """Check the rows of a table by SQL.

        Args:
            run: runs a SELECT in the dialect of DuckDB, whose result has one row.
            relation: what SQL selects from.

        Raises:
            SourceError: the rows are not what the owner says; names the column.
        """
        asked = self._columns()
        if not asked:
            return
        names = [f"c{number}" for number in range(len(asked))]
        values = (f"{sql} AS {name}" for sql, name in zip(asked.values(), names, strict=True))
        gives = [
            (name, self._types[column] if what in ("low", "high") else "int64")
            for name, (what, column) in zip(names, asked, strict=True)
        ]
        sql = f"SELECT {', '.join(values)} FROM {relation}"
        (batch,) = run(sql, TableType(tuple(gives)))
        (row,) = batch.to_pylist()
        self._check(dict(zip(asked, row.values(), strict=True)))

    def _columns(self) -> dict[tuple[str, str], str]:
        """Return what SQL selects to check it: by what it is and its column, aggregates."""
        asked = {("rows", ""): "count(*)"} if self._description.rows is not None else {}
        for column in self._ends:
            value = self.value(column)
            asked |= {("low", column): f"min({value})", ("high", column): f"max({value})"}
        for column in self._floats if self._description.nan == "error" else ():
            asked["nan", column] = f"count(CASE WHEN isnan({quoted(column)}) THEN 1 END)"
        for column, listed in self._values.items():
            literals = ", ".join(map(_literal, listed))
            # null is not a value, and outside of no list
            outside = f"{quoted(column)} NOT IN ({literals})"
            asked["other", column] = f"count(CASE WHEN {outside} THEN 1 END)"
        return asked

    def _check(self, selected: Mapping[tuple[str, str], Any]) -> None:
        for (what, column), value in selected.items():
            if what == "rows":
                self._description.check_rows(value)
            elif what == "nan" and value:
                raise SourceError(f"column {column!r} has NaN, which is an error by its catalogue")
            elif what == "other" and value:
                raise SourceError(
                    f"column {column!r} has values that are not in the list published"
                )
        for column, (low, high) in self._ends.items():
            smallest, largest = selected["low", column], selected["high", column]
            # NaN is the greatest number of SQL, and within nothing
            if smallest is not None and not low <= smallest <= largest <= high:
                raise SourceError(
                    f"column {column!r} has numbers outside of the range that is published"
                )


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
        self._published = Published(description, kind)
        self._kind = kind

    def misfit(self, match: Sequence[str] = ()) -> SourceError | None:
        """Return why DuckDB does not read the columns by the types that they are declared with.

        Args:
            match: columns that are there, too, of whatever type.
        """
        empty = self._con.sql(f"SELECT * FROM {self._relation} LIMIT 0").to_arrow_table()
        try:
            check_there(match, empty.schema.names)
            check_schema(empty.schema, self._kind)
        except SourceError as error:
            return error
        return None

    def create(self, name: str) -> None:
        """Check the rows, and give the view its name.

        Raises:
            SourceError: they are not what the owner says; names the column.
        """
        self._published.check_by(
            lambda sql, _: self._con.sql(sql).to_arrow_table().to_batches(), self._relation
        )
        columns = ", ".join(
            f"{self._published.value(column)} AS {quoted(column)}"
            for column, _ in self._kind.columns
        )
        self._con.execute(
            f"CREATE TEMP VIEW {quoted(name)} AS SELECT {columns} FROM {self._relation}"
        )


def _literal(value: object) -> str:
    return quoted_text(value) if isinstance(value, str) else str(value)
