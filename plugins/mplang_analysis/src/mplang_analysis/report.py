"""Reports: tables for a terminal, a notebook, or a page of HTML."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from mplang_analysis.html_page import fragment, page
from mplang_analysis.html_text import isolated
from mplang_analysis.prompt_text import clipped, colored
from mplang_core.ext import printable

ALL = "print(…) shows all"
SHOWN = 20  # rows of a table before the others are folded
WORD, PART = 10, 4  # characters of a text that is whole where there is room, and of a broken one
MAX_FOLDED = 500  # rows
MANY = 6  # columns of a table between which there is room to spare


class Part(Protocol):
    """Part of a report."""

    def text(self) -> str:
        """Return it as plain text."""

    def rich(self) -> Any:
        """Return it as a renderable of rich; no text is read as markup."""

    def html(self) -> str:
        """Return it as an element of HTML, all texts escaped."""


class Shown:
    """Base class of parts that show themselves also without a report."""

    __slots__ = ()
    text: Callable[[], str]

    def __repr__(self) -> str:
        return clipped(self.text(), ALL)

    def _repr_html_(self) -> str:
        return sections([self])  # type: ignore[list-item]


class Drawing(Shown):
    """Base class of drawings: parts that a terminal prints, and whose SVG loads nothing."""

    __slots__ = ()
    rich: Callable[[], object]

    def __str__(self) -> str:
        return self.text()

    def __rich__(self) -> object:
        return self.rich()


class Paragraphs(Shown):
    """Sentences, ready to be shown: a list below its title, or one text below the other.

    Args:
        texts: the sentences.
        title: above them.
    """

    def __init__(self, texts: Sequence[str], title: str = "") -> None:
        self.title, self.texts = printable(title), list(map(printable, texts))

    def text(self) -> str:
        """Return them as plain text.

        Example:
            >>> print(Paragraphs(["Nobody learns anything."], "Who learns what").text())
            Who learns what
              - Nobody learns anything.
        """
        if not self.title:
            return "\n".join(self.texts)
        return "\n".join([self.title, *(f"  - {text}" for text in self.texts)])

    def rich(self) -> Any:
        """Return them for rich."""
        from rich.console import Group
        from rich.padding import Padding
        from rich.text import Text

        if not self.title:
            return Group(*map(Text, self.texts))
        items = (Padding(Text(f"- {text}"), (0, 0, 0, 2)) for text in self.texts)
        return Group(Text(self.title, style="italic"), *items, Text(""))

    def html(self) -> str:
        """Return them as elements of HTML."""
        if not self.title:
            return "".join(f"<p>{isolated(text)}</p>" for text in self.texts)
        items = "".join(f"<li>{isolated(text)}</li>" for text in self.texts)
        return f"<p><b>{isolated(self.title)}</b></p><ul>{items}</ul>"


class TextTable(Shown):
    """A table, ready to be shown.

    Args:
        title: above it.
        columns: their names.
        rows: a text per column.
        alerts: the indices of the rows to look at first.

    Raises:
        ValueError: a row has another number of texts than there are columns; names it.
    """

    def __init__(
        self,
        title: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        alerts: Sequence[int] = (),
    ) -> None:
        # texts of others are among them
        self.title, self.columns = printable(title), list(map(printable, columns))
        self.rows, self.alerts = [list(map(printable, row)) for row in rows], set(alerts)
        for i, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(
                    f"table {self.title!r}: expected {len(self.columns)} texts in row {i}, one per "
                    f"column, got {len(row)}"
                )

    def text(self) -> str:
        """Return it as plain text.

        Example:
            >>> print(TextTable("fruit", ["name", "n"], [["apple", "2"]]).text())
            fruit
              name   n
              apple  2
        """
        lines = [self.columns, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        shown = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        marked = [f"{'! ' if i in self.alerts else '  '}{line}" for i, line in enumerate(shown, -1)]
        return "\n".join([self.title, *marked] if self.title else marked)

    def rich(self) -> Any:
        """Return it as a renderable of rich; no text is read as markup."""
        return self

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """Yield a table of rich, whose short texts are whole if there is room for them."""
        if len(self.rows) > MAX_FOLDED:
            yield from self._unfolded()
            return
        from rich.box import SIMPLE_HEAD
        from rich.table import Column, Table
        from rich.text import Text

        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows, strict=True)]
        least = sum(width if width <= WORD else PART for width in widths)
        room = least + len(widths) < options.max_width
        heads = [
            Column(Text(name), overflow="fold", no_wrap=room and width <= WORD)
            for name, width in zip(self.columns, widths, strict=True)
        ]
        table = Table(*heads, title=Text(self.title), title_justify="left", box=SIMPLE_HEAD)
        table.padding = (0, int(len(heads) <= MANY), 0, 0)
        for i, row in enumerate(self.rows):
            table.add_row(*map(Text, row), style="red" if i in self.alerts else None)
        yield table

    def _unfolded(self) -> Iterator[Any]:
        """Yield its lines for rich, unfolded: to fold a row takes half a millisecond."""
        from rich.segment import Segment
        from rich.style import Style

        red = Style(color="red")
        for i, line in enumerate(self.text().splitlines(), -2):  # after title and columns
            yield Segment(line, red if i in self.alerts else None)
            yield Segment.line()

    def html(self) -> str:
        """Return it as an element of HTML, all texts escaped."""
        return self._html(0, len(self.rows), self.title)

    def folded(self) -> str:
        """Return it as HTML whose first rows are shown, and the others at a click."""
        more = len(self.rows) - SHOWN
        if more <= 1:
            return self.html()
        hidden = sum(i >= SHOWN for i in self.alerts)
        red = f'; <span class="alert">{hidden} of them in red</span>' if hidden else ""
        rest = self._html(SHOWN, len(self.rows))
        summary = f"<summary>… {more:,} more rows{red}</summary>"
        return f"{self._html(0, SHOWN, self.title)}<details>{summary}{rest}</details>"

    def _html(self, begin: int, end: int, title: str = "") -> str:
        head = "".join(f"<th>{isolated(name)}</th>" for name in self.columns)
        body = "".join(
            ('<tr class="alert">' if i in self.alerts else "<tr>")
            + "".join(f"<td>{isolated(text)}</td>" for text in self.rows[i])
            + "</tr>"
            for i in range(begin, end)
        )
        caption = f"<caption>{isolated(title)}</caption>" if title else ""
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def sections(parts: Sequence[Part]) -> str:
    """Return parts as HTML for a notebook, long tables folded."""
    texts = (each.folded() if isinstance(each, TextTable) else each.html() for each in parts)
    return fragment("".join(f"<section>{text}</section>" for text in texts))


class Report(ABC):
    """Plain data that knows how to look like tables, with sentences and drawings around them."""

    __slots__ = ()

    def __init_subclass__(cls, **options: object) -> None:
        """Set what shows a subclass, in place of what a dataclass would generate."""
        super().__init_subclass__(**options)
        for each in (Report.__repr__, Report._repr_pretty_):
            if each.__name__ not in vars(cls):
                setattr(cls, each.__name__, each)

    @abstractmethod
    def tables(self) -> list[TextTable]:
        """Return what to show."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return it as dicts, lists, texts and numbers."""

    def remarks(self) -> Sequence[str]:
        """Return what to say beneath the tables."""
        return ()

    def parts(self, drawings: bool = True) -> Sequence[Part]:
        """Return all that is shown, in its order: by default the tables, and what is beneath.

        Args:
            drawings: whether drawings are among them.
        """
        notes = self.remarks()
        return [*self.tables(), *([Paragraphs(notes)] if notes else [])]

    def to_json(self) -> str:
        """Return :meth:`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def to_html(self) -> str:
        """Return a page of its own, which loads nothing."""
        body = "".join(f"<section>{part.html()}</section>" for part in self.parts())
        return page(self.tables()[0].title, body)

    def rich(self, drawings: bool = True) -> Any:
        """Return it as a renderable of rich.

        Args:
            drawings: whether drawings are among it.
        """
        from rich.console import Group

        return Group(*(part.rich() for part in self.parts(drawings)))

    def __str__(self) -> str:
        return "\n\n".join(part.text() for part in self.parts())

    def __rich__(self) -> Any:
        return self.rich()

    def __repr__(self) -> str:
        text = "\n\n".join(part.text() for part in self.parts(drawings=False))
        return clipped(text, ALL)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(
            clipped(colored(self.rich(drawings=False)), ALL) or repr(self)
        )  # what IPython shows in a terminal

    def _repr_html_(self) -> str:
        return sections(self.parts())
