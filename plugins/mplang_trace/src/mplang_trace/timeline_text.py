"""Timeline in characters, for terminals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mplang_analysis.ext import cut_end, in_seconds, pad, width, wrap

from mplang_core.ext import printable
from mplang_trace.chart import Chart, counted, covered

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

WIDEST = 100
"""Columns of a timeline in a wider terminal."""

BARS = "▁▂▃▄▅▆▇█"

MOST_NAME = 16
"""Columns of the name of a party."""


def draw(chart: Chart, columns: int) -> Iterator[str]:
    """Yield the lines of a timeline of at most some columns."""
    names = [cut_end(printable(lane.name), MOST_NAME) for lane in chart.lanes]
    first = max(map(width, names), default=0) + 1
    bins = max(columns - first - 6, 10)
    each = chart.seconds / bins
    title = f"{printable(chart.title)}: " if chart.title else ""
    yield cut_end(f"{title}{in_seconds(chart.seconds)}, each character {in_seconds(each)}", columns)
    sends = [counted(lane.sends, bins, chart.seconds) for lane in chart.lanes]
    most = max((many for mine in sends for many, _ in mine), default=0)
    for name, lane, mine in zip(names, chart.lanes, sends, strict=True):
        blocks = [(block.begin, block.end) for block in lane.blocks]
        work = covered([*blocks, *lane.waits], bins, chart.seconds)
        waits = covered(lane.waits, bins, chart.seconds)
        row = "".join(map(_sign, work, waits, [each] * bins))
        yield f"{pad(name, first)}ops   {row}".rstrip()
        if lane.sends or any(other.sends for other in chart.lanes) or lane.waits:
            bars = "".join(_bar(many, most) for many, _ in mine)
            yield f"{' ' * first}sends {bars}".rstrip()
    legend = f"█ computes, ░ waits for another party, ▁ to █ messages sent, {most} at most"
    yield from wrap(legend, columns)


def _sign(work: float, wait: float, size: float) -> str:
    """Return the character of a bin: what takes more of it."""
    if work < size / 8:
        return " " if work <= 0 else "·"
    return "░" if wait * 2 >= work else "█"


def _bar(many: int, most: int) -> str:
    return " " if many == 0 else BARS[min(int(many / most * len(BARS)), len(BARS) - 1)]


@dataclass(frozen=True, slots=True)
class RichChart:
    """Timeline for a console of rich, drawn as wide as it is."""

    chart: Chart

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        from rich.text import Text

        for text in draw(self.chart, min(WIDEST, options.max_width)):
            yield Text(text, no_wrap=True, overflow="crop")
