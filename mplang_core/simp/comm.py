"""Communicator interface: messages between parties."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Communicator(ABC):
    """Interface of the message transport of one party.

    A key ``run/position`` identifies one message from one party to another, used once; the
    position is that of the op in the graph, loop turns included. A run is opened before it
    begins and closed after it ended; messages of other runs are rejected.

    An op that sends many messages uses the keys ``run/position|tag`` and calls :meth:`forget`
    at the end, so that a long run does not accumulate keys.

    Attributes:
        rank: this party.
        world_size: the number of parties.
    """

    rank: int
    world_size: int

    @abstractmethod
    def send(self, to_rank: int, key: str, data: Any) -> None:
        """Send a value to another party, or to this one, without waiting for the receiver.

        Args:
            to_rank: the receiver.
            key: the message key.
            data: a value that the receiver can decode by its type.

        Raises:
            CommError: the other party cannot be reached, or rejects the message.
        """

    @abstractmethod
    def recv(self, from_rank: int, key: str) -> Any:
        """Wait for a value from a party and return it.

        Args:
            from_rank: the sender.
            key: the message key.

        Raises:
            RecvTimeoutError: it did not arrive before the deadline.
            AbortedError: another party failed.
        """

    @abstractmethod
    def open(self, run: str) -> None:
        """Accept messages of a run."""

    @abstractmethod
    def close(self, run: str) -> None:
        """Reject further messages of a run, and discard those that were not received."""

    def forget(self, place: str) -> None:  # noqa: B027 (optional)
        """Discard the messages with keys ``place|tag``, and later ones."""

    @abstractmethod
    def abort(self, run: str, reason: str) -> None:
        """Abort all waiting in a run, at this party and the others.

        Args:
            run: the run.
            reason: a public message.
        """
