"""Protocol of recorders of ops and messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypeAlias

from mplang_core.ir import Operation, Program
from mplang_core.runtime.listener import Listener


class Recorder(Listener, Protocol):
    """Protocol of an observer of ops and messages of one party, or the host, in one run.

    Attributes:
        run: the name of the run.
    """

    run: str

    def program(self, program: Program) -> AbstractContextManager[object]:
        """Return a context manager that records a program of the host.

        Args:
            program: the program.
        """

    def message(
        self, kind: Literal["send", "wait", "fetch"], peer: int, key: str
    ) -> AbstractContextManager[dict[str, str | int]]:
        """Return a context manager that records a message.

        Args:
            kind: ``send`` or ``wait`` at a party, ``fetch`` at the host.
            peer: the rank of the other party.
            key: the key of the message.

        Returns:
            A context manager. It yields a dict, to which the caller may add ``bytes``.
        """

    def take(self, spans: Iterable[Any], dropped: int, shift: float) -> None:
        """Add spans that a worker recorded.

        Args:
            spans: the spans.
            dropped: the number of spans that the worker discarded.
            shift: the offset of the host's clock to the worker's, added to each start; seconds.
        """

    def end(self) -> None:
        """Handle the end of the run; unfinished ops have failed."""


Observe: TypeAlias = Callable[[int | None, str], Recorder | None]
"""``observe(rank, run)`` returns the recorder of a party (``None``: of the host) in a run."""


class _Several:
    """Listener that notifies several listeners in order."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._listeners = listeners

    def op_started(self, op: Operation, index: int, total: int) -> None:
        for listener in self._listeners:
            listener.op_started(op, index, total)

    def op_finished(self, op: Operation, index: int, total: int) -> None:
        for listener in self._listeners:
            listener.op_finished(op, index, total)


def joined(*listeners: Listener | None) -> Listener | None:
    """Return one listener for several; ``None`` if all are ``None``."""
    found = [listener for listener in listeners if listener is not None]
    return found[0] if len(found) == 1 else _Several(found) if found else None
