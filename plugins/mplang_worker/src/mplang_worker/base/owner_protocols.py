"""Protocol of an owner's view on the gate of a worker that runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class OwnerControl(Protocol):
    """What the owner of a gate sees and changes while the worker runs. Safe for threads.

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
