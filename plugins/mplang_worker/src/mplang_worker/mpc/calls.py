"""Calls of an engine to one MPC process of its session."""

from __future__ import annotations

import contextlib
import functools
import logging
import select
import socket
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec
from mplang_http.ext import read_spans
from mplang_trace import SpanRecorder

from mplang_core import MPLangError
from mplang_core.ext import Answer, Buffer, CommError, Failure, Traffic
from mplang_worker.mpc import channel as mpc_channel
from mplang_worker.mpc.failures import MpcFailures

MAX_TRAFFIC = 1 << 62
log = logging.getLogger("mplang.http.engine")


class _Reply(msgspec.Struct):
    """Answer of the MPC process, checked like a peer's message."""

    traffic: dict[str, tuple[int, int, int, int]]
    ok: Any = None
    error: tuple[str, str] | None = None


class MpcCalls:
    """Calls of a native service (:class:`mplang_core.ext.NativeCalls`), as an engine makes them.

    It runs in an MPC process of its own; there is a new one after that has ended.

    Args:
        worker: name of the worker.
        failures: what it may tell of its failures.
        limit: bytes that an answer may have.
        seconds: that a run may take.
        patience: seconds that a call has to end after its run was aborted, and the run itself.
        give_up: called when either does not, so that another process takes the place of this one.
    """

    def __init__(
        self,
        worker: str,
        failures: MpcFailures,
        limit: int,
        seconds: float,
        patience: float,
        give_up: Callable[[], None],
    ) -> None:
        self._worker, self._limit, self._give_up = worker, limit, give_up
        self._failures, self._aborted = failures, dict[str, Failure]()  # how the run has failed
        self._seconds, self._patience = seconds, patience
        self._sock: socket.socket | None = None
        self._calling = threading.Lock()
        self._sending = threading.Lock()
        self._run = ""
        self._called = ""  # the run whose call is under way
        self._ended_in = ""  # the run in which the process has ended
        self._timer: threading.Timer | None = None  # runs if that was aborted
        self._fetches: list[Callable[[], None]] = []
        self._recorder: SpanRecorder | None = None
        self._traffic: dict[int, Traffic] = {}
        self._before: dict[int, Traffic] = {}  # of those that have ended

    def attach(self, sock: socket.socket) -> None:
        """Call another MPC process from now on.

        Args:
            sock: socket to it.
        """
        with self._sending:
            before, self._sock = self._sock, sock
            self._before, self._traffic = self.traffic(), {}
        _end(before)  # who waits for its answer learns that it has ended

    def traffic(self) -> dict[int, Traffic]:
        """Return what went between the MPC processes of this party and of each other one so far."""
        both = (self._before, self._traffic)
        ranks = {rank for each in both for rank in each}
        return {
            rank: sum((each.get(rank, Traffic()) for each in both), Traffic()) for rank in ranks
        }

    # -- runs

    def begin(self, run: str, parties: Collection[int], recorder: SpanRecorder | None) -> None:
        """Open a run, before the peers are told that this party has opened it.

        Args:
            run: key of the run.
            parties: the ranks of those that are in it.
            recorder: takes the spans of its messages; ``None`` if they are not recorded.

        Raises:
            CommError: the MPC process has ended.
        """
        with self._calling:  # a call of a run that was aborted ends, or its process does
            pass
        self._fetches.clear()
        self._aborted.clear()
        self._run, self._recorder = run, recorder
        told = {"run": run, "parties": list(parties), "seconds": self._seconds}
        try:
            self._ask({"call": "begin", "record": recorder is not None, **told})
        except BaseException:
            self._run = ""
            raise

    def settle(self, run: str) -> None:
        """Take from the MPC process what is needed after a run, once its last op is done.

        Raises:
            CommError: the MPC process has ended.
            RunError: it gives something else.
        """
        if run == self._run:
            try:
                for fetch in self._fetches:
                    fetch()
            except CommError:
                raise
            except MPLangError as error:  # what came is none of what was asked for
                raise self._failures.withheld(error) from error

    def end(self, run: str, *, failed: bool) -> None:
        """End a run: the MPC process drops what it holds.

        If the run failed, this waits until it has: it may end itself, as native code hangs, and
        then another one is there for the next run.

        Args:
            run: key of the run.
            failed: whether it failed, so that the links of its services may be out of sync.
        """
        if run != self._run:
            return
        self._run = ""
        self._fetches.clear()
        if self._sock is None:  # it has ended, so there is nothing to drop
            return
        is_asked = failed or self._recorder is not None
        message = {"call": "end", "failed": failed, "answer": is_asked}
        try:
            if not is_asked:
                self._tell(message)
                return
            _, spans = self._ask_to_end(message)
            if spans and self._recorder is not None:
                found = read_spans(bytes(spans[0]))
                self._recorder.take(found.spans, found.dropped, 0.0)
        except Exception as error:  # the next run tells
            log.warning("a run has not ended well in the MPC process: %s", error)

    def _ask_to_end(self, message: mpc_channel.Message) -> Answer:
        timer = self._begin_patience(self._give_up)
        try:
            return self._ask(message)
        finally:
            timer.cancel()

    def abort(self, run: str, failure: Failure) -> None:
        """End all waiting in a run there, as it has failed here; from any thread.

        If a call of it goes on, native code hangs, which messages of peers can have brought about:
        then another process takes the place of this one, so that the engine ends the run.
        """
        if run != self._run:
            return
        self._aborted[run] = failure
        message = {"call": "abort", "run": run, "failure": [failure.kind, failure.text]}
        with contextlib.suppress(OSError), self._sending:  # it has ended, and so has the call
            if self._sock is not None:
                mpc_channel.send(self._sock, message)
        if run == self._called:
            self._timer = self._begin_patience(functools.partial(self._replace, run))

    def _begin_patience(self, over: Callable[[], None]) -> threading.Timer:
        """Start a timer that calls a function once the patience is over."""
        timer = threading.Timer(self._patience, over)
        timer.daemon = True
        timer.start()
        return timer

    def _replace(self, run: str) -> None:
        if run == self._called:
            log.warning("a call to the MPC process goes on though its run was aborted: it is ended")
            self._give_up()

    def ended_in(self, run: str) -> bool:
        """Return whether the MPC process has ended in a run, which may depend on private data."""
        sock = self._sock if run == self._run else None
        return run == self._ended_in or (sock is not None and _has_ended(sock))

    # -- calls

    def call(
        self, run: str, method: str, args: Mapping[str, Any], buffers: Sequence[Buffer] = ()
    ) -> Answer:
        """Call the service, and wait; see :class:`mplang_core.ext.NativeCalls`."""
        if run != self._run:
            raise CommError(f"the run {run!r} is not open in the MPC process", code="R017")
        message = {"call": "call", "method": method, "args": args}
        return self._ask(message, buffers)

    def before_end(self, run: str, fetch: Callable[[], None]) -> None:
        """Register a function that :meth:`settle` calls."""
        self._fetches.append(fetch)

    def _tell(self, message: dict[str, Any]) -> None:
        with self._calling, self._sending:
            if self._sock is not None:
                mpc_channel.send(self._sock, message)

    def _ask(self, message: dict[str, Any], buffers: Sequence[Buffer] = ()) -> Answer:
        with self._calling:
            sock, self._called = self._sock, self._run
            try:
                if sock is None:
                    raise EOFError
                with self._sending:
                    mpc_channel.send(sock, message, buffers)
                found, parts = mpc_channel.receive(sock, self._limit)
                reply = msgspec.convert(found, _Reply)
                traffic = {
                    int(rank): Traffic(*each)
                    for rank, each in reply.traffic.items()
                    if all(0 <= number < MAX_TRAFFIC for number in each)
                }
            except (EOFError, OSError, ValueError) as error:
                log.debug("why the MPC process is not heard", exc_info=error)
                _end(sock)  # so that it ends, if it has not, as it is of no use any more
                if sock is self._sock:
                    self._sock = None
                if sock is not None and message["call"] != "begin":
                    self._ended_in = self._called
                raise CommError(
                    f"the MPC process of worker {self._worker} ended", code="R017"
                ) from None
            finally:
                self._called = ""
                if self._timer is not None:
                    self._timer.cancel()
                    self._timer = None
            if sock is self._sock:
                self._traffic = traffic
        if reply.error is not None:
            raise self._failures.error(*reply.error, self._aborted.get(self._run))
        return reply.ok, parts


def _has_ended(sock: socket.socket) -> bool:
    """Return whether the process at the other end of a socket has closed it."""
    poll = select.poll()
    poll.register(sock, 0)
    return any(events & select.POLLHUP for _, events in poll.poll(0))


def _end(sock: socket.socket | None) -> None:
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
