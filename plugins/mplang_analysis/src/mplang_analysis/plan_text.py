"""Plan in characters, for terminals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mplang_analysis.plan_chart import PlanChart
from mplang_analysis.text_cells import wrap

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

WIDEST = 100
"""Columns of a plan in a wider terminal."""

SIGNS = {"query": "●", "together": "◇", "move": "→", "result": "◆"}


def draw(chart: PlanChart, columns: int) -> Iterator[str]:
    """Yield the lines of a plan of at most some columns."""
    yield from wrap(chart.title, columns)
    for step in chart.steps:
        beside = f": {step.text}" if step.kind in ("move", "result") else ""
        lines = wrap(f"{chart.heading(step)}{beside}", max(columns - 4, 1))
        yield from (("  " if i else f"{SIGNS[step.kind]} ") + text for i, text in enumerate(lines))
        if step.text and not beside:
            yield from (f"    {text}" for text in wrap(step.text, max(columns - 4, 1)))


@dataclass(frozen=True, slots=True)
class RichPlan:
    """Plan for a console of rich, drawn as wide as it is."""

    chart: PlanChart

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        from rich.text import Text

        for text in draw(self.chart, min(WIDEST, options.max_width)):
            yield Text(text, no_wrap=True, overflow="crop")
        yield Text("")
