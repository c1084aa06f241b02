"""Observers of a run: listeners hear of ops, recorders of messages too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypeAlias

from mplang_core.ir import Operation


class Listener(Protocol):
    """Is told of the ops that an interpreter goes through: a progress bar, a profiler.

    In standard mode these are the ops of the program and of the functions that it calls.
    """

    def op_started(self, op: Operation, index: int, total: int) -> None:
        """An op begins, one of so many in its graph."""

    def op_finished(self, op: Operation, index: int, total: int) -> None:
        """It has ended."""


class Recorder(Listener, Protocol):
    """Records what the host, or one party, does in one run; ``mplang_trace`` has one.

    Attributes:
        run: the run.
    """

    run: str

    def program(self, name: str) -> AbstractContextManager[object]:
        """Record a program that the host evaluates inside of ``with``."""

    def message(
        self, kind: Literal["send", "wait", "fetch"], peer: int, key: str
    ) -> AbstractContextManager[dict[str, str | int]]:
        """Record a message that is sent or awaited inside of ``with``; ``bytes`` may be added."""

    def take(self, spans: Iterable[Any], dropped: int, shift: float) -> None:
        """Add the spans that a worker recorded itself.

        Args:
            spans: the spans.
            dropped: how many it did not keep.
            shift: added to each beginning, as the worker's clock is another; in seconds.
        """

    def end(self) -> None:
        """The run has ended: ops that have not finished have failed."""


Observe: TypeAlias = Callable[[int | None, str], Recorder | None]
"""Returns the recorder of a party, by rank (``None`` for the host), in a run."""


class _Several:
    """Tells several listeners, in their order."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._listeners = listeners

    def op_started(self, op: Operation, index: int, total: int) -> None:
        for listener in self._listeners:
            listener.op_started(op, index, total)

    def op_finished(self, op: Operation, index: int, total: int) -> None:
        for listener in self._listeners:
            listener.op_finished(op, index, total)


def joined(*listeners: Listener | None) -> Listener | None:
    """Return a listener that tells those that there are; none if there are none."""
    found = [listener for listener in listeners if listener is not None]
    return found[0] if len(found) == 1 else _Several(found) if found else None
