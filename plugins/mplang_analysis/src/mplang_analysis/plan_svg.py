"""Plan as SVG: inline in a page or a notebook, or a document of its own."""

from __future__ import annotations

from collections.abc import Iterator

from mplang_analysis import svg
from mplang_analysis.plan_chart import LEGEND, PlanChart, PlanStep
from mplang_analysis.svg import CELL, DARK, HOST, INK, LINE, MARGIN
from mplang_analysis.text_cells import width, wrap

WIDE, NARROW = 960.0, 348.0
"""Pixels of a plan in a wide and in a narrow column."""

COLUMNS = 4
"""Parties of a plan that has a column for each; of more it is a list."""


def draw(chart: PlanChart) -> str:
    """Return two elements ``svg``, of which a style shows the one that fits its column."""
    return _wide(chart) + _Steps(chart, "narrow", NARROW).element()


def document(chart: PlanChart) -> str:
    """Return a document of SVG, which loads nothing."""
    return svg.document(_wide(chart))


def _wide(chart: PlanChart) -> str:
    layout = _Columns if len(chart.lanes) <= COLUMNS else _Steps
    return layout(chart, "wide", WIDE).element()


class _Steps:
    """Layout of a plan as a list: a box for each step, as wide as the drawing."""

    def __init__(self, chart: PlanChart, name: str, wide: float) -> None:
        self.chart, self.name, self.wide = chart, name, wide
        self.pitch = (wide - 2 * MARGIN) / len(chart.lanes)

    def element(self) -> str:
        """Return the element ``svg``."""
        room = int((self.wide - 2 * MARGIN) / CELL)
        body, y = [], float(MARGIN)
        for text in wrap(self.chart.title, room):
            body.append(svg.text(MARGIN, y + 8, text, INK, "bold"))
            y += LINE
        drawn, y = self.header(y)
        body += drawn
        for step in self.chart.steps:
            drawn, y = self.step(step, y)
            body += drawn
        for text in wrap(LEGEND, room) if any(each.secret for each in self.chart.steps) else ():
            body.append(svg.text(MARGIN, y + LINE, text))
            y += LINE
        label = self.chart.title
        return svg.element(label, self.name, self.wide, y + MARGIN, "".join(body))

    def header(self, y: float) -> tuple[list[str], float]:
        return [], y

    def step(self, step: PlanStep, y: float) -> tuple[list[str], float]:
        """Return a step, and where the next one begins."""
        return self.box(step, y, MARGIN, self.wide - 2 * MARGIN, self.chart.heading(step))

    def box(
        self, step: PlanStep, y: float, left: float, wide: float, heading: str
    ) -> tuple[list[str], float]:
        room = int(wide / CELL) - 2
        heads, lines = wrap(heading, room), wrap(step.text, room) if step.text else []
        high = LINE * (len(heads) + len(lines)) + 8
        name = self.chart.lanes[step.lanes[0]]
        color = HOST if len(step.lanes) > 1 else svg.color_of(name, self.chart.lanes)
        drawn = [svg.box(left, y, wide, high, color, INK if step.kind == "result" else "")]
        if step.secret:
            drawn.append(svg.dashed(left, y, wide, high))
        drawn += [
            svg.text(
                left + CELL, y + LINE * (i + 1), text, DARK, "bold" if i < len(heads) else "normal"
            )
            for i, text in enumerate([*heads, *lines])
        ]
        return drawn, y + high + 8


class _Columns(_Steps):
    """Layout of a plan with a column for each party."""

    def x(self, lane: int) -> float:
        return MARGIN + self.pitch * (lane + 0.5)

    def header(self, y: float) -> tuple[list[str], float]:
        drawn = []
        for lane, name in enumerate(self.chart.lanes):
            size = min((width(name) + 2) * CELL, self.pitch - 8)
            left = self.x(lane) - size / 2
            drawn.append(svg.box(left, y, size, LINE + 4, svg.color_of(name, self.chart.lanes)))
            shown = svg.fitted(name, size - CELL)
            drawn.append(svg.text(left + CELL, y + LINE - 2, shown, DARK, "bold"))
        return drawn, y + LINE + 16

    def step(self, step: PlanStep, y: float) -> tuple[list[str], float]:
        if step.kind == "move":
            return list(self.arrow(step, y)), y + 2 * LINE + 4
        first, last = min(step.lanes), max(step.lanes)
        left, wide = MARGIN + self.pitch * first + 6, self.pitch * (last - first + 1) - 12
        named = len(step.lanes) not in (1, last - first + 1)
        heading = self.chart.heading(step) if named else step.title
        return self.box(step, y, left, wide, heading)

    def arrow(self, step: PlanStep, y: float) -> Iterator[str]:
        """Yield an arrow from the sender to each receiver, with its words above it."""
        here, *ends = map(self.x, step.lanes)
        label = svg.fitted(step.text, self.pitch - 24)
        middle = here + (self.pitch if ends[0] > here else -self.pitch) / 2
        yield svg.text(middle - width(label) * CELL / 2, y + LINE - 4, label)
        at, dash = y + LINE + 4, "6 3" if step.secret else ""
        yield f'<circle cx="{here:g}" cy="{at:g}" r="4" fill="none" stroke="{INK}"/>'
        for end in ends:
            side = 1 if end > here else -1
            yield svg.stroke((here + side * 4, at), (end - side * 8, at), INK, 1.5, dash)
            tips = [(end, at), (end - side * 10, at - 5), (end - side * 10, at + 5)]
            yield svg.polygon(tips, INK)
