"""Picture as SVG: inline in a page or a notebook, or a document of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from mplang_analysis import svg
from mplang_analysis.diagram import Diagram, Mark
from mplang_analysis.html_page import ALERT
from mplang_analysis.svg import CELL, COLORS, DARK, HOST, INK, LINE, MARGIN
from mplang_analysis.text_cells import cut, width, wrap, wrap_most

WORDS = 58
"""Columns of the words beside the lanes."""

COLUMN, LEAST_PITCH = 348.0, 40.0
"""Pixels of a picture in a narrow column, and from lane to lane at least."""


def draw(picture: Diagram) -> str:
    """Return two elements ``svg``, of which a style shows the one that fits its column.

    All texts are escaped, and nothing is loaded. Without the style the wide one is shown.
    """
    return _Beside.of(picture).element(picture) + _Below.of(picture).element(picture)


def document(picture: Diagram) -> str:
    """Return a document of SVG, which loads nothing."""
    return svg.document(_Beside.of(picture).element(picture))


@dataclass(frozen=True, slots=True)
class _Beside:
    """Layout of a picture whose words are beside its lanes: pixels from the upper left corner."""

    pitch: float
    lanes: int

    @classmethod
    def of(cls, picture: Diagram) -> _Beside:
        widest = max(map(width, picture.lanes)) * CELL + MARGIN
        return cls(max(120.0, widest + MARGIN), len(picture.lanes))

    name = "wide"
    """The class of the element."""

    def x(self, lane: int) -> float:
        return MARGIN + self.pitch * (lane + 0.5)

    @property
    def words(self) -> float:
        return MARGIN + self.pitch * self.lanes + MARGIN

    @property
    def width(self) -> float:
        return self.words + WORDS * CELL + MARGIN

    def element(self, picture: Diagram) -> str:
        """Return the element ``svg``."""
        body, y = [], self.top(picture)
        head = [
            svg.text(MARGIN, MARGIN + LINE * (i + 1), each, INK, "bold")
            for i, each in enumerate(self.title(picture))
        ]
        before = None
        for mark in picture.marks:
            if mark.line != before:
                drawn, y = self.heading(picture.heading(mark.line), y)
                body += drawn
            before = mark.line
            drawn, y = self.row(mark, y)
            body += drawn
        legend = wrap(picture.legend, self.columns)
        body += [svg.text(MARGIN, y + LINE * (i + 2), text) for i, text in enumerate(legend)]
        head += self.header(picture)
        height = y + LINE * (len(legend) + 1) + MARGIN
        label = f"Picture of {picture.title}"
        return svg.element(label, self.name, self.width, height, "".join([*head, *body]))

    @property
    def columns(self) -> int:
        return int((self.width - 2 * MARGIN) / CELL)

    def title(self, picture: Diagram) -> list[str]:
        return wrap(picture.title, self.columns)

    def names_at(self, picture: Diagram) -> float:
        """Return where the names of the lanes begin, from above."""
        return MARGIN + LINE * (len(self.title(picture)) + 1) - 2.0

    def top(self, picture: Diagram) -> float:
        """Return where the first mark begins, from above."""
        return self.names_at(picture) + 2 * LINE + 2

    def heading(self, heading: str, y: float) -> tuple[list[str], float]:
        """Return a line of the program with its text, and where its first mark begins."""
        drawn = [svg.stroke((MARGIN, y), (self.width - MARGIN, y))]
        lines = wrap_most(heading, self.columns, 2)
        drawn += [
            svg.text(MARGIN, y + LINE * (i + 1) + 2, text, INK, "bold")
            for i, text in enumerate(lines)
        ]
        return drawn, y + (LINE * len(lines) + 8) * bool(lines)

    def row(self, mark: Mark, y: float) -> tuple[list[str], float]:
        """Return a mark that begins at ``y`` with its words, and where the next one begins."""
        texts = wrap(mark.text, WORDS)
        end = y + LINE * len(texts) + LINE // 2 + 2
        drawn = [svg.stroke((x, y), (x, end)) for x in map(self.x, range(self.lanes))]
        drawn += self.mark(mark, y + LINE - 2)
        drawn += [
            svg.text(self.words, y + LINE * (i + 1) + 2, text, *_paint(mark))
            for i, text in enumerate(texts)
        ]
        return drawn, end

    def header(self, picture: Diagram) -> Iterator[str]:
        """Yield the names in boxes."""
        top = self.names_at(picture)
        for lane, name in enumerate(picture.lanes):
            x = self.x(lane)
            yield svg.stroke((x, top + LINE + 6), (x, self.top(picture)))
            yield from self.label(lane, name, x, top)

    def label(self, lane: int, name: str, x: float, top: float) -> Iterator[str]:
        left, size = self.frame(name, x)
        color = HOST if name == "the host" else COLORS[lane % len(COLORS)]
        yield svg.box(left, top, size, LINE + 6, color)
        yield svg.text(left + 8, top + LINE, name, DARK)

    def frame(self, name: str, x: float) -> tuple[float, float]:
        """Return where the box of a name begins, and how wide it is."""
        size = width(name) * CELL + 16
        return min(max(x - size / 2, 1), self.width - size - 1), size

    def mark(self, mark: Mark, y: float) -> Iterator[str]:
        """Yield a dot or diamond per lane, or an arrow."""
        color, _ = _paint(mark)
        if mark.sender is not None:
            yield from self.arrow(mark, y, color)
            return
        if mark.shares:
            yield from self.joined(mark, y, color)
        for lane, x in zip(mark.lanes, map(self.x, mark.lanes), strict=True):
            if mark.kind == "run":
                yield f'<circle cx="{x:g}" cy="{y:g}" r="4.5" fill="{color}"/>'
            else:
                corners = [(x - 7, y), (x, y - 7), (x + 7, y), (x, y + 7)]
                yield svg.polygon(corners, INK if lane in mark.own else color)

    def joined(self, mark: Mark, y: float, color: str) -> Iterator[str]:
        """Yield what joins the shares of a value to the lanes at which it becomes plain."""
        ends = sorted({*mark.shares, *mark.lanes})
        for one, other in pairwise(ends):
            yield svg.stroke((self.x(one) + 9, y), (self.x(other) - 9, y), color, 1.5, "2 3")
        for lane in mark.shares:
            if lane not in mark.lanes:
                x = self.x(lane)
                yield f'<circle cx="{x:g}" cy="{y:g}" r="5" fill="none" stroke="{color}"/>'

    def arrow(self, mark: Mark, y: float, color: str) -> Iterator[str]:
        """Yield an arrow to each receiver, and its label above it."""
        assert mark.sender is not None
        here = self.x(mark.sender)
        dash = "6 3" if mark.dashed else ""
        for side in (-1, 1):
            ends = [self.x(lane) for lane in mark.lanes if (lane - mark.sender) * side > 0]
            if not ends:
                continue
            far = max(ends, key=lambda x: abs(x - here))
            thick = 2.5 if mark.alert else 1.5
            yield svg.stroke((here + side * 4, y), (far - side * 8, y), color, thick, dash)
            for x in ends:
                yield svg.polygon([(x, y), (x - side * 10, y - 5), (x - side * 10, y + 5)], color)
        yield f'<circle cx="{here:g}" cy="{y:g}" r="4" fill="none" stroke="{color}"/>'
        side = 1 if mark.lanes[0] > mark.sender else -1
        label = mark.label if width(mark.label) <= self.pitch / CELL - 4 else ""
        start = here + side * self.pitch / 2 - width(label) * CELL / 2
        yield svg.text(start, y - 4, label, color)


class _Below(_Beside):
    """Layout of a picture for a narrow column: lines above the lanes, words below."""

    __slots__ = ()
    name = "narrow"

    @classmethod
    def of(cls, picture: Diagram) -> _Below:
        count = len(picture.lanes)
        return cls(max(LEAST_PITCH, (COLUMN - 2 * MARGIN) / count), count)

    @property
    def width(self) -> float:
        return 2 * MARGIN + self.pitch * self.lanes

    def top(self, picture: Diagram) -> float:
        return self.names_at(picture) + self.lanes * (LINE + 10) + LINE

    def row(self, mark: Mark, y: float) -> tuple[list[str], float]:
        drawn = [
            svg.stroke((self.x(lane), y), (self.x(lane), y + LINE + 8))
            for lane in range(self.lanes)
        ]
        drawn += self.mark(mark, y + LINE)
        y += LINE + 8
        texts = wrap(mark.text, self.columns)
        drawn += [
            svg.text(MARGIN, y + LINE * (i + 1), text, *_paint(mark))
            for i, text in enumerate(texts)
        ]
        return drawn, y + LINE * len(texts) + LINE // 2 + 2

    def header(self, picture: Diagram) -> Iterator[str]:
        """Yield the names in boxes, each below the one before, and the lanes around them."""
        y = self.names_at(picture)
        for lane, name in enumerate(picture.lanes):
            shown = cut(name, self.columns - 3)
            left, size = self.frame(shown, self.x(lane))
            for before in map(self.x, range(lane)):
                if not left - 2 <= before <= left + size + 2:  # it would cross the name
                    yield svg.stroke((before, y), (before, y + LINE + 10))
            yield from self.label(lane, shown, self.x(lane), y)
            y += LINE + 10
            yield svg.stroke((self.x(lane), y - 4), (self.x(lane), y))
        for x in map(self.x, range(self.lanes)):
            yield svg.stroke((x, y), (x, self.top(picture)))


def _paint(mark: Mark) -> tuple[str, str]:
    return (ALERT, "bold") if mark.alert else (INK, "normal")
