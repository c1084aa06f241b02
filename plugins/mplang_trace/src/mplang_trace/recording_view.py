"""Display of a recording: its spans, its programs, and the traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mplang_analysis import Paragraphs, Rows, TextTable
from mplang_analysis.ext import Part

from mplang_trace.spans import LinkUse, Span


class SpanList(list[Span]):
    """Spans that show as a table.

    Example:
        >>> SpanList([Span("simp.add", "op", 0, 0.0, 0.25, facts={"line": "demo.py:7"})])
          name      kind  party  line       seconds  bytes
          simp.add  op    0      demo.py:7  0.2500
    """

    def __repr__(self) -> str:
        return repr(self._rows())

    def _repr_html_(self) -> str:
        return self._rows()._repr_html_()

    def _rows(self) -> Rows:
        return Rows(
            {
                "name": span.name,
                "kind": span.kind,
                "party": "host" if span.party is None else span.party,
                "line": span.facts.get("line", ""),
                "seconds": f"{span.duration:.4f}",
                "bytes": span.facts.get("bytes", ""),
            }
            for span in self
        )


def parts_of(
    names: Sequence[str],
    spans: Sequence[Span],
    links: Mapping[tuple[int, int], LinkUse],
    dropped: int,
) -> Sequence[Part]:
    """Return tables of the programs and links of a recording.

    Args:
        names: the names of the parties.
        spans: its spans, by their start.
        links: the traffic of each link.
        dropped: how many more spans there were.
    """
    programs = [
        [span.name, f"{span.duration:.3f}", "failed" if "failed" in span.facts else ""]
        for span in spans
        if span.kind == "program"
    ]
    failed = [i for i, row in enumerate(programs) if row[-1]]
    traffic = [
        [names[sender], names[receiver], f"{use.messages:,}", f"{use.bytes:,}"]
        for (sender, receiver), use in links.items()
    ]
    advice = (
        "recording.save('out.json') writes a trace for ui.perfetto.dev, 'out.html' this page; "
        "recording.spans has all."
    )
    lost = f"{dropped:,} more spans were dropped." if dropped else ""
    return [
        TextTable("Programs", ["program", "seconds", ""], programs, failed),
        TextTable("Links", ["from", "to", "messages", "bytes"], traffic),
        Paragraphs([advice, *([lost] if lost else [])]),
    ]
