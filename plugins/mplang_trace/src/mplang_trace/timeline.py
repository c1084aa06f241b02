"""Timeline of a recording: what each party computes, waits for and sends, and when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mplang_analysis.ext import Drawing

from mplang_trace import timeline_svg, timeline_text
from mplang_trace.chart import Chart, OpBlock, PartyLane
from mplang_trace.nesting import nested
from mplang_trace.spans import Span


@dataclass(frozen=True, slots=True, repr=False)
class Timeline(Drawing, Chart):
    """A chart that draws itself, as SVG or in characters."""

    def text(self, columns: int = 80) -> str:
        """Return the timeline in characters.

        Args:
            columns: its width.
        """
        return "\n".join(timeline_text.draw(self, columns))

    def rich(self) -> object:
        """Return the timeline for rich: as wide as the terminal, up to 100 columns."""
        return timeline_text.RichChart(self)

    def html(self) -> str:
        """Return the timeline as HTML: inline SVG for wide and narrow columns."""
        return timeline_svg.draw(self)

    def svg(self) -> str:
        """Return the timeline as a document of SVG, which loads nothing."""
        return timeline_svg.document(self)


def timeline_of(names: Sequence[str], spans: Sequence[Span]) -> Timeline:
    """Return the timeline of spans.

    Args:
        names: the names of the parties by rank.
        spans: spans by their start, those around others first.

    Example:
        >>> spans = [Span("jax.run", "op", 0, 7.0, 0.25), Span("wait for P0", "wait", 1, 7.0, 0.25)]
        >>> print(timeline_of(["bank", "shop"], spans).text(40))
        250 ms, each character 8.6 ms
        bank ops   █████████████████████████████
        shop ops   ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
             sends
        █ computes, ░ waits for another party, ▁
        to █ messages sent, 0 at most
    """
    zero = min((span.begin for span in spans), default=0.0)
    seconds = max((span.end - zero for span in spans), default=0.0)
    blocks: dict[int | None, list[OpBlock]] = defaultdict(list)
    waits: dict[int | None, list[tuple[float, float]]] = defaultdict(list)
    sends: dict[int | None, list[tuple[float, int]]] = defaultdict(list)
    host = [span for span in spans if span.party is None]
    programs = [span for span in host if span.kind == "program"]
    fetches = [span for span in host if span.kind == "fetch"]
    blocks[None] = [_block(span, zero) for span in _by_start([*programs, *fetches])]
    for each in nested(spans):
        span = each.span
        if span.kind == "op" and each.leaf:
            blocks[span.party].append(_block(span, zero))
        elif span.kind == "wait":
            waits[span.party].append((span.begin - zero, span.end - zero))
        elif span.kind == "send":
            sends[span.party].append((span.begin - zero, span.size))
    ranks = ([None] if blocks[None] else []) + list(range(len(names)))
    lanes = [
        PartyLane(
            "the host" if rank is None else names[rank],
            tuple(blocks[rank]),
            tuple(waits[rank]),
            tuple(sends[rank]),
        )
        for rank in ranks
    ]
    return Timeline(", ".join(dict.fromkeys(each.name for each in programs)), seconds, tuple(lanes))


def _by_start(spans: Iterable[Span]) -> list[Span]:
    return sorted(spans, key=lambda span: span.begin)


def _block(span: Span, zero: float) -> OpBlock:
    begin, line = span.begin - zero, str(span.facts.get("line", ""))
    return OpBlock(begin, begin + span.duration, span.name, line, "failed" in span.facts)
