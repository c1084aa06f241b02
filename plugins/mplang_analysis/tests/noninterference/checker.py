"""Comparison of two runs against the disclosure tables of their programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from mplang_analysis import Disclosure, DisclosureRow

from .generator import PARTIES, Source
from .lab import Delivery, bytes_of
from .link_logs import Frames

Reader: TypeAlias = int | Literal["host"]


@dataclass
class Stage:
    """What happened in one program of a chain.

    Attributes:
        deliveries: its messages.
        results: per output, and rank that holds it, the bytes; of a plain output.
        readable: per rank the bytes that the party can read in tokens, so far.
        failure: the public text of a failure; empty if there is none.
        failed_at: the party, op and line of it.
        frames: the messages between workers in processes of their own, by number and size.
        told: what such workers tell the host, without times.
        log: what the host recorded of the run, without times.
    """

    deliveries: list[Delivery] = field(default_factory=list)
    results: dict[tuple[int, int], bytes] = field(default_factory=dict)
    readable: dict[int, dict[Any, bytes]] = field(default_factory=dict)
    failure: str = ""
    failed_at: tuple[Any, ...] = ()
    frames: Frames = field(default_factory=dict)
    told: list[Any] = field(default_factory=list)
    log: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Finding:
    """A violation of the table.

    Attributes:
        kind: ``row``: a message has none. ``message``, ``result``, ``opened``: data of ``source``
            made a difference to ``reader``, of which no row tells; ``frames``: to number or size of
            messages; ``status``, ``log``: to what workers tell the host, to its recording.
        step: the number of the program in its chain.
        reader: who learns.
        source: whose data.
        detail: where.
    """

    kind: Literal["row", "message", "result", "opened", "failure", "frames", "status", "log"]
    step: int
    reader: Reader
    source: int | None
    detail: str


def tells(row: DisclosureRow, reader: Reader) -> bool:
    """Tell whether a row is about a reader, in a run that does not fail."""
    return row.what != "failure" and row.receiver in (reader, "everyone")


# -- every message has a row


def unlisted(step: int, table: Disclosure, stage: Stage) -> list[Finding]:
    """Find messages without a row: ops at a line, between two parties, beyond the rows of it."""
    rows = Counter((r.what, r.sender, r.receiver, r.line, r.type) for r in table.rows)
    ops = {
        (d.what, d.sender, d.receiver, d.line, d.type, _without_turns(d.key))
        for d in stage.deliveries
    }
    sent = Counter(op[:5] for op in ops)
    return [
        Finding("row", step, route[2], None, f"{count} x {route}, rows: {rows[route]}")
        for route, count in sent.items()
        if count > rows[route]
    ]


def unexpected(stages: Sequence[Stage]) -> list[Finding]:
    """Find failures that generated programs do not provoke: runs that would compare nothing."""
    return [
        Finding("failure", step, "host", None, stage.failure)
        for step, stage in enumerate(stages)
        if stage.failure and stage.failed_at[1] != "simp.bounded"
    ]


def _without_turns(key: str) -> str:
    """Return a message key without the turns of loops."""
    return "/".join(part.split(":")[-1].split("=")[0] for part in key.split("/"))


# -- what is not disclosed makes no difference


@dataclass
class Comparison:
    """Comparison of two runs of a chain that differ in the data of one party.

    Args:
        chain: the programs.
        tables: of each program.
        base: one run, per program.
        changed: the other.
        source: the party.
        liar: a party that deviates; then only what it gets is compared.
    """

    chain: Sequence[Source]
    tables: Sequence[Disclosure]
    base: Sequence[Stage]
    changed: Sequence[Stage]
    source: int
    liar: int | None = None

    def findings(self) -> list[Finding]:
        """Return what made a difference without a row."""
        readers = set(PARTIES) - {self.source}
        if self.liar is not None:
            readers &= {self.liar}
        found: list[Finding] = []
        for step, pair in enumerate(zip(self.base, self.changed, strict=False)):
            for reader in sorted(readers):
                found += self._messages(step, reader, *pair)
                found += self._opened(step, reader, *pair)
            if self.liar is None:
                found += self._results(step, *pair)
            if any(stage.failure for stage in pair):
                break
        return found

    def _messages(self, step: int, reader: int, base: Stage, changed: Stage) -> Iterable[Finding]:
        views = [_received(stage, reader) for stage in (base, changed)]
        aborted = bool(base.failure or changed.failure)
        for place in views[0].keys() | views[1].keys():
            one, other = (view.get(place) for view in views)
            if aborted and (one is None or other is None):
                continue  # whoever was ahead of the failure had sent more
            if one is not None and other is not None and one.data == other.data:
                continue
            seen = one or other
            assert seen is not None
            if one is not None and other is not None and self.liar is None:
                explained = self._row_names(step, seen)
            else:
                explained = self._told(step, reader, seen.line)
            if not explained:
                detail = f"{seen.what} {seen.sender}->{reader} at {seen.line}, {seen.key}"
                yield Finding("message", step, reader, self.source, detail)

    def _row_names(self, step: int, seen: Delivery) -> bool:
        """Tell whether a row of a message itself names the party."""
        return any(
            self.source in row.inputs
            and (row.form != "plain" or self.source in row.discloses)
            and (row.what, row.sender, row.line) == (seen.what, seen.sender, seen.line)
            and tells(row, seen.receiver)
            for row in self.tables[step].rows
        )

    def _told(self, step: int, reader: Reader, line: str | None = None) -> bool:
        """Tell whether a row up to a line tells a reader of the party's data."""
        earlier = [row for table in self.tables[:step] for row in table.rows]
        last = self._statement(step, line)
        here = [row for row in self.tables[step].rows if self._statement(step, row.line) <= last]
        return any(tells(row, reader) and self.source in row.discloses for row in earlier + here)

    def _statement(self, step: int, line: str | None) -> float:
        """Return the top-level statement of a line; without a line the end of the program."""
        if not line:
            return float("inf") if line is None else 0
        return self.chain[step].statements[int(line.rpartition(":")[2])]

    def _opened(self, step: int, reader: int, base: Stage, changed: Stage) -> Iterable[Finding]:
        one, other = base.readable[reader], changed.readable[reader]
        differing = [key for key in one.keys() & other.keys() if one[key] != other[key]]
        if not (base.failure or changed.failure):
            differing += one.keys() ^ other.keys()
        rows = [row for table in self.tables[: step + 1] for row in table.rows]
        told = any(
            tells(row, reader)
            and self.source in row.discloses
            and (row.form != "plain" or row.what == "reveal")
            for row in rows
        )
        if differing and not told:
            yield Finding("opened", step, reader, self.source, f"{differing[:3]}")

    def _results(self, step: int, base: Stage, changed: Stage) -> Iterable[Finding]:
        if bool(base.failure) != bool(changed.failure) and not any(
            row.what == "failure" and self.source in row.discloses for row in self.tables[step].rows
        ):
            yield Finding("failure", step, "host", self.source, base.failure or changed.failure)
        if base.failed_at == changed.failed_at and base.failure != changed.failure:
            yield Finding("failure", step, "host", self.source, f"{base.failure}/{changed.failure}")
        rows = [row for row in self.tables[step].rows if row.what == "result"]
        for (output, rank), data in base.results.items():
            if changed.results.get((output, rank), data) != data:
                row = rows[_position(self.chain[step], output, rank)]
                if row.sender != rank or self.source not in row.discloses:
                    detail = f"output {output} at {rank}, row {row}"
                    yield Finding("result", step, "host", self.source, detail)


def _received(stage: Stage, reader: int) -> Mapping[tuple[str, int], Delivery]:
    return {(each.key, each.sender): each for each in stage.deliveries if each.receiver == reader}


def _position(source: Source, output: int, rank: int) -> int:
    """Return the position of a row among those of results: outputs, then ranks."""
    earlier = (v for i, v in enumerate(source.outputs[:output]) if i not in source.kept)
    before = sum(len(v.holders or ()) for v in earlier)
    return before + sorted(source.outputs[output].holders or ()).index(rank)


def readable_bytes(found: Mapping[Any, Any]) -> dict[Any, bytes]:
    """Return what is readable as bytes."""
    return {
        key: str(value).encode() if isinstance(value, int) else bytes_of(value)
        for key, value in found.items()
    }
