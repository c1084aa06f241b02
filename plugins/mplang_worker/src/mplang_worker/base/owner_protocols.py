"""Protocol of an owner's view on the gate of a worker that runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class OwnerStops(Protocol):
    """Stops by the owner of a gate: of runs, whose results nobody loads, and of coordinators."""

    def revoked(self) -> Collection[str]:
        """Return the names of the approvals that were revoked.

        Raises:
            AdmissionError: the log cannot be read.
        """

    def paused(self) -> Collection[str]:
        """Return the coordinators that the owner lets run nothing.

        Raises:
            AdmissionError: the log cannot be read.
        """

    def pause(self, coordinator: str, by: str, *, paused: bool) -> None:
        """Remember that a coordinator is paused, or that it is not any more, and record it.

        Args:
            coordinator: its name.
            by: who wants it.
            paused: whether it is.

        Raises:
            AdmissionError: it cannot be recorded.
        """

    def stop(self, coordinator: str, runs: Collection[str], about: Mapping[str, object]) -> None:
        """Withdraw runs, and append to the log that the owner has stopped them.

        Args:
            coordinator: whose runs they are.
            runs: their names.
            about: plain data.

        Raises:
            AdmissionError: it cannot be recorded.
        """


@runtime_checkable
class OwnerControl(Protocol):
    """Interface for the owner of a gate while the worker runs. Safe for threads.

    Its methods raise an ``AdmissionError`` if the log cannot be used.
    """

    def rules(self) -> Sequence[Mapping[str, object]]:
        """Return the files of the rules that count, as plain data."""

    def approvals(self) -> Sequence[Mapping[str, object]]:
        """Return the approvals, and whether they count, as plain data."""

    def revoke(self, approval: str, by: str) -> None:
        """Revoke an approval, at once and for good; that is on record once.

        Args:
            approval: its name.
            by: who wants it.
        """
