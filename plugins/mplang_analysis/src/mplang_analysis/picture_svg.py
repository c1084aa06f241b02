"""Picture as SVG: inline in a page or a notebook, or a document of its own."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass

from mplang_analysis.diagram import LEGEND, Diagram, Mark
from mplang_analysis.graph_view import COLORS
from mplang_analysis.party_names import quoted_line
from mplang_analysis.text_cells import cut, width, wrap

CELL, SIZE = 7.2, 12
"""Width of a character and size of the font, in pixels; texts are stretched to fit."""

LINE, MARGIN = 16, 16
"""Height of a line of text, and the space around the picture, in pixels."""

WORDS, GUTTER = 58, 32
"""Columns of the words beside the lanes, and at most of the lines."""

INK, PALE, RED = "#333333", "#bbbbbb", "#c0140c"


def draw(picture: Diagram) -> str:
    """Return the element ``svg``; all texts escaped, nothing loaded."""
    return _Canvas.of(picture).element(picture)


@dataclass(frozen=True, slots=True)
class _Canvas:
    """Geometry of a picture, in pixels from the upper left corner."""

    gutter: float
    pitch: float
    lanes: int

    @classmethod
    def of(cls, picture: Diagram) -> _Canvas:
        lines = [width(quoted_line(mark.line)) for mark in picture.marks]
        gutter = min(GUTTER, max(lines, default=0)) * CELL + 2 * MARGIN
        widest = max(map(width, picture.lanes)) * CELL + MARGIN
        return cls(gutter, max(120.0, widest + MARGIN), len(picture.lanes))

    def x(self, lane: int) -> float:
        return self.gutter + self.pitch * (lane + 0.5)

    @property
    def words(self) -> float:
        return self.gutter + self.pitch * self.lanes + MARGIN

    @property
    def width(self) -> float:
        return self.words + WORDS * CELL + MARGIN

    def element(self, picture: Diagram) -> str:
        top = MARGIN + 4 * LINE
        body, y, before = [], float(top), None
        for mark in picture.marks:
            if mark.line != before:
                body.append(_stroke(MARGIN, y, self.width - MARGIN, y, "#eeeeee"))
                if mark.line:
                    shown = cut(quoted_line(mark.line), GUTTER)
                    body.append(_text(MARGIN, y + LINE + 2, shown))
            before = mark.line
            texts = wrap(mark.text, WORDS)
            body += self.mark(mark, y + LINE - 2)
            body += [
                _text(self.words, y + LINE * (i + 1) + 2, text, *_paint(mark))
                for i, text in enumerate(texts)
            ]
            y += LINE * len(texts) + LINE // 2 + 2
        legend = wrap(LEGEND, int((self.width - 2 * MARGIN) / CELL))
        body += [_text(MARGIN, y + LINE * (i + 2), text) for i, text in enumerate(legend)]
        height = y + LINE * (len(legend) + 1) + MARGIN
        head = [_text(MARGIN, MARGIN + LINE, cut(picture.title, 100), INK, "bold")]
        head += self.header(picture, y)
        label = html.escape(f"Picture of {picture.title}")
        return (
            f'<svg role="img" aria-label="{label}" width="{self.width:g}" height="{height:g}" '
            f'viewBox="0 0 {self.width:g} {height:g}" font-size="{SIZE}" '
            'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace">'
            f'<rect width="{self.width:g}" height="{height:g}" fill="#ffffff"/>'
            f"{''.join(head)}{''.join(body)}</svg>"
        )

    def header(self, picture: Diagram, bottom: float) -> Iterator[str]:
        """Yield the names in boxes, and the lanes below them."""
        for lane, name in enumerate(picture.lanes):
            color = "#eeeeee" if lane == self.lanes - 1 else COLORS[lane % len(COLORS)]
            size = width(name) * CELL
            top, x = MARGIN + 2 * LINE - 2, self.x(lane)
            yield _stroke(x, top + LINE + 6, x, bottom, PALE)
            yield (
                f'<rect x="{x - size / 2 - 8:g}" y="{top:g}" width="{size + 16:g}" '
                f'height="{LINE + 6}" rx="4" fill="{color}" stroke="{PALE}"/>'
            )
            yield _text(x - size / 2, top + LINE, name)

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
                yield _polygon(corners, color)

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
            yield _stroke(here, y, far - side * 8, y, color, 2.5 if mark.alert else 1.5, dash)
            for x in ends:
                yield _polygon([(x, y), (x - side * 10, y - 5), (x - side * 10, y + 5)], color)
        yield f'<circle cx="{here:g}" cy="{y:g}" r="4" fill="#ffffff" stroke="{color}"/>'
        side = 1 if mark.lanes[0] > mark.sender else -1
        label = cut(mark.label, int(self.pitch / CELL) - 5)
        start = here + side * self.pitch / 2 - width(label) * CELL / 2
        yield _text(start, y - 4, label, color)


def _paint(mark: Mark) -> tuple[str, str]:
    return (RED, "bold") if mark.alert else (INK, "normal")


def _text(x: float, y: float, text: str, color: str = INK, weight: str = "normal") -> str:
    if not text:
        return ""
    return (
        f'<text x="{x:g}" y="{y:g}" fill="{color}" font-weight="{weight}" '
        f'textLength="{width(text) * CELL:g}" lengthAdjust="spacingAndGlyphs">'
        f"{html.escape(text)}</text>"
    )


def _stroke(
    x1: float, y1: float, x2: float, y2: float, color: str, wide: float = 1, dash: str = ""
) -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{color}" '
        f'stroke-width="{wide:g}"{dashed}/>'
    )


def _polygon(corners: list[tuple[float, float]], color: str) -> str:
    points = " ".join(f"{x:g},{y:g}" for x, y in corners)
    return f'<polygon points="{points}" fill="{color}"/>'
