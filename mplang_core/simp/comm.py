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
    seen: set[tuple[int, str]] = field(default_factory=set)
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
            if (from_rank, key) in run.seen:
                return
            run.seen.add((from_rank, key))
            run.inbox[from_rank, key] = data
            self._arrived.notify_all()

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

    def _run(self, key: str) -> _Run:
        name = key.partition("/")[0]
        try:
            return self._runs[name]
        except KeyError:
            raise CommError(f"party {self.rank} is in no run {name!r}") from None
