"""Spans: what ran for how long. A recorder notes those of one party in one run."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from mplang_core.ext import Operation

MOST = 100_000  # spans that a recorder keeps
MAX_TEXT = 300  # characters of a fact
_EPOCH = time.time() - time.perf_counter()

Facts: TypeAlias = dict[str, str | int]
Kind: TypeAlias = Literal["program", "op", "send", "wait", "fetch"]


def now() -> float:
    """Return the time in seconds since 1970; it never goes back within a process."""
    return _EPOCH + time.perf_counter()


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took a while.

    Attributes:
        name: the op, or what was done with which party.
        kind: a ``program`` that the host evaluates; an ``op``; to ``send`` a message; to
            ``wait`` for one; to ``fetch`` data.
        party: whose span it is; ``None`` for the host.
        begin: in seconds since 1970, by the host's clock.
        duration: in seconds.
        thread: tells the threads of a party apart; the spans of one thread are nested.
        facts: what else is known: ``run``, ``line`` of the source, ``peer``, ``key`` of a
            message, ``bytes``, ``failed``.
    """

    name: str
    kind: Kind
    party: int | None
    begin: float
    duration: float
    thread: int = 0
    facts: Facts = field(default_factory=dict)

    @property
    def end(self) -> float:
        """When it ended."""
        return self.begin + self.duration


class SpanRecorder:
    """Notes the spans of one party in one run; a :class:`~mplang_core.ext.Recorder`.

    Args:
        party: the party; ``None`` for the host.
        run: the run.
        most: how many spans it keeps.

    Attributes:
        spans: those that have ended.
        dropped: how many more there were.
    """

    def __init__(self, party: int | None, run: str, most: int = MOST) -> None:
        self.party = party
        self.run = run
        self.spans: list[Span] = []
        self.dropped = 0
        self._most = most
        self._open: list[tuple[Operation, float]] = []

    def op_started(self, op: Operation, index: int, total: int) -> None:
        """Note when an op begins."""
        self._open.append((op, now()))

    def op_finished(self, op: Operation, index: int, total: int) -> None:
        """Note an op; those inside of it that have not ended have failed."""
        while self._open[-1][0] is not op:
            self._close(failed=1)
        self._close()

    def end(self) -> None:
        """Note the ops that have not ended: they have failed."""
        while self._open:
            self._close(failed=1)

    @contextlib.contextmanager
    def program(self, name: str) -> Iterator[None]:
        """Note a program that is evaluated inside of ``with``."""
        with self._during(name, "program", {}):
            try:
                yield
            finally:
                self.end()

    def message(
        self, kind: Literal["send", "wait", "fetch"], peer: int, key: str
    ) -> contextlib.AbstractContextManager[Facts]:
        """Note what is done inside of ``with`` about a message; facts may be added."""
        toward = "to" if kind == "send" else "for" if kind == "wait" else "from"
        place = key.partition("/")[2][:MAX_TEXT]
        return self._during(f"{kind} {toward} P{peer}", kind, {"peer": peer, "key": place})

    @contextlib.contextmanager
    def _during(self, name: str, kind: Kind, facts: Facts) -> Iterator[Facts]:
        begin = now()
        try:
            yield facts
        except BaseException:
            facts["failed"] = 1
            raise
        finally:
            self._add(name, kind, begin, facts)

    def take(self, spans: Iterable[Span], dropped: int, shift: float) -> None:
        """Add spans that the party noted itself.

        Args:
            spans: the spans.
            dropped: how many it did not keep.
            shift: added to each beginning, as the party's clock is another.
        """
        for span in spans:
            facts: Facts = {**span.facts, "run": self.run}
            self._keep(replace(span, party=self.party, begin=span.begin + shift, facts=facts))
        self.dropped += dropped

    def _close(self, **more: int) -> None:
        op, begin = self._open.pop()
        facts: Facts = {**more}
        if op.location:
            facts["line"] = str(op.location)[:MAX_TEXT]
        self._add(op.opcode, "op", begin, facts)

    def _add(self, name: str, kind: Kind, begin: float, facts: Facts) -> None:
        facts["run"] = self.run
        duration, thread = now() - begin, threading.get_ident()
        self._keep(Span(name, kind, self.party, begin, duration, thread, facts))

    def _keep(self, span: Span) -> None:
        if len(self.spans) < self._most:
            self.spans.append(span)
        else:
            self.dropped += 1
