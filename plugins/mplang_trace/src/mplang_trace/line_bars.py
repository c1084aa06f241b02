"""Bars beside the user's lines, as SVG and in characters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mplang_analysis.ext import Drawing, cut_end, pad, svg, width, wrap, wrap_most

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

WIDE, NARROW, BARS, NARROW_BARS = 960.0, 348.0, 420.0, 308.0
"""Pixels of the drawing and of the longest bar, in a wide and in a narrow column."""

HIGH = 11.0
"""Pixels of a bar."""

WIDEST, IN_TEXT = 100, 24
"""Columns of the drawing in a wider terminal, and of the longest bar."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar.

    Attributes:
        name: what it is of; empty for the same as the bar before.
        unit: bars of one unit are drawn to one scale.
        value: its length.
        pale: how much of that, at its end, is pale.
        text: the words beside it.
        expected: whether it was told before the run.
    """

    name: str
    unit: str
    value: float
    pale: float
    text: str
    expected: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class LineBars(Drawing):
    """Bars below headings.

    Attributes:
        title: what it shows.
        groups: a heading each, with its bars.
    """

    title: str
    groups: tuple[tuple[str, tuple[Bar, ...]], ...]

    def scales(self) -> dict[str, float]:
        """Return the longest value of each unit."""
        longest: dict[str, float] = {}
        for _, bars in self.groups:
            for bar in bars:
                longest[bar.unit] = max(longest.get(bar.unit, 0.0), bar.value)
        return longest

    def legend(self) -> str:
        """Return what the signs mean that are there."""
        bars = [bar for _, mine in self.groups for bar in mine]
        texts = ["Pale: waiting for other parties."] * any(bar.pale for bar in bars)
        texts += ["Outlined: as expected before the run."] * any(bar.expected for bar in bars)
        return " ".join(texts)

    def text(self, columns: int = 80) -> str:
        """Return the bars in characters.

        Args:
            columns: their width.
        """
        return "\n".join(self._lines(columns))

    def _lines(self, columns: int) -> Iterator[str]:
        scales, longest = self.scales(), min(IN_TEXT, max((columns - 8) // 2, 1))
        yield cut_end(self.title, columns)
        for heading, bars in self.groups:
            yield cut_end(heading, columns)
            for bar in bars:
                size = _size(bar.value, scales[bar.unit], longest)
                pale = _size(min(bar.pale, bar.value), scales[bar.unit], longest)
                drawn = "▒" * size if bar.expected else "█" * (size - pale) + "░" * pale
                text, *more = wrap(bar.text, max(columns - longest - 8, 10))
                yield f"  {pad(bar.name, 5)}{pad(drawn, longest)} {text}"
                yield from (" " * (longest + 8) + each for each in more)
        legend = self.legend().replace("Pale", "░").replace("Outlined", "▒")
        yield from wrap(legend, columns) if legend else ()

    def rich(self) -> object:
        """Return the bars for rich: as wide as the terminal, up to 100 columns."""
        return _RichBars(self)

    def html(self) -> str:
        """Return the bars as HTML: inline SVG for wide and narrow columns."""
        return self._element("wide", WIDE, BARS) + self._element("narrow", NARROW, NARROW_BARS)

    def svg(self) -> str:
        """Return the bars as a document of SVG, which loads nothing."""
        return svg.document(self._element("wide", WIDE, BARS))

    def _element(self, name: str, wide: float, longest: float) -> str:
        columns, scales = int((wide - 2 * svg.MARGIN) / svg.CELL), self.scales()
        body, y = [svg.text(svg.MARGIN, svg.MARGIN + 8, self.title, svg.INK, "bold")], 40.0
        for heading, bars in self.groups:
            body.append(svg.stroke((svg.MARGIN, y), (wide - svg.MARGIN, y)))
            for text in wrap_most(heading, columns, 2):
                y += svg.LINE
                body.append(svg.text(svg.MARGIN, y + 2, text, svg.INK, "bold"))
            y += 8
            for bar in bars:
                drawn, y = _drawn(bar, y, scales[bar.unit], longest, name == "narrow")
                body += drawn
            y += 6
        for text in wrap(self.legend(), columns):
            y += svg.LINE
            body.append(svg.text(svg.MARGIN, y, text))
        return svg.element(self.title, name, wide, y + svg.MARGIN, "".join(body))


def _size(value: float, scale: float, longest: int) -> int:
    """Return the length of a bar; what is not nothing has one."""
    return max(round(value / scale * longest), 1) if value > 0 and scale > 0 else 0


def _drawn(
    bar: Bar, y: float, scale: float, longest: float, is_narrow: bool
) -> tuple[list[str], float]:
    """Return a bar with its words, beside it or above it, and where the next one begins."""
    label = f"{pad(bar.name, 5)} " if not is_narrow else f"{bar.name}: " if bar.name else ""
    left = svg.MARGIN + (0 if is_narrow else width(label) * svg.CELL)
    drawn = []
    if is_narrow:
        lines = wrap(label + bar.text, int(longest / svg.CELL))
        for text in lines:
            drawn.append(svg.text(svg.MARGIN, y + svg.LINE - 4, text))
            y += svg.LINE
    else:
        drawn.append(svg.text(svg.MARGIN, y + svg.LINE - 5, label.strip()))
        drawn.append(svg.text(left + longest + svg.CELL, y + svg.LINE - 5, bar.text))
    size = longest * bar.value / scale if scale > 0 else 0.0
    pale = longest * min(bar.pale, bar.value) / scale if scale > 0 else 0.0
    if bar.expected:
        drawn.append(_rect(left, y + 2, max(size, 2.0), "none", 1.0) if bar.value > 0 else "")
    elif bar.value > 0:
        drawn.append(_rect(left, y + 2, max(size - pale, 1.0), svg.INK, 0.75))
        drawn.append(_rect(left + size - pale, y + 2, pale, svg.INK, 0.3) if pale else "")
    return drawn, y + svg.LINE + 1


def _rect(x: float, y: float, wide: float, color: str, opacity: float) -> str:
    edge = f' stroke="{svg.INK}" stroke-dasharray="3 2"' if color == "none" else ""
    return (
        f'<rect x="{x:.5g}" y="{y:g}" width="{wide:.4g}" height="{HIGH:g}" fill="{color}" '
        f'fill-opacity="{opacity:g}"{edge}/>'
    )


@dataclass(frozen=True, slots=True)
class _RichBars:
    bars: LineBars

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        from rich.text import Text

        for text in self.bars.text(min(WIDEST, options.max_width)).split("\n"):
            yield Text(text, no_wrap=True, overflow="crop")
