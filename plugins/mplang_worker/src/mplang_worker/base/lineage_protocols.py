"""Protocols of lineage: what stored values rest on, as the gate of a worker remembers it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol, runtime_checkable


@runtime_checkable
class RunLineage(Protocol):
    """Lineage of what runs have stored. Safe for threads.

    Its methods raise an ``AdmissionError`` if the log cannot be used.
    """

    def rest_on(self, coordinator: str, run: str, source: str) -> None:
        """Record that a run loads what another one has stored, before it does.

        Args:
            coordinator: whose runs they are.
            run: its name.
            source: name of the other one.
        """

    def withdrawn(self, coordinator: str, runs: Collection[str]) -> Collection[str]:
        """Return the runs that rest on one that was stopped, or on an approval that was revoked.

        Args:
            coordinator: whose runs they are.
            runs: their names; untrusted.
        """

    def withdraw(
        self, coordinator: str, run: str, sender: str | None, about: Mapping[str, object]
    ) -> bool:
        """Withdraw a run, as a party says that takes part in it; record that once.

        Args:
            coordinator: whose run it is.
            run: its name; untrusted.
            sender: the party that says so; ``None`` for any, where nobody can be told apart.
            about: plain data, for the log.

        Returns:
            Whether that party takes part in such a run which has stored something.
        """

    def notices(self) -> Collection[tuple[str, str, str]]:
        """Return what other parties do not know to be withdrawn: coordinator, run and party each.

        It is called every half second.
        """

    def notified(self, notice: tuple[str, str, str]) -> None:
        """Record that a party has answered one of these notices."""
