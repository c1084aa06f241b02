"""Stops by an owner: of runs, whose results are not loaded any more, and of coordinators."""

from __future__ import annotations

from collections.abc import Collection

from mplang_policy.gate_log import GateLog
from mplang_policy.ledger import Body
from mplang_policy.record import shortened_fields

MAX_LISTED = 20  # runs of an entry of the log


class Stops:
    """Stops by the owner of a gate. Safe for threads, as its log is.

    Args:
        log: the log of the gate.
    """

    def __init__(self, log: GateLog) -> None:
        self._log = log

    def revoked(self) -> Collection[str]:
        """Return the names of the approvals that were revoked.

        Raises:
            AdmissionError: the log cannot be read.
        """
        with self._log.using():
            return self._log.ledger.revoked()

    def paused(self) -> Collection[str]:
        """Return the coordinators that the owner lets run nothing.

        Raises:
            AdmissionError: the log cannot be read.
        """
        with self._log.using():
            return {name for (name,) in self._log.ledger.rows("SELECT coordinator FROM paused")}

    def pause(self, coordinator: str, by: str, *, paused: bool) -> None:
        """Remember that a coordinator is paused, or that it is not any more, and record it.

        Args:
            coordinator: its name.
            by: who wants it.
            paused: whether it is.

        Raises:
            AdmissionError: it cannot be recorded.
        """
        with self._log.recording(coordinator, always=True) as writing:
            if paused:
                writing.change(
                    "INSERT OR IGNORE INTO paused VALUES (?, ?)", coordinator, writing.now
                )
            else:
                writing.change("DELETE FROM paused WHERE coordinator = ?", coordinator)
            fields = {"coordinator": coordinator, "by": by}
            writing.add("paused" if paused else "resumed", shortened_fields(fields))

    def stop(self, coordinator: str, runs: Collection[str], about: Body) -> None:
        """Withdraw the results of runs, and record that the owner has stopped them.

        Args:
            coordinator: whose runs they are.
            runs: their names.
            about: plain data.

        Raises:
            AdmissionError: it cannot be recorded.
        """
        with self._log.recording(coordinator, always=True) as writing:
            for run in runs:
                writing.change("INSERT OR IGNORE INTO stopped VALUES (?, ?)", coordinator, run)
            fields = {"coordinator": coordinator, **about, "runs": listed(runs)}
            writing.add("stopped", shortened_fields(fields))


def listed(runs: Collection[str]) -> list[str]:
    """Return runs as an entry of the log has them: the first ones, and how many others there are.

    Example:
        >>> listed(["s-2", "s-1"]), listed([f"s-{i:02}" for i in range(22)])[-1]
        (['s-1', 's-2'], 'and 2 more')
    """
    names = sorted(runs)
    more = len(names) - MAX_LISTED
    return names if more <= 0 else [*names[:MAX_LISTED], f"and {more} more"]
