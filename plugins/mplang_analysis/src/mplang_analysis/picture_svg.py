"""Picture as SVG: inline in a page or a notebook, or a document of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mplang_analysis import svg
from mplang_analysis.diagram import Diagram, Mark
from mplang_analysis.html_page import ALERT
from mplang_analysis.party_names import quoted_line
from mplang_analysis.svg import CELL, COLORS, DARK, HOST, INK, LINE, MARGIN
from mplang_analysis.text_cells import cut, width, wrap

WORDS, GUTTER = 58, 32
"""Columns of the words beside the lanes, and at most of the lines."""

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

    gutter: float
    pitch: float
    lanes: int

    @classmethod
    def of(cls, picture: Diagram) -> _Beside:
        lines = [width(_shown(mark.line)) for mark in picture.marks]
        gutter = min(GUTTER, max(lines, default=0)) * CELL + 2 * MARGIN
        widest = max(map(width, picture.lanes)) * CELL + MARGIN
        return cls(gutter, max(120.0, widest + MARGIN), len(picture.lanes))

    name = "wide"
    """The class of the element."""

    def x(self, lane: int) -> float:
        return self.gutter + self.pitch * (lane + 0.5)

    @property
    def words(self) -> float:
        return self.gutter + self.pitch * self.lanes + MARGIN

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
            drawn, y = self.row(mark, y, mark.line if mark.line != before else None)
            before = mark.line
            body += drawn
        legend = wrap(picture.legend, self.columns)
        body += [svg.text(MARGIN, y + LINE * (i + 2), text) for i, text in enumerate(legend)]
        head += self.header(picture, y)
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

    def row(self, mark: Mark, y: float, line: str | None) -> tuple[list[str], float]:
        """Return a mark with its words, and where the next one begins.

        Args:
            mark: the mark.
            y: where it begins.
            line: its line; ``None`` if that is the line of the mark before it.
        """
        drawn = []
        if line is not None:
            drawn.append(svg.stroke((MARGIN, y), (self.width - MARGIN, y)))
            drawn.append(svg.text(MARGIN, y + LINE + 2, cut(_shown(line), GUTTER)))
        texts = wrap(mark.text, WORDS)
        drawn += self.mark(mark, y + LINE - 2)
        drawn += [
            svg.text(self.words, y + LINE * (i + 1) + 2, text, *_paint(mark))
            for i, text in enumerate(texts)
        ]
        return drawn, y + LINE * len(texts) + LINE // 2 + 2

    def header(self, picture: Diagram, bottom: float) -> Iterator[str]:
        """Yield the names in boxes, and the lanes below them."""
        top = self.names_at(picture)
        for lane, name in enumerate(picture.lanes):
            x = self.x(lane)
            yield svg.stroke((x, top + LINE + 6), (x, bottom))
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
        for x in map(self.x, mark.lanes):
            if mark.kind == "run":
                yield f'<circle cx="{x:g}" cy="{y:g}" r="4.5" fill="{color}"/>'
            else:
                corners = [(x - 7, y), (x, y - 7), (x + 7, y), (x, y + 7)]
                yield svg.polygon(corners, color)

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
        label = cut(mark.label, max(int(self.pitch / CELL) - 5, 0))
        start = here + side * self.pitch / 2 - width(label) * CELL / 2
        yield svg.text(start, y - 4, label, color)


class _Below(_Beside):
    """Layout of a picture for a narrow column: lines above the lanes, words below."""

    __slots__ = ()
    name = "narrow"

    @classmethod
    def of(cls, picture: Diagram) -> _Below:
        count = len(picture.lanes)
        return cls(MARGIN, max(LEAST_PITCH, (COLUMN - 2 * MARGIN) / count), count)

    @property
    def width(self) -> float:
        return 2 * self.gutter + self.pitch * self.lanes

    def top(self, picture: Diagram) -> float:
        return self.names_at(picture) + self.lanes * (LINE + 10) + LINE

    def row(self, mark: Mark, y: float, line: str | None) -> tuple[list[str], float]:
        drawn = []
        if line is not None:
            drawn.append(svg.stroke((MARGIN, y), (self.width - MARGIN, y)))
            shown = cut(_shown(line), self.columns)
            drawn.append(svg.text(MARGIN, y + LINE + 2, shown, INK, "bold"))
            y += (LINE + 6) * bool(shown)
        drawn += [
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

    def header(self, picture: Diagram, bottom: float) -> Iterator[str]:
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


def _shown(line: str) -> str:
    return quoted_line(line) if line else ""


def _paint(mark: Mark) -> tuple[str, str]:
    return (ALERT, "bold") if mark.alert else (INK, "normal")
