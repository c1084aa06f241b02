"""Picture in characters, for terminals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mplang_analysis.diagram import Diagram, Mark
from mplang_analysis.text_cells import cut, cut_end, pad, width, wrap

LEAST_TEXT = 30
"""Columns that the words beside the lanes have at least."""

LEAST_PITCH, USUAL_PITCH, MOST_PITCH = 6, 10, 16
"""Columns from lane to lane: at least, for short names, and at most."""

WIDEST = 100
"""Columns of a picture in a wider terminal."""


def draw(picture: Diagram, columns: int) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a picture, each with whether it discloses something."""
    wanted = max(USUAL_PITCH, *(width(name) + 2 for name in picture.lanes))
    pitch = min(MOST_PITCH, wanted, (columns - LEAST_TEXT) // len(picture.lanes))
    yield picture.title, False
    if pitch < LEAST_PITCH:
        yield from _as_list(picture, columns)
    else:
        yield from _Lanes(picture, pitch, columns).rows()
    yield from ((text, False) for text in wrap(picture.legend, columns))


@dataclass(frozen=True, slots=True)
class _Lanes:
    """Columns of a picture: lines, lanes, words."""

    picture: Diagram
    pitch: int
    columns: int

    def rows(self) -> Iterator[tuple[str, bool]]:
        yield from ((text, False) for text in self.head())
        before = ""
        for mark in self.picture.marks:
            if mark.line != before and mark.line:
                yield cut_end(self.picture.heading(mark.line), self.columns), False
            before = mark.line
            texts = wrap(mark.text, self.columns - self.pitch * len(self.names))
            for i, text in enumerate(texts):
                lanes = "".join(self.signs(mark if i == 0 else None))
                yield (lanes + text).rstrip(), mark.alert

    @property
    def names(self) -> tuple[str, ...]:
        return self.picture.lanes

    def head(self) -> Iterator[str]:
        """Yield the names: in one line where they fit, else one below the other."""
        if all(width(name) < self.pitch for name in self.names):
            yield "".join(pad(name, self.pitch) for name in self.names).rstrip()
            return
        for i, name in enumerate(self.names):
            left = pad("│", self.pitch) * i
            yield left + cut(name, self.columns - width(left))

    def signs(self, mark: Mark | None) -> list[str]:
        """Return the characters of one line of the lanes."""
        row = list(pad("│", self.pitch) * len(self.names))
        if mark is None:
            return row
        if mark.sender is not None:
            self.arrow(row, mark)
        else:
            self.joined(row, mark)
            for lane in mark.lanes:
                row[lane * self.pitch] = "●" if mark.kind == "run" else "◆"
        return row

    def joined(self, row: list[str], mark: Mark) -> None:
        """Draw what joins the shares of a value to the lanes at which it becomes plain."""
        if not mark.shares:
            return
        ends = {*mark.shares, *mark.lanes}
        for at in range(min(ends) * self.pitch, max(ends) * self.pitch):
            row[at] = "┼" if row[at] == "│" else "┄"
        for lane in mark.shares:
            row[lane * self.pitch] = "○"

    def arrow(self, row: list[str], mark: Mark) -> None:
        """Draw an arrow from its sender to each receiver, over the lanes between."""
        assert mark.sender is not None
        first, last = min(mark.sender, *mark.lanes), max(mark.sender, *mark.lanes)
        stroke = "═" if mark.alert else "─"
        for at in range(first * self.pitch + 1, last * self.pitch):
            row[at] = stroke
        for lane in range(first + 1, last):
            row[lane * self.pitch] = "┼"
        row[mark.sender * self.pitch] = "○"
        for lane in mark.lanes:
            row[lane * self.pitch] = "▶" if lane > mark.sender else "◀"
        label = f" {mark.label} "
        start = min(mark.sender, mark.lanes[0]) if mark.lanes[0] > mark.sender else mark.sender - 1
        if len(label) + 2 < self.pitch:
            begin = start * self.pitch + (self.pitch - len(label)) // 2 + 1
            row[begin : begin + len(label)] = label


def _as_list(picture: Diagram, columns: int) -> Iterator[tuple[str, bool]]:
    """Yield a picture whose lanes do not fit: in words."""
    before = ""
    for mark in picture.marks:
        who = ", ".join(picture.lanes[lane] for lane in mark.lanes)
        way = who if mark.sender is None else f"{picture.lanes[mark.sender]} → {who}"
        if mark.line != before:
            heading = cut_end(picture.heading(mark.line), columns)
            yield from [(heading, False)] if heading else []
        before = mark.line
        for i, text in enumerate(wrap(f"{way}: {mark.text}", max(columns - 4, 1))):
            yield ("  " if i == 0 else "    ") + text, mark.alert


@dataclass(frozen=True, slots=True)
class RichPicture:
    """Picture for a console of rich, drawn as wide as it is."""

    picture: Diagram

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.text import Text

        for i, (text, alert) in enumerate(draw(self.picture, min(WIDEST, options.max_width))):
            style = "italic" if i == 0 else "bold red" if alert else ""
            yield Text(text, style=style, no_wrap=True, overflow="crop")
        yield Text("")
