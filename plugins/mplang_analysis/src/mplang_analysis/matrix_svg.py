"""Matrix as SVG: inline in a page or a notebook, or a document of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mplang_analysis import svg
from mplang_analysis.grid import LEGEND, LearnerGrid
from mplang_analysis.html_page import ALERT
from mplang_analysis.svg import CELL, DARK, HOST, INK, LINE, MARGIN
from mplang_analysis.text_cells import width, wrap

COLUMNS = 6
"""Learners of a matrix that has a column for each; of more it is a list."""

LEAST, MOST = 10, 24
"""Characters of a column."""

NARROW, WIDE = 348.0, 760.0
"""Pixels of a list in a narrow and in a wide column."""


def draw(grid: LearnerGrid) -> str:
    """Return two elements ``svg``, of which a style shows the one that fits its column."""
    return _wide(grid) + _list(grid, "narrow", NARROW)


def document(grid: LearnerGrid) -> str:
    """Return a document of SVG, which loads nothing."""
    return svg.document(_wide(grid))


def _wide(grid: LearnerGrid) -> str:
    return _table(grid) if len(grid.learners) <= COLUMNS else _list(grid, "wide", WIDE)


def _table(grid: LearnerGrid) -> str:
    """Return the matrix with a column for each learner."""
    heads = [", ".join(names) for names in grid.learners]
    columns = zip(heads, *grid.cells, strict=True)
    sizes = [min(MOST, max(LEAST, *map(width, texts))) for texts in columns]
    owners = [wrap(f"{owner}'s data", MOST) for owner in grid.owners]
    first = max(width(line) for lines in owners for line in lines)
    lefts = [MARGIN + (first + 3) * CELL]
    for size in sizes:
        lefts.append(lefts[-1] + (size + 2.5) * CELL)
    wide = lefts[-1] + MARGIN
    body, y = _heading(grid.title, wide)

    def row(head: list[str], color: str, texts: Sequence[str], colors: Sequence[str]) -> None:
        nonlocal y
        wrapped = [wrap(text, size) for text, size in zip(texts, sizes, strict=True)]
        high = LINE * max(map(len, [head, *wrapped])) + 10
        if color:
            body.append(svg.box(MARGIN, y + 2, lefts[0] - MARGIN - 4, high - 4, color))
            body.extend(_lines(head, MARGIN + CELL, y, DARK))
        for i, lines in enumerate(wrapped):
            size = lefts[i + 1] - lefts[i] - 4
            alert = colors[i] == ALERT
            shape = svg.tint if alert else svg.box
            body.append(shape(lefts[i], y + 2, size, high - 4, colors[i]))
            ink, weight = (ALERT, "bold") if alert else (INK if color else DARK, "normal")
            body.extend(_lines(lines, lefts[i] + CELL + 3, y, ink, weight))
        y += high

    row([], "", heads, [_color(grid, names) for names in grid.learners])
    for owner, lines, cells in zip(grid.owners, owners, grid.cells, strict=True):
        colors = [ALERT if grid.alert(text) else "none" for text in cells]
        row(lines, svg.color_of(owner, grid.parties), cells, colors)
    return _ended(grid, "wide", wide, body, y)


def _list(grid: LearnerGrid, name: str, wide: float) -> str:
    """Return the matrix with a line for each learner, below whose data it is."""
    body, y = _heading(grid.title, wide)
    room = int((wide - 2 * MARGIN) / CELL)
    for owner, cells in zip(grid.owners, grid.cells, strict=True):
        lines = wrap(f"{owner}'s data", room - 2)
        size, high = max(map(width, lines)), LINE * len(lines) + 6
        color = svg.color_of(owner, grid.parties)
        body += [svg.box(MARGIN, y, (size + 2) * CELL, high, color)]
        body += _lines(lines, MARGIN + CELL, y - 2, DARK)
        y += high + 2
        for names, text in zip(grid.learners, cells, strict=True):
            lines, alert = wrap(f"{', '.join(names)}: {text}", room - 2), grid.alert(text)
            if alert:
                body.append(
                    svg.tint(MARGIN, y + 2, wide - 2 * MARGIN, LINE * len(lines) + 4, ALERT)
                )
            paint = (ALERT, "bold") if alert else (INK, "normal")
            body += _lines(lines, MARGIN + CELL, y - 2, *paint)
            y += LINE * len(lines) + 6
        y += 8
    return _ended(grid, name, wide, body, y)


def _heading(title: str, wide: float) -> tuple[list[str], float]:
    """Return the title, and where what follows begins, from above."""
    lines = wrap(title, int((wide - 2 * MARGIN) / CELL))
    return list(_lines(lines, MARGIN, MARGIN - 8, INK, "bold")), MARGIN + LINE * len(lines) + 4


def _ended(grid: LearnerGrid, name: str, wide: float, body: list[str], y: float) -> str:
    """Return the element, with the legend at its end."""
    legend = wrap(LEGEND, int((wide - 2 * MARGIN) / CELL))
    body += _lines(legend, MARGIN, y + 4, INK)
    label = f"Matrix: {grid.title}"
    return svg.element(label, name, wide, y + LINE * len(legend) + MARGIN + 4, "".join(body))


def _color(grid: LearnerGrid, names: Sequence[str]) -> str:
    """Return the color of a column; of several learners that of none."""
    return svg.color_of(names[0], grid.parties) if len(names) == 1 else HOST


def _lines(
    lines: Sequence[str], x: float, y: float, ink: str, weight: str = "normal"
) -> Iterator[str]:
    """Yield lines of text, the first one a line below."""
    for i, line in enumerate(lines):
        yield svg.text(x, y + LINE * (i + 1), line, ink, weight)
