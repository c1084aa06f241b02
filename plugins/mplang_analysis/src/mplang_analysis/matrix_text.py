"""Matrix in characters, for terminals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from mplang_analysis.grid import LearnerGrid
from mplang_analysis.text_cells import cut, pad, width, wrap

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

GAP = 2
"""Columns between two cells."""

LEAST, MOST = 9, 30
"""Columns of a cell: at least, and at most."""

WIDEST = 100
"""Columns of a matrix in a wider terminal."""

Line: TypeAlias = list[tuple[str, bool]]
"""A line of text in pieces, each with whether it discloses something."""


def written(grid: LearnerGrid, columns: int) -> str:
    """Return a grid as text of at most some columns."""
    lines = ("".join(text for text, _ in line).rstrip() for line in draw(grid, columns))
    return "\n".join([grid.title, *lines])


def draw(grid: LearnerGrid, columns: int) -> Iterator[Line]:
    """Yield the lines of a grid without its title: a table, or a list where it does not fit."""
    heads = [", ".join(names) for names in grid.learners]
    owners = [_whose(owner) for owner in grid.owners]
    first = min(MOST, max(map(width, owners))) + GAP
    wanted = [max(map(width, column)) for column in zip(heads, *grid.cells, strict=True)]
    widths = _widths([min(each, MOST) for each in wanted], columns - first)
    words = [word for row in (heads, *grid.cells) for text in row for word in text.split(" ")]
    if not widths or max(map(width, words)) > min(max(widths), MOST):
        yield from _as_list(grid, columns)
        return
    yield from _row("", heads, first, widths, [False] * len(heads))
    for owner, cells in zip(owners, grid.cells, strict=True):
        yield from _row(owner, cells, first, widths, list(map(grid.alert, cells)))


def _whose(owner: str) -> str:
    return f"{owner}'s data"


def _widths(wanted: Sequence[int], room: int) -> list[int]:
    """Return the widths of columns that fit: the widest are cut down; none if there is no room."""
    widths = list(wanted)
    while sum(widths) + GAP * len(widths) > room:
        widest = max(range(len(widths)), key=widths.__getitem__)
        if widths[widest] <= LEAST:
            return []
        widths[widest] -= 1
    return widths


def _row(
    head: str, texts: Sequence[str], first: int, widths: Sequence[int], alerts: Sequence[bool]
) -> Iterator[Line]:
    columns = [wrap(text, size) for text, size in zip(texts, widths, strict=True)]
    for i in range(max(map(len, columns))):
        line: Line = [(pad(cut(head, first - GAP) if i == 0 else "", first), False)]
        for lines, size, alert in zip(columns, widths, alerts, strict=True):
            line.append((pad(lines[i] if i < len(lines) else "", size + GAP), alert))
        yield line


def _as_list(grid: LearnerGrid, columns: int) -> Iterator[Line]:
    """Yield a grid below each owner a line for each learner."""
    for owner, cells in zip(grid.owners, grid.cells, strict=True):
        yield from ([(text, False)] for text in wrap(_whose(owner), columns))
        for names, text in zip(grid.learners, cells, strict=True):
            for i, part in enumerate(wrap(f"{', '.join(names)}: {text}", max(columns - 4, 1))):
                yield [(("  " if i == 0 else "    ") + part, grid.alert(text))]


@dataclass(frozen=True, slots=True)
class RichGrid:
    """Matrix for a console of rich, drawn as wide as it is."""

    grid: LearnerGrid

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        from rich.text import Text

        yield Text(self.grid.title, style="italic")
        for line in draw(self.grid, min(WIDEST, options.max_width)):
            pieces = ((text, "bold red" if alert else "") for text, alert in line)
            yield Text.assemble(*pieces, no_wrap=True, overflow="crop")
        yield Text("")
