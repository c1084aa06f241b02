"""Resources of each user line in a recording, beside the expected ones."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from mplang_analysis import Link, Report, TextTable
from mplang_analysis.ext import (
    LineTotal,
    Part,
    costs_by_line,
    in_curly_quotes,
    in_seconds,
    quoted_line,
    texts_by_line,
)

from mplang_core import Program
from mplang_trace.chart import in_bytes
from mplang_trace.line_bars import Bar, LineBars
from mplang_trace.nesting import Nested, nested
from mplang_trace.spans import Span

NOTES = (
    "Seconds are of the party that took longest at the line, waits for other parties included; "
    "messages and bytes are of all."
)
EXPECTED = (
    "Expected is what mp.analysis.costs tells of protocols before a run, at that network, and the "
    "values that move; what parties compute by themselves is not in it. At least: a loop counts "
    "once, or something is not counted."
)


@dataclass(frozen=True, slots=True)
class LineUse:
    """Resources used by a line.

    Attributes:
        line: the line, ``demo.py:7``; empty for what stands at none.
        source: its text; empty if it is not known.
        ops: the ops that ran there.
        times: how often the op that took longest ran at one party.
        seconds: per party how long its ops took, those of other lines inside of them left out.
        waiting: per party how much of that it waited for others.
        messages: how many were sent there.
        bytes: of them.
        expected: what it was expected to take; ``None`` if that was not asked for, or is nothing.
    """

    line: str
    source: str
    ops: tuple[str, ...]
    times: int
    seconds: tuple[float, ...]
    waiting: tuple[float, ...]
    messages: int
    bytes: int
    expected: LineTotal | None = None

    @property
    def longest(self) -> int:
        """The rank of the party that took longest."""
        return max(range(len(self.seconds)), key=self.seconds.__getitem__)


@dataclass(frozen=True, slots=True)
class LineUses(Report):
    """Resources used by lines: bars beside the text of each line, and a table.

    Attributes:
        names: the names of the parties by rank.
        rows: in the order in which lines first ran.
        has_expected: whether there is what was expected.
    """

    names: tuple[str, ...]
    rows: tuple[LineUse, ...]
    has_expected: bool = False

    def bars(self) -> LineBars:
        """Return seconds and bytes of each line as bars."""
        groups = [(_heading(row), tuple(self._bars(row))) for row in self.rows]
        return LineBars("What each line took", tuple(groups))

    def _bars(self, row: LineUse) -> Iterator[Bar]:
        expected = row.expected or LineTotal()
        least = "" if expected.known else "at least "
        took = max(row.seconds, default=0.0)
        if took:
            waited = row.waiting[row.longest]
            of_it = f", {in_seconds(waited)} of it waiting" if waited >= 1e-4 else ""
            text = f"{in_seconds(took)} at {self.names[row.longest]}{of_it}"
            yield Bar("time", "seconds", took, waited, text)
        if expected.seconds:
            text = f"{least}{in_seconds(expected.seconds)} expected of protocols"
            yield Bar("" if took else "time", "seconds", expected.seconds, 0.0, text, expected=True)
        if row.messages or expected.messages:
            text = _sent(row.bytes, row.messages) if row.messages else "nothing"
            yield Bar("sent", "bytes", row.bytes, 0.0, text)
        if expected.messages:
            text = f"{least}{_sent(expected.bytes, expected.messages)} expected"
            yield Bar("", "bytes", expected.bytes, 0.0, text, expected=True)

    def tables(self) -> list[TextTable]:
        """Return a table of seconds per party, messages and bytes."""
        columns = ["line", "ops", *self.names, "messages", "bytes"]
        columns += ["expected messages", "expected bytes"] * self.has_expected
        return [TextTable("Lines", columns, [self._texts(row) for row in self.rows])]

    def _texts(self, row: LineUse) -> list[str]:
        texts = [
            quoted_line(row.line) if row.line else "?",
            ", ".join(row.ops),
            *(f"{each:.3f}" for each in row.seconds),
            f"{row.messages:,}",
            f"{row.bytes:,}",
        ]
        if self.has_expected:
            expected = row.expected or LineTotal()
            texts += [f"{expected.messages:,}", f"{expected.bytes:,}"]
        return texts

    def parts(self, drawings: bool = True) -> Sequence[Part]:
        """Return the bars, then the table with its notes."""
        return [*([self.bars()] if drawings and self.rows else []), *Report.parts(self)]

    def remarks(self) -> Sequence[str]:
        """Return what the numbers are of."""
        return [NOTES, *([EXPECTED] if self.has_expected else [])]

    def to_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        return {"parties": list(self.names), "lines": [asdict(row) for row in self.rows]}


def lines_of(
    names: Sequence[str],
    spans: Iterable[Span],
    programs: Sequence[Program],
    link: Link | Mapping[str, float] | None,
) -> LineUses:
    """Return what each line took.

    Args:
        names: the names of the parties by rank.
        spans: spans by their start, those around others first.
        programs: what was run, as often as it was.
        link: the network for which it is said what was expected; ``None`` to say nothing.
    """
    sources = {line: text for each in programs for line, text in texts_by_line(each).items()}
    sums: dict[str, _Sums] = {}
    for each in nested(spans):
        op = each if each.span.kind == "op" else each.around
        line = "" if op is None else str(op.span.facts.get("line", ""))
        sums.setdefault(line, _Sums(len(names))).add(each)
    expected = _expected(programs, link) if link is not None else {}
    for line in expected:
        sums.setdefault(line, _Sums(len(names)))
    rows = [
        mine.row(line, sources.get(line, ""), expected.get(line)) for line, mine in sums.items()
    ]
    return LineUses(tuple(names), tuple(rows), link is not None)


def _expected(
    programs: Sequence[Program], link: Link | Mapping[str, float]
) -> dict[str, LineTotal]:
    """Return what the lines of programs are expected to take, as often as each was run."""
    runs = Counter(each.digest for each in programs)
    totals: dict[str, LineTotal] = {}
    for program in {each.digest: each for each in programs}.values():
        for line, each in costs_by_line(program, link).items():
            times = runs[program.digest] if line else 1  # a session is set up once
            totals[line] = totals.get(line, LineTotal()).plus(each, times)
    return totals


def _heading(row: LineUse) -> str:
    where = quoted_line(row.line) if row.line else "at no line, as what a session sets up once"
    times = f" ×{row.times}" if row.times > 1 else ""
    return f"{where}{times}" + (f" {in_curly_quotes(row.source)}" if row.source else "")


def _sent(size: int, messages: int) -> str:
    return f"{in_bytes(size)} in {messages:,} message{'s' * (messages != 1)}"


@dataclass(slots=True)
class _Sums:
    parties: int
    seconds: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    waiting: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    ops: dict[tuple[int, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    messages: int = 0
    bytes: int = 0

    def add(self, each: Nested) -> None:
        """Add a span of a party."""
        span = each.span
        assert span.party is not None
        if span.kind == "op":
            self.seconds[span.party] += max(each.own, 0.0)
            if each.leaf:
                self.ops[span.party, span.name].append(span.duration)
        elif span.kind == "wait":
            self.waiting[span.party] += span.duration
        elif span.kind == "send":
            self.messages += 1
            self.bytes += span.size

    def row(self, line: str, source: str, expected: LineTotal | None) -> LineUse:
        """Return the line with its sums."""
        ranks = range(self.parties)
        ops = tuple(dict.fromkeys(name for _, name in self.ops))
        times = len(max(self.ops.values(), key=sum, default=[]))
        seconds = tuple(self.seconds.get(rank, 0.0) for rank in ranks)
        waiting = tuple(min(self.waiting.get(rank, 0.0), seconds[rank]) for rank in ranks)
        return LineUse(
            line, source, ops, times, seconds, waiting, self.messages, self.bytes, expected
        )
