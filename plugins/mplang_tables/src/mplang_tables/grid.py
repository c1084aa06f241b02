"""Grids of texts, for a terminal and a notebook. Imports no Arrow."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mplang_analysis import Rows
from mplang_analysis.ext import fragment, isolated

from mplang_core.ext import printable

WIDTH = 100
"""Characters of a line where the terminal does not tell."""
LONGEST = 40
"""Characters of a cell that are shown."""
GAP = "  "


def shortened(text: str) -> str:
    r"""Return the beginning of a text, with characters escaped that are not seen.

    Example:
        >>> print(shortened("\x1b[31m" + "x" * 100))
        \x1b[31mxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
    """
    escaped = printable(text[: LONGEST + 1])  # a text may have megabytes
    return escaped if len(escaped) <= LONGEST else escaped[: LONGEST - 1] + "…"


@dataclass(frozen=True, slots=True, repr=False)
class Grid:
    """Rows of texts beneath names and types of columns. All of them are shown escaped.

    Attributes:
        names: the names of the columns.
        types: their types; empty where they have none.
        rows: the cells; ``None`` stands for rows that are left out.
        caption: a line about all of it.
        numeric: which columns have numbers, which stand to the right.

    Example:
        >>> rows = [["Ann", "7"]]
        >>> print(Grid(["name", "age"], ["string", "int64"], rows, "1 row", [False, True]))
        name      age
        string  int64
        Ann         7
        1 row
    """

    names: Sequence[str]
    types: Sequence[str]
    rows: Sequence[Sequence[str] | None]
    caption: str
    numeric: Sequence[bool] = ()

    def __str__(self) -> str:
        columns = self._columns()
        widths = [max(map(len, column)) for column in columns]
        count = _fitting(widths, shutil.get_terminal_size((WIDTH, 24)).columns)
        lines = [
            GAP.join(
                text.rjust(width) if right else text.ljust(width)
                for text, width, right in zip(line, widths[:count], self._right(), strict=False)
            ).rstrip()
            for line in zip(*columns[:count], strict=True)
        ]
        return "\n".join([*lines, self._caption(count)])

    __repr__ = __str__

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """Yield what rich shows; no text is read as markup."""
        types = [f" ({kind})" for kind in self.types] or [""] * len(self.names)
        heads = [name + kind for name, kind in zip(self.names, types, strict=True)]
        rows = [dict(zip(heads, self._texts(row), strict=True)) for row in self.rows]
        yield from Rows(rows or [dict.fromkeys(heads, "")]).__rich_console__(console, options)
        caption = self._caption(len(self.names))
        yield console.render_str(caption, markup=False, emoji=False, highlight=False)

    def _repr_html_(self) -> str:
        heads = "".join(
            "<tr>" + "".join(f"<th>{isolated(text)}</th>" for text in line) + "</tr>"
            for line in self._heads()
        )
        sides = [' class="number"' if right else "" for right in self._right()]
        body = "".join(
            "<tr>"
            + "".join(
                f"<td{side}>{isolated(text)}</td>"
                for text, side in zip(self._texts(row), sides, strict=True)
            )
            + "</tr>"
            for row in self.rows
        )
        return fragment(
            f"<table><thead>{heads}</thead><tbody>{body}</tbody></table>"
            f"<p>{isolated(printable(self.caption))}</p>"
        )

    def _right(self) -> Sequence[bool]:
        return self.numeric or [False] * len(self.names)

    def _columns(self) -> list[list[str]]:
        """Return for each column what is shown of it."""
        lines = [*self._heads(), *map(self._texts, self.rows)]
        return [list(column) for column in zip(*lines, strict=True)]

    def _heads(self) -> list[list[str]]:
        """Return the names and the types."""
        return [list(map(shortened, head)) for head in (self.names, self.types) if head]

    def _texts(self, row: Sequence[str] | None) -> list[str]:
        return ["…"] * len(self.names) if row is None else list(map(shortened, row))

    def _caption(self, count: int) -> str:
        more = len(self.names) - count
        return printable(f"{self.caption}; {more} more columns" if more else self.caption)


def _fitting(widths: Sequence[int], room: int) -> int:
    """Return how many columns fit in a line; one at least."""
    used = 0
    for count, width in enumerate(widths):
        used += width + len(GAP)
        if used - len(GAP) > room and count:
            return count
    return len(widths)
