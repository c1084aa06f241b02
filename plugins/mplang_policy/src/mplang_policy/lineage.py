"""Lineage of stored values: the runs and approvals that a run rests on, and what is withdrawn.

A run rests on whatever came into its session before it: on the approvals of earlier runs, and on
the runs whose stored values were loaded. What one of them has made may have flowed into it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence, Set
from typing import NamedTuple

from mplang_analysis import RunRequest

from mplang_policy.gate_log import GateLog
from mplang_policy.ledger import Body, Writing
from mplang_policy.quota import Used
from mplang_policy.record import shortened_fields

ROW = 200  # bytes of a row, as it counts in the quota of a coordinator


class Notice(NamedTuple):
    """Notice to a party that what a run has stored there is withdrawn here.

    Attributes:
        coordinator: whose run it is.
        run: its name.
        party: name of the party.
    """

    coordinator: str
    run: str
    party: str


class StoredLineage:
    """Lineage of what runs have stored, as a gate remembers it. Safe for threads, as its ledger is.

    Its methods raise an ``AdmissionError`` if the ledger cannot be used.

    Args:
        log: the log of the gate.
    """

    def __init__(self, log: GateLog) -> None:
        self._log, self._ledger = log, log.ledger
        # what is withdrawn, as it was found in the ledger last; changed under its lock only
        self._marks: tuple[int, ...] = ()  # how much was stopped and revoked then
        self._gone: Set[tuple[str, str]] = frozenset()  # coordinators and runs
        self._notices: Sequence[Notice] = ()

    def begin(self, writing: Writing, run: RunRequest, approval: str) -> None:
        """Record what a run rests on that stores something, in the change in which it begins.

        Args:
            writing: the change.
            run: the run.
            approval: the approval that it uses itself; empty if it needs none.
        """
        asked = run.asked
        storing = {rank for what, _, at in asked.storage if what == "store" for rank in at}
        if not storing:
            return
        about = asked.coordinator, run.run
        for name in sorted({*run.approved, approval} - {""}):
            _insert(writing, "INSERT OR IGNORE INTO rests VALUES (?, ?, ?)", *about, name)
        for source in sorted(set(run.loaded)):
            _insert(writing, _REST, *about, source)
        if writing.changed(lambda file: self._rests_on_gone(file, *about, run.loaded)):
            self._marks = ()  # it is looked for anew
        for rank, party in enumerate(asked.names):
            if party != self._log.party:
                # where nothing is stored, nobody has to know, but each may say that it is withdrawn
                row = *about, party, int(rank not in storing)
                _insert(writing, "INSERT OR IGNORE INTO partners VALUES (?, ?, ?, ?)", *row)

    def rest_on(self, coordinator: str, run: str, source: str) -> None:
        """Record that a run loads what another one has stored, before it does.

        Args:
            coordinator: whose runs they are.
            run: its name.
            source: name of the other one.

        Raises:
            AdmissionError: it cannot be recorded.
        """
        with self._log.recording(coordinator) as writing:
            _insert(writing, _REST, coordinator, run, source)
            if (coordinator, source) in self._gone:
                self._marks = ()

    def withdrawn(self, coordinator: str, runs: Collection[str]) -> set[str]:
        """Return the runs that rest on one that was stopped, or on an approval that was revoked.

        Of several runs of one name, as a coordinator may choose, one is enough.

        Args:
            coordinator: whose runs they are.
            runs: their names; untrusted.

        Raises:
            AdmissionError: the log cannot be read.
        """
        with self._log.using():
            self._ledger.reading(self._look)
        gone = self._gone
        return {run for run in runs if (coordinator, run) in gone}

    def withdraw(self, coordinator: str, run: str, sender: str | None, about: Body) -> bool:
        """Withdraw a run, as a party says that takes part in it; record that once.

        Args:
            coordinator: whose run it is.
            run: its name; untrusted.
            sender: the party that says so; ``None`` for any, where nobody can be told apart.
            about: plain data, for the log.

        Returns:
            Whether that party takes part in such a run which has stored something.
        """
        with self._log.recording(coordinator, always=True) as writing:
            if not writing.changed(lambda file: _notify(file, coordinator, run, sender)):
                return False
            if writing.changed(lambda file: self._stop(file, coordinator, run)):
                fields = {"coordinator": coordinator, **about, "runs": [run]}
                writing.add("stopped", shortened_fields(fields))
        return True

    def notices(self) -> Collection[Notice]:
        """Return the notices that other parties have not answered."""
        with self._log.using():
            self._ledger.reading(self._look)
        return tuple(self._notices)

    def notified(self, notice: Notice) -> None:
        """Record that a party has answered a notice."""
        coordinator, run, party = notice
        with self._log.recording(coordinator, always=True) as writing:
            writing.changed(lambda file: _notify(file, coordinator, run, party))
        self._notices = [each for each in self._notices if each != notice]

    def _look(self, file: sqlite3.Connection) -> None:
        """Look what is withdrawn, if more was stopped or revoked, by another process, too.

        What rests on it is followed from there: it is little, and runs that rest on others are
        many after a while.
        """
        marks = _count(file)
        if marks != self._marks:
            self._gone = set(file.execute(_GONE).fetchall())
            self._notices = [Notice(*row) for row in file.execute(_NOTICES).fetchall()]
            self._marks = marks

    def _rests_on_gone(
        self, file: sqlite3.Connection, coordinator: str, run: str, sources: Collection[str]
    ) -> bool:
        """Return whether a run rests by itself on what is withdrawn."""
        if any((coordinator, source) in self._gone for source in sources):
            return True
        query = "SELECT 1 FROM rests NATURAL JOIN revoked WHERE coordinator = ? AND run = ?"
        return file.execute(query, (coordinator, run)).fetchone() is not None

    def _stop(self, file: sqlite3.Connection, coordinator: str, run: str) -> bool:
        """Record that a run was stopped; return whether that is new."""
        self._look(file)
        if (coordinator, run) in self._gone:
            return False
        file.execute("INSERT OR IGNORE INTO stopped VALUES (?, ?)", (coordinator, run))
        return True


def _insert(writing: Writing, query: str, *row: str | int) -> None:
    writing.change(query, *row)
    writing.used = writing.used.plus(Used(0, ROW))  # a coordinator chooses how many there are


def _notify(file: sqlite3.Connection, coordinator: str, run: str, party: str | None) -> bool:
    """Record that a party knows that a run is withdrawn; return whether it takes part in it."""
    query = "UPDATE partners SET notified = 1 WHERE coordinator = ?1 AND run = ?2 AND party = ?3"
    if party is not None:
        return file.execute(query, (coordinator, run, party)).rowcount > 0
    query = "SELECT 1 FROM partners WHERE coordinator = ? AND run = ? LIMIT 1"
    return file.execute(query, (coordinator, run)).fetchone() is not None


def _count(file: sqlite3.Connection) -> tuple[int, ...]:
    """Return how many runs were stopped, and approvals revoked: each only grows."""
    tables = "stopped", "revoked"
    return tuple(file.execute(f"SELECT count(*) FROM {each}").fetchone()[0] for each in tables)


_REST = "INSERT OR IGNORE INTO lineage VALUES (?, ?, ?)"
_FOLLOWED = """
WITH RECURSIVE gone (coordinator, run) AS (
  SELECT coordinator, run FROM stopped UNION
  SELECT coordinator, run FROM rests NATURAL JOIN revoked UNION
  SELECT lineage.coordinator, lineage.run FROM lineage
  JOIN gone ON lineage.coordinator = gone.coordinator AND lineage.source = gone.run
)
"""
_GONE = f"{_FOLLOWED} SELECT coordinator, run FROM gone"
_NOTICES = (
    f"{_FOLLOWED} SELECT coordinator, run, party FROM partners NATURAL JOIN gone WHERE NOT notified"
)
