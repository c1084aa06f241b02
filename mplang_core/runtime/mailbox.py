"""Mailbox by sender and key, with traffic counts: the base of communicators."""

from __future__ import annotations

import functools
import math
import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from mplang_core.errors import AbortedError, CommError, RecvTimeoutError, RunError
from mplang_core.runtime.communicator import Communicator
from mplang_core.runtime.progress import Traffic
from mplang_core.runtime.recorder import Recorder
from mplang_core.runtime.waiter import NOTHING, Waiter
from mplang_core.types import size_of


@dataclass(slots=True)
class _Run:
    inbox: dict[tuple[int, str], Any] = field(default_factory=dict)
    # by sender and place; of texts, as the garbage collector would visit tuples
    seen: dict[tuple[int, str], set[str]] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    waiters: dict[tuple[int, str], list[Waiter]] = field(default_factory=dict)
    failure: Callable[[], RunError] | None = None
    compared: int = 0  # predicates
    ends: float = math.inf  # when nobody waits any longer
    is_evaluated: bool = False
    at_work: dict[int, float] = field(default_factory=dict)  # when a party was, last, by rank

    def waiter(self, message: tuple[int, str]) -> Waiter:
        """Return a new waiter for a message."""
        waiter = Waiter()
        self.waiters.setdefault(message, []).append(waiter)
        return waiter

    def leave(self, message: tuple[int, str], waiter: Waiter) -> None:
        """Drop a waiter, if it is still there."""
        waiting = self.waiters.get(message, [])
        if waiter in waiting:
            waiting.remove(waiter)
        if not waiting:
            self.waiters.pop(message, None)

    def fail(self, failure: Callable[[], RunError]) -> None:
        """End all waiting; each who waits raises an error of its own."""
        if self.failure is None:
            self.failure = failure
        for waiting in self.waiters.values():
            for waiter in waiting:
                waiter.wake()


class CommunicatorBase(Communicator):
    """Base of transports: a mailbox by sender and key, and counts by link.

    A transport adds :meth:`_send`, calls :meth:`deliver` for what arrives, and tells the others
    in ``abort``. One whose connections the waiting threads read themselves also has
    :meth:`_pause`. One that can ask a party whether it works has :meth:`_ask`.

    Args:
        rank: this party.
        world_size: how many parties there are.
        timeout: how many seconds one ``recv`` waits for a party that is not known to be at work.

    Attributes:
        longest: seconds that a run may take, which is how long one who works is waited for.
        setting: what sets ``timeout``, in errors.
    """

    longest = math.inf
    setting = "timeout= of the host"

    def __init__(self, rank: int, world_size: int, timeout: float) -> None:
        self.rank = rank
        self.world_size = world_size
        self.timeout = timeout
        self._runs: dict[str, _Run] = {}
        self._lock = threading.RLock()
        self._traffic = {peer: Traffic() for peer in range(world_size) if peer != rank}
        self._counting = threading.Lock()
        self._recorders: dict[str, Recorder] = {}  # by run; none while nobody records

    def open(self, run: str) -> None:
        """Accept messages of a run from now on."""
        with self._lock:
            self._runs.setdefault(run, _Run(ends=time.monotonic() + self.longest))

    def close(self, run: str) -> None:
        """Accept no more messages of a run."""
        with self._lock:
            found = self._runs.pop(run, None)
            self._recorders.pop(run, None)
            if found is not None:
                found.fail(functools.partial(CommError, self._no_run(run)))

    @abstractmethod
    def _send(self, to_rank: int, key: str, data: Any) -> int:
        """Send a value to another party; return how many bytes it has.

        Raises:
            CommError: the other party cannot be reached, or refuses the message.
        """

    def send(self, to_rank: int, key: str, data: Any) -> None:
        """Send a value to another party, or to this one."""
        if to_rank == self.rank:
            self.deliver(self.rank, key, data)
            return
        if (link := self._traffic.get(to_rank)) is None:
            raise CommError(f"there is no party {to_rank} among {self.world_size}")
        if (recorder := self._recorder(key)) is None:
            size = self._send(to_rank, key, data)
        else:
            with recorder.message("send", to_rank, key) as facts:
                size = facts["bytes"] = self._send(to_rank, key, data)
        with self._counting:
            link.sent += size
            link.sent_messages += 1

    def deliver(self, from_rank: int, key: str, data: Any) -> None:
        """Store a message of the transport; a second one of the same key is dropped.

        Raises:
            CommError: it belongs to no open run.
        """
        with self._lock:
            run, message, place = self._run(key), (from_rank, key), _place(key)
            if place in run.forgotten:
                return
            if (seen := run.seen.get((from_rank, place))) is None:
                seen = run.seen[from_rank, place] = set()
            if key in seen:
                return
            seen.add(key)
            if (link := self._traffic.get(from_rank)) is not None:
                link.received += size_of(data)
                link.received_messages += 1
            if (waiting := run.waiters.pop(message, None)) is None:
                run.inbox[message] = data
                return
            waiter = waiting.pop()
            if waiting:
                run.waiters[message] = waiting
            waiter.message = data
            waiter.wake()

    def forget(self, place: str) -> None:
        """Drop what was kept of the messages ``place|tag``; later ones are dropped, too."""
        with self._lock:
            run = self._run(place)
            run.forgotten.add(place)
            for rank in range(self.world_size):
                for key in run.seen.pop((rank, place), ()):
                    run.inbox.pop((rank, key), None)

    def has_message(self, from_rank: int, key: str) -> bool:
        """Return whether a message has arrived, without waiting for it."""
        with self._lock:
            return (from_rank, key) in self._inbox(key)

    def peek_message(self, from_rank: int, key: str) -> Any | None:
        """Return a message without taking it; ``None`` where it is not here."""
        with self._lock:
            return self._inbox(key).get((from_rank, key))

    def recv(self, from_rank: int, key: str) -> Any:
        """Wait for a value from a party.

        Who is known to be at work is waited for as long as the run may take, and nobody else for
        more than ``timeout`` seconds.
        """
        if (recorder := self._recorder(key)) is None:
            return self._await(from_rank, key)
        with recorder.message("wait", from_rank, key) as facts:
            data = self._await(from_rank, key)
            facts["bytes"] = size_of(data)
            return data

    def _await(self, from_rank: int, key: str) -> Any:
        message = from_rank, key
        with self._lock:
            run = self._run(key)
            if message in run.inbox:
                return run.inbox.pop(message)
            if run.failure is not None:
                raise run.failure()
            waiter = run.waiter(message)
        try:
            self._wait(run, waiter, from_rank, key)
        finally:
            if waiter.message is NOTHING:
                with self._lock:
                    run.leave(message, waiter)
        if waiter.message is not NOTHING:  # perhaps only now
            return waiter.message
        if run.failure is not None:
            raise run.failure()
        if time.monotonic() >= run.ends:
            raise RecvTimeoutError(overdue(self.rank, from_rank, self.longest))
        raise RecvTimeoutError(late(self.rank, from_rank, self.timeout, self.setting))

    def _wait(self, run: _Run, waiter: Waiter, from_rank: int, key: str) -> None:
        """Wait for a message until it comes, or its sender is not known to be at work."""
        began, timeout = time.monotonic(), self.timeout
        self._pause(waiter, from_rank, min(began + timeout / 2, run.ends))
        while not waiter.woken:
            self._ask(key.partition("/")[0], from_rank)
            asked = time.monotonic()
            self._pause(waiter, from_rank, min(asked + timeout / 4, run.ends))
            now, known = time.monotonic(), max(began, run.at_work.get(from_rank, began))
            was_stalled = now - asked > timeout / 2  # this process: the answer is not read yet
            if now >= run.ends or (now >= known + timeout and not was_stalled):
                return

    def _pause(self, waiter: Waiter, from_rank: int, deadline: float) -> None:
        """Return when a waiter is woken, or ``time.monotonic()`` is ``deadline``; without locks.

        Args:
            waiter: it waits for ``from_rank``.
            from_rank: a party, or what is none.
            deadline: when the waiting ends.
        """
        waiter.sleep(deadline)

    # -- who is at work

    def set_evaluated(self, run: str, evaluated: bool) -> None:
        """Record that the evaluation of an open run begins at this party, or ends."""
        with self._lock:
            if (found := self._runs.get(run)) is not None:
                found.is_evaluated = evaluated

    def waits_for(self, run: str) -> set[int] | None:
        """Return the parties that this one waits for in a run: none while it computes.

        Args:
            run: the name of the run.

        Returns:
            Their ranks; ``None`` if this party does not evaluate the run, or it has failed.
        """
        with self._lock:
            found = self._runs.get(run)
            if found is None or not found.is_evaluated or found.failure is not None:
                return None
            return {rank for rank, _ in found.waiters}

    def is_at_work(self, run: str, rank: int) -> None:
        """Record that a party is at work in a run, or waits for one that is."""
        with self._lock:
            if (found := self._runs.get(run)) is not None:
                found.at_work[rank] = time.monotonic()

    def _ask(self, run: str, rank: int) -> None:
        """Find out whether a party is at work, or waits for one that is, without blocking.

        It calls :meth:`is_at_work` if it is, perhaps later.
        """

    def record(self, run: str, recorder: Recorder) -> None:
        """Record the messages of an open run."""
        with self._lock:
            self._run(run)
            self._recorders[run] = recorder

    def links_in_memory(self, run: str) -> bool:
        """Return whether a library may link the parties of a run in memory, past this mailbox.

        They may be linked if they are threads of this process, and nobody records the run.

        Args:
            run: the name of the run.
        """
        return False

    def traffic(self) -> dict[int, Traffic]:
        """Return what went between this party and each other one so far."""
        with self._counting:
            return {peer: replace(link) for peer, link in self._traffic.items()}

    def stop(self, run: str, reason: str) -> None:
        """End all waiting in a run here, as it failed at another party."""
        self._end(run, AbortedError, f"party {self.rank} stopped: {reason}")

    def lose(self, run: str, reason: str) -> None:
        """End all waiting in a run here, as another party cannot be reached any more."""
        self._end(run, CommError, f"party {self.rank} {reason}")

    def _end(self, run: str, kind: type[RunError], text: str) -> None:
        with self._lock:
            if (found := self._runs.get(run)) is not None:
                found.fail(functools.partial(kind, text))

    def _inbox(self, key: str) -> dict[tuple[int, str], Any]:
        run = self._runs.get(key.partition("/")[0])
        return {} if run is None else run.inbox

    def _recorder(self, key: str) -> Recorder | None:
        return self._recorders.get(key.partition("/")[0]) if self._recorders else None

    def _run(self, key: str) -> _Run:
        name = key.partition("/")[0]
        try:
            return self._runs[name]
        except KeyError:
            raise CommError(self._no_run(name)) from None

    def _no_run(self, name: str) -> str:
        return f"party {self.rank} is in no run {name!r}"


def late(rank: int, from_rank: int, seconds: float, setting: str) -> str:
    """Return the text of the error of a party whose message does not come.

    Args:
        rank: who waits.
        from_rank: whose message it is.
        seconds: how long it has waited.
        setting: what sets that.
    """
    return (
        f"party {rank} waited {seconds:g} s for a message from party {from_rank}, which is not "
        f"known to be at work; {setting} sets the limit"
    )


def overdue(rank: int, from_rank: int, longest: float) -> str:
    """Return the text of the error of a party that waits for one who works for too long.

    Args:
        rank: who waits.
        from_rank: whose message it is.
        longest: seconds that a run may take.
    """
    return (
        f"party {rank} waited for a message from party {from_rank} until the run had taken "
        f"{longest:g} s; timeouts.job of workers sets the limit"
    )


def _place(key: str) -> str:
    """Return the place of ``place|tag``, and nothing for the key of a single message."""
    place, bar, _ = key.partition("|")
    return place if bar else ""
