"""Recordings: the spans of all parties, and their export as a Chrome trace."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakKeyDictionary

from mplang_analysis import Link
from mplang_analysis.ext import Part, page, sections

from mplang_core import Program, errors
from mplang_core.ext import ConfigError, ObservedHost, SimpHost, at
from mplang_trace.lines import LineUses, lines_of
from mplang_trace.nesting import within
from mplang_trace.recording_view import SpanList, parts_of
from mplang_trace.spans import LinkUse, Span, SpanRecorder
from mplang_trace.timeline import Timeline, timeline_of

MICRO = 1e6


class Recording:
    """Recording of the spans of a host and its parties; see :func:`mplang_core.record`.

    Args:
        names: the names of the parties by rank.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._recorders: list[SpanRecorder] = []

    def add(self, recorder: SpanRecorder) -> None:
        """Add the spans of a recorder, including later ones."""
        self._recorders.append(recorder)

    @property
    def spans(self) -> list[Span]:
        """All spans in the order of their start."""
        found = [span for recorder in self._recorders for span in recorder.spans]
        return SpanList(sorted(found, key=lambda span: (span.begin, -span.duration)))

    @property
    def dropped(self) -> int:
        """The number of discarded spans."""
        return sum(recorder.dropped for recorder in self._recorders)

    def links(self) -> dict[tuple[int, int], LinkUse]:
        """Return the traffic of each link by ``(sender, receiver)``."""
        found: dict[tuple[int, int], LinkUse] = {}
        for span in self.spans:
            if span.kind != "send" or span.party is None:
                continue
            link = span.party, int(span.facts["peer"])
            if link[1] in range(len(self.names)):  # a remote party may tell any
                before = found.get(link, LinkUse())
                found[link] = LinkUse(before.messages + 1, before.bytes + span.size)
        return found

    @property
    def programs(self) -> list[Program]:
        """The programs that the host evaluated, each as often as it was."""
        return [each for recorder in self._recorders for each in recorder.programs]

    def timeline(self) -> Timeline:
        """Return what each party computed, waited for and sent, and when, as a drawing."""
        return timeline_of(self.names, within(self.spans))

    def by_line(self, link: Link | Mapping[str, float] | None = None) -> LineUses:
        """Return what each of the user's lines took, as bars and as a table.

        Args:
            link: a network, as :func:`mplang_core.analysis.costs` takes it, such as ``"lan"``: then
                what was to be expected stands beside it. To tell that takes seconds.

        Raises:
            ConfigError: there is no such network.
        """
        return lines_of(self.names, within(self.spans), self.programs, link)

    def to_html(self) -> str:
        """Return a page of its own, which loads nothing: timeline, lines and traffic."""
        body = "".join(f"<section>{part.html()}</section>" for part in self._parts())
        return page("Recording", body)

    def to_json(self) -> dict[str, Any]:
        """Return the recording as a Chrome trace, which Perfetto reads."""
        spans = self.spans
        zero = spans[0].begin if spans else 0.0
        lanes = _lanes(spans)
        events = [*self._labels(lanes), *(_slice(span, lanes, zero) for span in spans)]
        about = {"begin": zero, "dropped": self.dropped}
        return {
            "traceEvents": [*events, *_arrows(spans, lanes, zero)],
            "displayTimeUnit": "ms",
            "otherData": about,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recording to a file.

        Args:
            path: by its end it is a page (``.html``), the timeline (``.svg``), or else a Chrome
                trace, which ui.perfetto.dev shows.

        Raises:
            ConfigError: the file cannot be written.
        """
        match Path(path).suffix.lower():
            case ".html":
                text = self.to_html()
            case ".svg":
                text = self.timeline().svg()
            case _:
                text = json.dumps(self.to_json())
        try:
            Path(path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{at()}cannot write {path}: {error.strerror}", code="C005") from None

    def _labels(self, lanes: dict[tuple[int, int], int]) -> Iterator[dict[str, Any]]:
        for pid in range(len(self.names) + 1):
            name = f"P{pid - 1} {self.names[pid - 1]}".strip() if pid else "host"
            yield _label("process_name", pid, name=name)
            yield _label("process_sort_index", pid, sort_index=pid)
        for (pid, _), tid in lanes.items():
            yield _label("thread_name", pid, tid, name=f"thread {tid}")

    def __repr__(self) -> str:
        lost = f", {self.dropped} more were dropped" if self.dropped else ""
        parties = f"{len(self.names)} parties and the host"
        return f"<Recording of {len(self.spans)} spans of {parties}{lost}>"

    def _parts(self) -> Sequence[Part]:
        drawn: list[Part] = [self.timeline()] if self.spans else []
        shown = parts_of(self.names, self.spans, self.links(), self.dropped)
        return [*drawn, *self.by_line().parts(), *shown]

    def _repr_html_(self) -> str:
        return sections(self._parts())


def _pid(span: Span) -> int:
    return 0 if span.party is None else span.party + 1


def _lanes(spans: Iterable[Span]) -> dict[tuple[int, int], int]:
    """Number the threads of each party."""
    lanes: dict[tuple[int, int], int] = {}
    counts: dict[int, int] = {}
    for span in spans:
        if (_pid(span), span.thread) not in lanes:
            counts[_pid(span)] = lanes[_pid(span), span.thread] = counts.get(_pid(span), 0) + 1
    return lanes


def _label(what: str, pid: int, tid: int = 0, **args: Any) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}


def _event(
    span: Span, phase: str, at: float, lanes: dict[tuple[int, int], int], **fields: Any
) -> dict[str, Any]:
    tid = lanes[_pid(span), span.thread]
    return {"ph": phase, "ts": at * MICRO, "pid": _pid(span), "tid": tid, **fields}


def _slice(span: Span, lanes: dict[tuple[int, int], int], zero: float) -> dict[str, Any]:
    fields = {"name": span.name, "cat": span.kind, "dur": span.duration * MICRO, "args": span.facts}
    return _event(span, "X", span.begin - zero, lanes, **fields)


def _arrows(
    spans: Sequence[Span], lanes: dict[tuple[int, int], int], zero: float
) -> Iterator[dict[str, Any]]:
    """Yield the flow events from the send of each message to its receive."""
    sent: dict[tuple[Any, ...], Span] = {
        (span.facts["run"], span.facts.get("key"), span.party, span.facts["peer"]): span
        for span in spans
        if span.kind == "send"
    }
    waits = [span for span in spans if span.kind == "wait" and "failed" not in span.facts]
    for number, wait in enumerate(waits):
        facts = wait.facts
        send = sent.get((facts["run"], facts.get("key"), facts["peer"], wait.party))
        if send is not None:
            fields = {"name": "message", "cat": "message", "id": number}
            yield _event(send, "s", send.begin - zero, lanes, **fields)
            arrives = wait.begin + 0.999 * wait.duration - zero  # inside of the slice
            yield _event(wait, "f", arrives, lanes, bp="e", **fields)


_open: WeakKeyDictionary[ObservedHost, tuple[Recording, ...]] = WeakKeyDictionary()
_lock = threading.Lock()


def record(host: SimpHost) -> AbstractContextManager[Recording]:
    """Record what a host and its parties do inside of ``with``: ops, messages, bytes.

    Args:
        host: a host of any backend.

    Returns:
        A context manager that gives the recording; it grows while programs run.

    Raises:
        ConfigError: the host of its backend cannot be recorded.

    Example:
        >>> import os
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim, mp.record(sim) as recording:
        ...     x = mp.evaluate(sim, lambda: mp.put("P1", mp.put("P0", [1, 2])))
        >>> recording.links()
        {(0, 1): LinkUse(messages=1, bytes=16)}
        >>> recording.save(os.devnull)  # a trace for Perfetto: "out.json", say
    """
    if not isinstance(host, ObservedHost):
        raise ConfigError(
            f"a {type(host).__name__} cannot be recorded; a host that can is an "
            "mplang_core.ext.ObservedHost",
            code="C002",
        )
    return _Recorder(host)


class _Recorder:
    """Context manager of a recording, which begins by ``with``."""

    def __init__(self, host: ObservedHost) -> None:
        self._host, self._recording = host, Recording(host.names)

    def __enter__(self) -> Recording:
        with _lock:
            _set(self._host, (*_open.get(self._host, ()), self._recording))
        return self._recording

    def __exit__(self, *exc: object) -> None:
        with _lock:
            others = (each for each in _open[self._host] if each is not self._recording)
            _set(self._host, tuple(others))

    def __repr__(self) -> str:
        return "<no recording yet; write: with mp.record(host) as recording>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            if hasattr(Recording, name):
                raise errors.MissingAttributeError(f"{at()}{name} of {self!r}")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _set(host: ObservedHost, recordings: tuple[Recording, ...]) -> None:
    """Set the open recordings of a host, which gives them a recorder per party and run."""

    def observe(rank: int | None, run: str) -> SpanRecorder:
        recorder = SpanRecorder(rank, run)
        for recording in recordings:
            recording.add(recorder)
        return recorder

    _open[host] = recordings
    host.observe = observe if recordings else None
