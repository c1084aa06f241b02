"""Displays of tables: rows of those that were fetched, schemas of those at parties."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from mplang_core import MPObject, TableType
from mplang_core.ext import at
from mplang_tables.arrow_types import Column, Table
from mplang_tables.columns import is_number
from mplang_tables.grid import Grid

ENDS = 5
"""Rows at the beginning and at the end that are shown."""

_NULLABLE = {"bool": "boolean"} | {
    f"{sign.lower()}int{bits}": f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)
}
"""Types of pandas for columns with nulls, by those of Arrow."""


def view(table: Table | MPObject) -> TableView | Grid:
    """Return what shows a table in a terminal and in a notebook.

    Args:
        table: a fetched table, or another one that ``mp.put`` takes; or a value of a program,
            whose columns are shown, since its rows are at its party.

    Returns:
        An object that prints as its first and last rows, with names, types and the number of rows.

    Raises:
        TypeError: it is not a table.

    Example:
        >>> import pyarrow as pa
        >>> view(pa.table({"name": ["Ann", None], "age": [17, 44]}))
        name      age
        string  int64
        Ann        17
        null       44
        2 rows of 2 columns
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim, mp.with_ctx(sim):
        ...     print(view(mp.put("P0", pa.table({"age": [17]}))))
        column  type
        age     int64
        a table at {0} on P0
    """
    if isinstance(table, MPObject):
        return _schema(table)
    import pyarrow as pa  # type: ignore[import-untyped]

    from mplang_tables import arrow

    return TableView(table if isinstance(table, pa.Table) else arrow.normalize(table))


class TableView:
    """Display of a table in memory.

    Args:
        table: a ``pyarrow.Table``.

    Attributes:
        table: the same.
    """

    def __init__(self, table: Table) -> None:
        self.table = table

    def __repr__(self) -> str:
        return str(self._grid())

    def _repr_html_(self) -> str:
        return self._grid()._repr_html_()

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """Yield what rich shows."""
        return self._grid().__rich_console__(console, options)

    def to_pandas(self) -> Any:
        """Return a frame of pandas, in which integers and bools stay what they are.

        A column of them with nulls has a nullable type of pandas, such as ``Int64``, where Arrow
        would make floats of it.

        Example:
            >>> import pyarrow as pa
            >>> view(pa.table({"id": [2**53 + 1, None]})).to_pandas()["id"].tolist()
            [9007199254740993, <NA>]
        """
        pandas = import_module("pandas")
        kinds = {each.type for each in self.table.columns if each.null_count}
        dtypes = {kind: pandas.api.types.pandas_dtype(_NULLABLE[str(kind)]) for kind in kinds
                  if str(kind) in _NULLABLE}  # fmt: skip
        return self.table.to_pandas(types_mapper=dtypes.get)

    def to_polars(self) -> Any:
        """Return a frame of polars."""
        return import_module("polars").from_arrow(self.table)

    def _grid(self) -> Grid:
        count, schema = self.table.num_rows, self.table.schema
        rows: list[list[str] | None] = []
        for end in _ends(self.table):
            rows += [None] if rows else []
            texts = [_texts(column) for column in end.columns]
            rows += [list(row) for row in zip(*texts, strict=True)]
        types = [str(kind) for kind in schema.types]
        what = f"{_counted(count, 'row')} of {_counted(len(types), 'column')}"
        return Grid(schema.names, types, rows, what, list(map(is_number, types)))


def show_in_ipython() -> None:
    """Register :func:`view` with IPython, where it runs, for tables of Arrow.

    What else shows them there already goes on to do so.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None:
        return
    ways = {
        "text/html": lambda table: TableView(table)._repr_html_(),
        "text/plain": lambda table, printer, cycle: printer.text(repr(TableView(table))),
    }
    for mime, show in ways.items():
        formatter = shell.display_formatter.formatters[mime]
        try:
            formatter.lookup_by_type("pyarrow.lib.Table")
        except KeyError:
            formatter.for_type_by_name("pyarrow.lib", "Table", show)


def _schema(value: MPObject) -> Grid:
    kind = value.base_type
    if not isinstance(kind, TableType):
        raise TypeError(f"{at()}{value!s} is not a table")
    mask = getattr(value.type, "pmask", None)
    where = f" on {value.device.name}" if value.device is not None else ""
    what = f"a table at {'?' if mask is None else mask}{where}"
    return Grid(["column", "type"], [], kind.columns, what)


def _ends(table: Table) -> list[Table]:
    """Return the first and the last rows; all of them, if that leaves out none or one."""
    if table.num_rows <= 2 * ENDS + 1:
        return [table]
    return [table.slice(0, ENDS), table.slice(table.num_rows - ENDS)]


def _texts(column: Column) -> list[str]:
    """Return the cells of a column as texts."""
    import pyarrow as pa

    if pa.types.is_temporal(column.type):  # Python has no dates as late as Arrow's
        column = column.cast(pa.string())
    return ["null" if cell is None else _text(cell) for cell in column.to_pylist()]


def _text(cell: object) -> str:
    return cell.hex() if isinstance(cell, bytes) else str(cell)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
