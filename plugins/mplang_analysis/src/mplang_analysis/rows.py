"""Tables of plain data, for a terminal and a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mplang_analysis.prompt_text import clipped
from mplang_analysis.report import ALL, TextTable, sections
from mplang_core.ext import printable

PROSE = 20  # characters beyond which a column is folded between words, if there is no room
GAP = 2  # characters between two columns


class Rows(list[dict[str, Any]]):
    """A list of dicts of the same keys that prints as a table.

    ``rich.print`` shows it in a terminal, where rich is installed, and a notebook by itself. If a
    terminal is too narrow for its columns, each row is a record with a line per value.

    Example:
        >>> rows = Rows([{"party": "alice", "ranks": [0, 1]}])
        >>> "<td><bdi>0, 1</bdi></td>" in rows._repr_html_()
        True
    """

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """Yield what rich shows; no text is cut, and none is read as markup."""
        columns, texts = self._columns(), self._texts()
        widths = _widths([columns, *texts], options.max_width)
        if widths:
            yield _table(columns, texts, widths)
        else:
            yield from (_record(columns, row) for row in texts)

    def __repr__(self) -> str:
        return clipped(self._table().text(), ALL) if self else "no rows"

    def _repr_html_(self) -> str:
        return sections([self._table()])

    def _table(self) -> TextTable:
        return TextTable("", self._columns(), self._texts())

    def _columns(self) -> list[str]:
        return [printable(name) for name in self[0]] if self else []

    def _texts(self) -> list[list[str]]:
        return [[_text(value) for value in row.values()] for row in self]


def _text(value: Any) -> str:
    return printable(", ".join(map(str, value)) if isinstance(value, list) else str(value))


def _widths(lines: list[list[str]], room: int) -> list[int]:
    """Return the widths of the columns of a table without cut words; none if there is no room."""
    from rich.cells import cell_len

    columns = list(zip(*lines, strict=True))
    whole = [max(map(cell_len, column)) for column in columns]
    words = [
        max(cell_len(word) for text in column for word in text.split(" ")) for column in columns
    ]
    widths = [max(word, min(full, PROSE)) for word, full in zip(words, whole, strict=True)]
    spare = room - sum(widths) - GAP * (len(widths) - 1)
    if spare < 0:
        return []
    for i in sorted(range(len(widths)), key=lambda i: whole[i] - widths[i]):
        more = min(spare, whole[i] - widths[i])
        widths[i], spare = widths[i] + more, spare - more
    return widths


def _table(columns: list[str], texts: list[list[str]], widths: list[int]) -> Any:
    """Return a table of rich."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Column, Table
    from rich.text import Text

    heads = [Column(Text(name), width=width) for name, width in zip(columns, widths, strict=True)]
    table = Table(*heads, box=SIMPLE_HEAD, padding=(0, GAP - 1, 0, 0), show_edge=False)
    table.pad_edge = False
    for row in texts:
        table.add_row(*map(Text, row))
    return table


def _record(columns: list[str], row: list[str]) -> Any:
    """Return lines of rich: the first value, and beneath it those of the other columns."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Column, Table
    from rich.text import Text

    lines = Table.grid(Column(no_wrap=True), Column(overflow="fold"), padding=(0, GAP, 0, 0))
    for name, text in zip(columns[1:], row[1:], strict=True):
        if text:
            lines.add_row(Text(name, "dim"), Text(text))
    return Group(
        Text(row[0], "bold", overflow="fold"), Padding(lines, (0, 0, 0, GAP), expand=False)
    )
