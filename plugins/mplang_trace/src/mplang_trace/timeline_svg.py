"""Timeline as SVG: inline in a page or a notebook, or a document of its own."""

from __future__ import annotations

import html
from collections.abc import Iterator

from mplang_analysis.ext import ALERT, cut_end, in_seconds, quoted_line, svg, width, wrap

from mplang_core.ext import printable
from mplang_trace.chart import Chart, OpBlock, PartyLane, counted, covered, in_bytes, merged, ticks

WIDE, NARROW = 960.0, 348.0
"""Pixels of a timeline in a wide and in a narrow column."""

BIN = 4.0
"""Pixels of a bin of waits and messages."""

OPS, WAITS, SENDS = 20.0, 8.0, 18.0
"""Heights of the rows of a lane, in pixels."""

TICK = 90.0
"""Pixels between two ticks, at least."""


def draw(chart: Chart) -> str:
    """Return two elements ``svg``, of which a style shows the one that fits its column."""
    return _Drawing(chart, "wide", WIDE).element() + _Drawing(chart, "narrow", NARROW).element()


def document(chart: Chart) -> str:
    """Return a document of SVG, which loads nothing."""
    return svg.document(_Drawing(chart, "wide", WIDE).element())


class _Drawing:
    """Drawing of a chart in a width: pixels from the upper left corner."""

    def __init__(self, chart: Chart, name: str, wide: float) -> None:
        self.chart, self.name, self.wide = chart, name, wide
        self.room = wide - 2 * svg.MARGIN
        self.columns = int(self.room / svg.CELL)
        self.bins = int(self.room / BIN)
        self.parties = [lane.name for lane in chart.lanes if lane.name != "the host"]
        sends = [counted(lane.sends, self.bins, chart.seconds) for lane in chart.lanes]
        self.most = max((many for mine in sends for many, _ in mine), default=0)

    def x(self, at: float) -> float:
        """Return where a time is."""
        return svg.MARGIN + (at / self.chart.seconds * self.room if self.chart.seconds else 0)

    def element(self) -> str:
        """Return the element ``svg``."""
        title = f"{printable(self.chart.title) or 'Recording'}: {in_seconds(self.chart.seconds)}"
        body, y = [], float(svg.MARGIN)
        for text in wrap(title, self.columns):
            body.append(svg.text(svg.MARGIN, y + 8, text, svg.INK, "bold"))
            y += svg.LINE
        top = y + svg.LINE
        y = top + 4
        for lane in self.chart.lanes:
            drawn, y = self.lane(lane, y)
            body += drawn
        grid = list(self.axis(top, y - 8))
        y += 8
        for text in wrap(self.legend(), self.columns):
            body.append(svg.text(svg.MARGIN, y, text))
            y += svg.LINE
        return svg.element(f"Timeline of {title}", self.name, self.wide, y, "".join(grid + body))

    def legend(self) -> str:
        texts = ["Blocks are ops"]
        if any(lane.waits for lane in self.chart.lanes):
            texts.append("grey below them is waiting for another party")
        if self.most:
            each = in_seconds(self.chart.seconds / self.bins)
            texts.append(f"bars are messages sent, {self.most} in {each} at most")
        return "; ".join(texts) + "."

    def axis(self, top: float, bottom: float) -> Iterator[str]:
        """Yield the ticks, and a line below each."""
        for at in ticks(self.chart.seconds, int(self.room / TICK)):
            yield svg.stroke((self.x(at), top), (self.x(at), bottom))
            label = in_seconds(at) if at else "0"
            left = min(self.x(at), self.wide - svg.MARGIN - width(label) * svg.CELL)
            yield svg.text(left, top - 3, label)

    def lane(self, lane: PartyLane, y: float) -> tuple[list[str], float]:
        """Return a lane, and where the next one begins."""
        name = cut_end(printable(lane.name), self.columns - 2)
        size, color = (width(name) + 2) * svg.CELL, svg.color_of(lane.name, self.parties)
        drawn = [svg.box(svg.MARGIN, y, size, svg.LINE + 4, color)]
        drawn.append(svg.text(svg.MARGIN + svg.CELL, y + svg.LINE - 2, name, svg.DARK))
        summary, first = lane.summary(), int((self.room - size) / svg.CELL) - 2
        if width(summary) <= first:
            drawn.append(svg.text(svg.MARGIN + size + svg.CELL, y + svg.LINE - 2, summary))
            y += svg.LINE + 8
        else:
            y += svg.LINE + 6
            for text in wrap(summary, self.columns):
                drawn.append(svg.text(svg.MARGIN, y + svg.LINE - 4, text))
                y += svg.LINE
            y += 2
        for block in merged(lane.blocks, 1.5 * self.chart.seconds / self.room):
            drawn += self.block(block, y, color)
        y += OPS
        if lane.waits:
            drawn += self.waits(lane, y)
            y += WAITS
        if self.most and lane.sends:
            drawn += self.sends(lane, y)
            y += SENDS
        return drawn, y + 10

    def block(self, block: OpBlock, y: float, color: str) -> Iterator[str]:
        """Yield an op, with its name and line where there is room."""
        left, right = self.x(block.begin), self.x(block.end)
        times = f" ×{block.count}" if block.count > 1 else ""
        line = quoted_line(block.line) if block.line else ""
        op = printable(block.name) + times + (", failed" if block.failed else "")
        took = in_seconds(block.end - block.begin)
        yield _rect(
            left, y, max(right - left, 0.5), OPS, color, f"{line} {op}, {took}".strip(),
            stroke=ALERT if block.failed else svg.PALE,
        )  # fmt: skip
        room = (right - left) / svg.CELL - 1
        for text in (f"{line} {op}".strip(), line, op):
            if text and width(text) <= room:
                yield svg.text(left + svg.CELL / 2, y + 14, text, svg.DARK)
                return

    def waits(self, lane: PartyLane, y: float) -> Iterator[str]:
        """Yield how much of each bin is waiting, by the depth of the grey."""
        each = self.chart.seconds / self.bins
        for i, waited in enumerate(covered(lane.waits, self.bins, self.chart.seconds)):
            share = round(waited / each, 1) if each else 0
            if share:
                tooltip = f"waits {in_seconds(waited)} of {in_seconds(each)}"
                x = svg.MARGIN + i * BIN
                yield _rect(x, y + 2, BIN, WAITS - 2, svg.INK, tooltip, opacity=0.6 * min(share, 1))

    def sends(self, lane: PartyLane, y: float) -> Iterator[str]:
        """Yield the messages of each bin, by the height of a bar."""
        sent = counted(lane.sends, self.bins, self.chart.seconds)
        for i, (many, size) in enumerate(sent):
            if many:
                high = max((SENDS - 3) * many / self.most, 2)
                tooltip = f"{many} message{'s' * (many > 1)}, {in_bytes(size)}"
                x = svg.MARGIN + i * BIN
                yield _rect(x, y + SENDS - high, BIN - 1, high, svg.INK, tooltip)


def _rect(
    x: float,
    y: float,
    wide: float,
    high: float,
    color: str,
    tooltip: str,
    opacity: float = 1.0,
    stroke: str = "",
) -> str:
    """Return a box that tells something where a mouse rests on it."""
    see_through = f' fill-opacity="{opacity:g}"' if opacity < 1 else ""
    framed = f' stroke="{stroke}"' if stroke else ""
    return (
        f'<rect x="{x:.5g}" y="{y:g}" width="{wide:.4g}" height="{high:.3g}" fill="{color}"'
        f"{see_through}{framed}><title>{html.escape(tooltip)}</title></rect>"
    )
