"""Elements of SVG in the colors of the page around them."""

from __future__ import annotations

import html
from collections.abc import Sequence

from mplang_analysis.html_page import SVG_STYLE
from mplang_analysis.text_cells import cut_end, width

CELL, SIZE = 7.2, 12
"""Width of a character and size of the font, in pixels; texts are stretched to fit."""

LINE, MARGIN = 16, 16
"""Height of a line of text, and the space around the picture, in pixels."""

INK, PALE, DARK = "currentColor", "#8888", "#222222"
"""Colors of texts and signs, of lines behind them, and of texts on a party's color."""


COLORS = ("#cfe2ff", "#ffe5b4", "#d1f0d1", "#f5d0e6", "#e2d9f3", "#fff3b0", "#c8f1f1", "#f6d5c5")
HOST = "#eeeeee"
"""Fill colors of parties, which repeat, and of the host."""


def color_of(name: str, parties: Sequence[str]) -> str:
    """Return the fill color of a party, or of who is none, as the host."""
    return COLORS[parties.index(name) % len(COLORS)] if name in parties else HOST


def element(label: str, name: str, wide: float, high: float, body: str) -> str:
    """Return the element ``svg``.

    Args:
        label: what it shows, for who does not see it; not escaped yet.
        name: its class.
        wide: its width in pixels; it shrinks with its column.
        high: its height.
        body: what is in it.
    """
    return (
        f'<svg class="{name}" role="img" aria-label="{html.escape(label)}" width="{wide:g}" '
        f'height="{high:g}" viewBox="0 0 {wide:g} {high:g}" font-size="{SIZE}" '
        'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace">'
        f"{body}</svg>"
    )


def document(drawn: str) -> str:
    """Return an element as a document of its own."""
    head = '<?xml version="1.0" encoding="utf-8"?>\n<svg xmlns="http://www.w3.org/2000/svg"'
    tag, close, body = drawn.removeprefix("<svg").partition(">")
    return f"{head}{tag}{close}<style>{SVG_STYLE}</style>{body}"


def text(x: float, y: float, shown: str, color: str = INK, weight: str = "normal") -> str:
    """Return a text from a point on its base line; empty if there is none."""
    if not shown:
        return ""
    return (
        f'<text x="{x:g}" y="{y:g}" fill="{color}" font-weight="{weight}" '
        f'textLength="{width(shown) * CELL:g}" lengthAdjust="spacingAndGlyphs">'
        f"{html.escape(shown)}</text>"
    )


def stroke(
    start: tuple[float, float],
    end: tuple[float, float],
    color: str = PALE,
    wide: float = 1,
    dash: str = "",
) -> str:
    """Return a straight line."""
    (x1, y1), (x2, y2) = start, end
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{color}" '
        f'stroke-width="{wide:g}"{dashed}/>'
    )


def polygon(corners: list[tuple[float, float]], color: str) -> str:
    """Return a filled polygon."""
    points = " ".join(f"{x:g},{y:g}" for x, y in corners)
    return f'<polygon points="{points}" fill="{color}"/>'


def box(x: float, y: float, wide: float, high: float, color: str, edge: str = "") -> str:
    """Return a filled box with round corners."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" rx="4" fill="{color}" '
        f'stroke="{edge or PALE}"/>'
    )


def dashed(x: float, y: float, wide: float, high: float) -> str:
    """Return the dashed edge of a box, as of what is protected."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" rx="4" fill="none" '
        f'stroke="{INK}" stroke-width="1.5" stroke-dasharray="6 3"/>'
    )


def fitted(shown: str, wide: float) -> str:
    """Return the begin of a text that is at most some pixels wide."""
    return cut_end(shown, max(int(wide / CELL), 1))


def tint(x: float, y: float, wide: float, high: float, color: str) -> str:
    """Return a box that is a little colored, with a bar at its left."""
    rest = f'y="{y:g}" height="{high:g}" fill="{color}"'
    return (
        f'<rect x="{x:g}" width="{wide:g}" {rest} fill-opacity="0.12"/>'
        f'<rect x="{x:g}" width="4" {rest}/>'
    )
