"""Communicators: the contract of what parties send and receive with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from mplang_core.runtime import Recorder
from mplang_core.simp.progress import Traffic


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

    def record(self, run: str, recorder: Recorder) -> None:  # noqa: B027 (it may not be able to)
        """Have the messages of an open run noted."""

    def traffic(self) -> dict[int, Traffic]:
        """Return what went between this party and each other one so far, as far as it counts."""
        return {}

    @abstractmethod
    def abort(self, run: str, reason: str) -> None:
        """End all waiting in a run, here and at the other parties.

        Args:
            run: the run.
            reason: a public text.
        """


_BYTES = (bytes, bytearray)  # made once: size_of is asked for every message


def size_of(data: Any) -> int:
    """Return how many bytes a value has, as far as it tells."""
    if isinstance(data, _BYTES):
        return len(data)
    size = getattr(data, "nbytes", 0)
    return size if isinstance(size, int) else 0
