"""How parties talk: the contract, and the mailbox that every transport needs."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from mplang_core.errors import AbortedError, CommError, RecvTimeoutError

__all__ = ["Communicator", "CommunicatorBase"]


class Communicator(ABC):
    """What a party sends and receives with.

    A key is ``run/place``. It names one message from one party to another, once: the place
    is the op's in the graph, loop turns included. A run is opened before it begins and
    closed after it ended; messages for no open run are refused.

    A place that sends many messages names each ``run/place|tag``, and :meth:`forget`s the
    place in the end, so that a long run does not remember each of them.

    Attributes:
        rank: this party.
        world_size: how many parties there are.
    """

    rank: int
    world_size: int

    @abstractmethod
    def send(self, to_rank: int, key: str, data: Any) -> None:
        """Send a value to another party, or to this one. Does not wait for the receiver.

        Raises:
            CommError: the other party cannot be reached, or refuses the message.
        """

    @abstractmethod
    def recv(self, from_rank: int, key: str) -> Any:
        """Wait for a value from a party.

        Raises:
            RecvTimeoutError: it did not come before the deadline.
            AbortedError: another party failed.
        """

    @abstractmethod
    def open(self, run: str) -> None:
        """Accept messages of a run from now on."""

    @abstractmethod
    def close(self, run: str) -> None:
        """Accept no more messages of a run, and forget those that nobody asked for."""

    def forget(self, place: str) -> None:  # noqa: B027 (a transport may have nothing to do)
        """Drop what was kept of the messages ``place|tag``; later ones are dropped, too."""

    @abstractmethod
    def abort(self, run: str, reason: str) -> None:
        """End all waiting in a run, here and at the other parties.

        Args:
            run: the run.
            reason: a public text.
        """


@dataclass(slots=True)
class _Run:
    inbox: dict[tuple[int, str], Any] = field(default_factory=dict)
    seen: dict[str, set[tuple[int, str]]] = field(default_factory=dict)  # by place
    forgotten: set[str] = field(default_factory=set)
    failure: str | None = None


class CommunicatorBase(Communicator):
    """The receiving half: a mailbox by sender and key.

    A transport adds ``send``, calls :meth:`deliver` for what arrives, and tells the others
    in ``abort``.

    Args:
        rank: this party.
        world_size: how many parties there are.
        timeout: how many seconds one ``recv`` waits.
    """

    def __init__(self, rank: int, world_size: int, timeout: float) -> None:
        self.rank = rank
        self.world_size = world_size
        self.timeout = timeout
        self._runs: dict[str, _Run] = {}
        self._arrived = threading.Condition()

    def open(self, run: str) -> None:
        """Accept messages of a run from now on."""
        with self._arrived:
            self._runs.setdefault(run, _Run())

    def close(self, run: str) -> None:
        """Accept no more messages of a run."""
        with self._arrived:
            self._runs.pop(run, None)
            self._arrived.notify_all()

    def deliver(self, from_rank: int, key: str, data: Any) -> None:
        """Take in a message from the transport; a second one of the same key is dropped.

        Raises:
            CommError: it belongs to no open run.
        """
        with self._arrived:
            run = self._run(key)
            place = _place(key)
            if place in run.forgotten:
                return
            seen = run.seen.setdefault(place, set())
            if (from_rank, key) in seen:
                return
            seen.add((from_rank, key))
            run.inbox[from_rank, key] = data
            self._arrived.notify_all()

    def forget(self, place: str) -> None:
        """Drop what was kept of the messages ``place|tag``; later ones are dropped, too."""
        with self._arrived:
            run = self._run(place)
            run.forgotten.add(place)
            for message in run.seen.pop(place, ()):
                run.inbox.pop(message, None)

    def has_message(self, from_rank: int, key: str) -> bool:
        """Tell whether a message is here, without waiting for it."""
        with self._arrived:
            return (from_rank, key) in self._inbox(key)

    def peek_message(self, from_rank: int, key: str) -> Any | None:
        """Return a message without taking it; ``None`` where it is not here."""
        with self._arrived:
            return self._inbox(key).get((from_rank, key))

    def recv(self, from_rank: int, key: str) -> Any:
        """Wait for a value from a party, ``timeout`` seconds at most."""
        deadline = time.monotonic() + self.timeout
        with self._arrived:
            while True:
                run = self._run(key)
                if (from_rank, key) in run.inbox:
                    return run.inbox.pop((from_rank, key))
                if run.failure is not None:
                    raise AbortedError(f"party {self.rank} stopped: {run.failure}")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise RecvTimeoutError(
                        f"party {self.rank} waited {self.timeout:g} s for a message from "
                        f"party {from_rank}; is it running the same program?"
                    )
                self._arrived.wait(left)

    def stop(self, run: str, reason: str) -> None:
        """End all waiting in a run here."""
        with self._arrived:
            found = self._runs.get(run)
            if found is not None and found.failure is None:
                found.failure = reason
            self._arrived.notify_all()

    def _inbox(self, key: str) -> dict[tuple[int, str], Any]:
        run = self._runs.get(key.partition("/")[0])
        return {} if run is None else run.inbox

    def _run(self, key: str) -> _Run:
        name = key.partition("/")[0]
        try:
            return self._runs[name]
        except KeyError:
            raise CommError(f"party {self.rank} is in no run {name!r}") from None


def _place(key: str) -> str:
    """Return the place of ``place|tag``, and nothing for the key of a single message."""
    place, bar, _ = key.partition("|")
    return place if bar else ""
