"""Spans, and the recorder of the spans of one party in one run."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from mplang_core import Program
from mplang_core.ext import Operation

MOST = 100_000  # spans that a recorder keeps
MAX_TEXT = 300  # characters of a fact
_EPOCH = time.time() - time.perf_counter()

Facts: TypeAlias = dict[str, str | int]
Kind: TypeAlias = Literal["program", "op", "send", "wait", "fetch"]


def now() -> float:
    """Return the time in seconds since 1970, monotonic within a process."""
    return _EPOCH + time.perf_counter()


@dataclass(frozen=True, slots=True)
class Span:
    """Interval of time in which an op or a message took place.

    Attributes:
        name: the opcode, or the action and the other party.
        kind: a ``program`` that the host evaluates; an ``op``; to ``send`` a message; to
            ``wait`` for one; to ``fetch`` data.
        party: the rank of the party; ``None`` for the host.
        begin: the start in seconds since 1970 by the host's clock.
        duration: the duration in seconds.
        thread: the id of the thread; the spans of one thread are nested.
        facts: further fields: ``run``, ``line`` of the source, ``peer``, ``key`` of a
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
        """The end in seconds since 1970."""
        return self.begin + self.duration

    @property
    def size(self) -> int:
        """The size of its message in bytes; 0 for none, or where a party tells no number."""
        size = self.facts.get("bytes", 0)
        return max(size, 0) if isinstance(size, int) else 0


@dataclass(frozen=True, slots=True)
class LinkUse:
    """Traffic from one party to another.

    Attributes:
        messages: the number of messages.
        bytes: the size of their values in bytes, without headers and encryption.
    """

    messages: int = 0
    bytes: int = 0


class SpanRecorder:
    """Recorder of the spans of one party in one run; a :class:`~mplang_core.ext.Recorder`.

    Args:
        party: the party; ``None`` for the host.
        run: the run.
        most: the maximum number of spans.

    Attributes:
        spans: the completed spans.
        dropped: the number of discarded spans.
        programs: the programs that the host evaluated.
    """

    def __init__(self, party: int | None, run: str, most: int = MOST) -> None:
        self.party = party
        self.run = run
        self.spans: list[Span] = []
        self.dropped = 0
        self.programs: list[Program] = []
        self._most = most
        self._open: list[tuple[Operation, float]] = []

    def op_started(self, op: Operation, index: int, total: int) -> None:
        """Record the start of an op."""
        self._open.append((op, now()))

    def op_finished(self, op: Operation, index: int, total: int) -> None:
        """Record the end of an op; unfinished ops inside of it have failed."""
        while self._open[-1][0] is not op:
            self._close(failed=1)
        self._close()

    def end(self) -> None:
        """Record unfinished ops as failed."""
        while self._open:
            self._close(failed=1)

    @contextlib.contextmanager
    def program(self, program: Program) -> Iterator[None]:
        """Record a program that is evaluated inside of ``with``."""
        self.programs.append(program)
        with self._during(program.name, "program", {}):
            try:
                yield
            finally:
                self.end()

    def message(
        self, kind: Literal["send", "wait", "fetch"], peer: int, key: str
    ) -> contextlib.AbstractContextManager[Facts]:
        """Record the send, wait or fetch of a message inside of ``with``; facts may be added."""
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
        """Add spans that the party recorded.

        Args:
            spans: the spans.
            dropped: the number of spans that it discarded.
            shift: the offset of the host's clock to the party's, in seconds.
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
