"""Log of a gate: what it writes within the quota of a coordinator, and why it cannot."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator

from mplang_core.ext import AdmissionError
from mplang_policy.gate_refusals import full, shut
from mplang_policy.ledger import Body, Ledger, LedgerError, Writing
from mplang_policy.quota import Quota, Used
from mplang_policy.record import shortened_fields

ALWAYS = ("end", "failures reset")  # of what has begun, or the owner does: counted, not refused
log = logging.getLogger("mplang.policy")


class _FullError(Exception):
    """Entry that is larger than a quota allows."""


class GateLog:
    """Log of the gate of one party. Safe for threads; its methods wait for the disk.

    Args:
        party: name of the party.
        path: the ledger's file.
        most: what a coordinator may cause in a day.
        clock: returns the time, in seconds since 1970.

    Attributes:
        party: name of the party.
        ledger: the ledger.
        failure: why the ledger could not be used when that was last tried; empty if it could.

    Raises:
        LedgerError: the ledger cannot be used.
    """

    def __init__(self, party: str, path: str, most: Used, clock: Callable[[], float]) -> None:
        self.party, self.failure = party, ""
        self.ledger = Ledger(path, clock)
        self._quota = Quota(party, most, clock, self.ledger.written)
        self._most = most

    def set_limit(self, most: Used) -> None:
        """Set another limit.

        Args:
            most: what a coordinator may cause in a day.
        """
        self._most = most
        self._quota.set_limit(most)

    def record(self, kind: str, about: Body) -> None:
        """Record something, such as a fetch or a run's end.

        Args:
            kind: what it is.
            about: plain data, with the coordinator who causes it.

        Raises:
            AdmissionError: it cannot be recorded, so it may not happen.
        """
        with self.recording(str(about.get("coordinator")), always=kind in ALWAYS) as writing:
            writing.add(kind, shortened_fields(about))

    @contextlib.contextmanager
    def recording(self, coordinator: str, *, always: bool = False) -> Iterator[Writing]:
        """Write inside of ``with``; nothing of it is written if it is more than a quota allows.

        Args:
            coordinator: who causes it.
            always: whether it is counted, and not refused.

        Raises:
            AdmissionError: it cannot be recorded.
        """
        with self.using():
            try:
                with self.ledger.writing() as writing:
                    yield writing
                    why = "" if always else self._quota.refusal(coordinator, writing.used)
                    if why:
                        raise _FullError(why)
                    self._quota.count(coordinator, writing.used)
            except _FullError as error:
                raise self._full(coordinator, str(error)) from None
        self.failure = ""

    @contextlib.contextmanager
    def using(self) -> Iterator[None]:
        """Use the ledger inside of ``with``.

        Raises:
            AdmissionError: it cannot be read or written.
        """
        try:
            yield
        except LedgerError as error:
            self.failure = str(error)
            log.error("nothing runs: %s", error)
            raise shut(self.party, "log") from error

    def check_quota(self, coordinator: str) -> None:
        """Refuse a coordinator that has caused too much today.

        Raises:
            AdmissionError: it has.
        """
        why = self._quota.refusal(coordinator)
        if why:
            raise self._full(coordinator, why)

    def _full(self, coordinator: str, why: str) -> AdmissionError:
        """Log once a day that a quota is used up, and nothing that it refuses."""
        if self._quota.is_first(coordinator):
            last = f"(more of today are not on record) {why}"
            with self.recording(coordinator, always=True) as writing:
                writing.add("refusal", shortened_fields({"coordinator": coordinator, "why": last}))
        return full(self.party, coordinator, why, self._most)
