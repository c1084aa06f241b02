"""Communicator interface: messages between parties."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from mplang_core.mask import Mask

MAX_DIRECT = 4  # parties that tell each other their predicates


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

    def compare(self, key: str, mine: bool | None) -> Mask:
        """Return the parties that have another predicate than this one.

        Few parties tell each other theirs. Of many, each tells party 0, which answers with its
        own, or with ``None`` where not all have the same. Each sends before it may raise. A
        transport may return before all parties came, if those that come later tell the difference.

        Args:
            key: the message key of this comparison.
            mine: the predicate; ``None`` where this party does not hold it.

        Raises:
            RunError: the run ended before.
        """
        gathers, peers = self.world_size > MAX_DIRECT, range(self.world_size)
        others = [0] if gathers and self.rank else [rank for rank in peers if rank != self.rank]
        for rank in others if self.rank or not gathers else ():
            self.send(rank, key, mine)
        said = [(rank, self.recv(rank, key)) for rank in others]
        differing = Mask.from_ranks(rank for rank, other in said if other is not mine)
        for rank in others if gathers and not self.rank else ():
            self.send(rank, key, None if differing else mine)
        return differing

    def forget(self, place: str) -> None:  # noqa: B027 (optional)
        """Discard the messages with keys ``place|tag``, and later ones."""

    @abstractmethod
    def abort(self, run: str, reason: str) -> None:
        """Abort all waiting in a run, at this party and the others.

        Args:
            run: the run.
            reason: a public message.
        """
