"""What an owner stops: runs whose results are not loaded any more, and coordinators."""

from __future__ import annotations

from collections.abc import Collection

from mplang_policy.ledger import Ledger, Writing

MAX_LISTED = 20  # runs of an entry of the log


def withdraw(writing: Writing, coordinator: str, runs: Collection[str]) -> None:
    """Withdraw the results of runs.

    Args:
        writing: a change of the ledger.
        coordinator: whose runs they are.
        runs: their names.
    """
    for run in runs:
        writing.change("INSERT OR IGNORE INTO stopped VALUES (?, ?)", coordinator, run)


def paused(ledger: Ledger) -> set[str]:
    """Return the coordinators that are paused."""
    return {name for (name,) in ledger.rows("SELECT coordinator FROM paused")}


def set_paused(writing: Writing, coordinator: str, *, paused: bool) -> None:
    """Remember that a coordinator is paused, or forget it.

    Args:
        writing: a change of the ledger.
        coordinator: its name.
        paused: whether it is.
    """
    if paused:
        writing.change("INSERT OR IGNORE INTO paused VALUES (?, ?)", coordinator, writing.now)
    else:
        writing.change("DELETE FROM paused WHERE coordinator = ?", coordinator)


def listed(runs: Collection[str]) -> list[str]:
    """Return runs as an entry of the log has them: the first ones, and how many others there are.

    Example:
        >>> listed(["s-2", "s-1"]), listed([f"s-{i:02}" for i in range(22)])[-1]
        (['s-1', 's-2'], 'and 2 more')
    """
    names = sorted(runs)
    more = len(names) - MAX_LISTED
    return names if more <= 0 else [*names[:MAX_LISTED], f"and {more} more"]
