"""Protocol of an owner's view on the gate of a worker that runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class OwnerView(Protocol):
    """What the owner of a gate sees and changes while the worker runs. Safe for threads.

    Its methods raise an ``AdmissionError`` if the log cannot be used.
    """

    def rules(self) -> Sequence[dict[str, Any]]:
        """Return the files of the rules that count, as plain data."""

    def approvals(self) -> Sequence[dict[str, Any]]:
        """Return the approvals, and whether they count, as plain data."""

    def revoke(self, approval: str, by: str) -> None:
        """Have an approval not count any more, at once and for good; that is on record once.

        Args:
            approval: its name.
            by: who wants it.
        """
