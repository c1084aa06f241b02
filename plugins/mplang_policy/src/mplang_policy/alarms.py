"""Alarms of a gate: logs that were set back, which the owner is shown until that is cleared up."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import NamedTuple

OWN, PEER = "own", "peer"


class Alarm(NamedTuple):
    """Log that was set back.

    Attributes:
        log: ``own`` or ``peer``.
        party: of a peer's log its name; of this party's who remembers more of it, a peer or a
            coordinator.
        run: name of the run by which that came to light, at all its parties.
    """

    log: str
    party: str
    run: str


def add_alarm(file: sqlite3.Connection, alarm: Alarm) -> None:
    """Remember an alarm; a later one of the same party replaces it."""
    file.execute("INSERT OR REPLACE INTO alarms VALUES (?, ?, ?)", alarm)


def clear_alarms(file: sqlite3.Connection, log: str, parties: Collection[str]) -> None:
    """Forget the alarms of parties."""
    rows = ((log, party) for party in parties)
    file.executemany("DELETE FROM alarms WHERE log = ? AND party = ?", rows)


def read_alarms(file: sqlite3.Connection) -> list[Alarm]:
    """Return the alarms that were not cleared up."""
    return [Alarm(*row) for row in file.execute("SELECT log, party, run FROM alarms ORDER BY 1, 2")]
