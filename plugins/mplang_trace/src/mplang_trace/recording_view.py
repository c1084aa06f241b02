"""Display of a recording: its programs, the user's lines, and the traffic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from mplang_analysis import Paragraphs, Rows, TextTable
from mplang_analysis.ext import Part, quoted_line

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
    """Return what is shown of a recording: the longest lines first, and nothing of the data.

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
        "recording.save('out.json') writes a trace for ui.perfetto.dev; recording.spans has all."
    )
    lost = f"{dropped:,} more spans were dropped." if dropped else ""
    return [
        TextTable("Programs", ["program", "seconds", ""], programs, failed),
        TextTable("Lines", ["line", "ops", *names], _lines(spans, len(names))),
        TextTable("Links", ["from", "to", "messages", "bytes"], traffic),
        Paragraphs([advice, *([lost] if lost else [])]),
    ]


def _lines(spans: Sequence[Span], parties: int) -> list[list[str]]:
    """Return the seconds of each party per line: of outermost ops, the longest lines first."""
    seconds: dict[str, list[float]] = defaultdict(lambda: [0.0] * parties)
    ops: dict[str, dict[str, None]] = defaultdict(dict)
    for span in _outermost(spans):
        line = str(span.facts.get("line", ""))
        if span.party is not None and line:
            seconds[line][span.party] += span.duration
            ops[line][span.name] = None
    ordered = sorted(seconds.items(), key=lambda item: -max(item[1]))
    return [
        [quoted_line(line), ", ".join(ops[line]), *(f"{each:.3f}" for each in took)]
        for line, took in ordered
    ]


def _outermost(spans: Sequence[Span]) -> list[Span]:
    """Return the ops that are in no other op of their party and thread; by their start."""
    ends: dict[tuple[int | None, int], float] = {}
    outermost = []
    for span in spans:
        key = span.party, span.thread
        if span.kind == "op" and span.begin >= ends.get(key, 0.0):
            ends[key] = span.end
            outermost.append(span)
    return outermost
