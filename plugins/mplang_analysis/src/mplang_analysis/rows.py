"""Tables of plain data, for a terminal and a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any


class Rows(list[dict[str, Any]]):
    """A list of dicts of the same keys that prints as a table.

    ``rich.print`` shows it in a terminal, where rich is installed, and a notebook by itself.

    Example:
        >>> rows = Rows([{"party": "alice", "ranks": [0, 1]}])
        >>> "<td>0, 1</td>" in rows._repr_html_()
        True
    """

    def __rich__(self) -> Any:
        """Return the table that ``rich.print`` shows."""
        from rich.table import Table

        table = Table()
        for i, name in enumerate(self._columns()):
            table.add_column(name, no_wrap=i == 0)
        for row in self._texts():
            table.add_row(*row)
        return table

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self._columns())
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>"
            for row in self._texts()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _columns(self) -> list[str]:
        return list(self[0]) if self else []

    def _texts(self) -> Iterable[list[str]]:
        for row in self:
            yield [
                ", ".join(map(str, value)) if isinstance(value, list) else str(value)
                for value in row.values()
            ]
