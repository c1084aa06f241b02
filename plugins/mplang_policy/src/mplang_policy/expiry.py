"""Expiry of a log: details and bodies of old entries are deleted; the chain still verifies.

An entry that is reduced keeps its number, time, kind, and both hashes, so that the next one still
follows it. What its run has used up goes to the entry that records the expiry, which also has a
SHA-256 of all that is left. Record and deletion are one transaction.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from itertools import groupby

from mplang_core.ext import DAY
from mplang_policy.ledger import (
    ENTRIES,
    EXPIRED,
    REDUCED,
    WHOLE,
    Entry,
    Ledger,
    LedgerError,
    Writing,
    canonical,
    hash_of,
)
from mplang_policy.retention import Retention
from mplang_policy.state import RULES
from mplang_policy.sums import Sums

DETAILS = "details"
BATCH = 10_000  # entries of a transaction, so that runs begin in between
_RECORDED = "SELECT digest FROM recorded WHERE subject = ?"
_ENTRIES = "SELECT number, time, kind, body, previous, hash FROM log WHERE number >= ?"


def expire(ledger: Ledger, retention: Retention, now: float) -> int:
    """Delete what has expired of a log; each batch is on record with its rule.

    Args:
        ledger: the ledger.
        retention: the rules.
        now: the time, in seconds since 1970; no later than that of the log counts.

    Returns:
        How many details and bodies it has deleted.

    Raises:
        LedgerError: the log cannot be written, or an entry was changed, so that nothing expires
            that could tell of it.
    """
    total = 0
    for what, days in retention.days.items():
        more = True
        while more:
            with ledger.writing() as writing:
                count, more = writing.changed(_Expiry(ledger, writing, what, days, now))
            total += count
    if total:  # also the copies in the log of SQLite itself
        ledger.reading(lambda file: file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
    return total


def expiring(ledger: Ledger, retention: Retention) -> Iterator[tuple[str, str, float]]:
    """Yield what of a log will expire: the rule, what, and when, day by day.

    Args:
        ledger: the ledger.
        retention: the rules.
    """
    for what, days in retention.days.items():
        left = _details_left(ledger) if what == DETAILS else _bodies_left(ledger)
        for day, each in groupby(left, lambda entry: entry.time // DAY):
            entries = list(each)
            first, last = entries[0].number, entries[-1].number
            of = f"{len(entries)} {what} of the log, {first} to {last}"
            yield what, of, (day + 1 + days) * DAY


def _bodies_left(ledger: Ledger) -> Iterator[Entry]:
    for entry in ledger.entries():
        if entry.text != REDUCED and entry.kind not in WHOLE:
            yield entry


def _details_left(ledger: Ledger) -> Iterator[Entry]:
    """Yield for each detail that can expire the last entry that speaks of it."""
    spoken_of: dict[str, Entry] = {}
    for entry in ledger.entries():
        rows = entry.body.get("rows")
        if isinstance(rows, str):
            spoken_of.pop(rows, None)  # so that it is the last one of the dict, too
            spoken_of[rows] = entry
    current = {row[0].partition(":")[2] for row in ledger.rows(_RECORDED, RULES)}
    for rows, entry in spoken_of.items():
        if rows not in current and ledger.detail(rows) is not None:
            yield entry


def rule_of(what: str) -> str:
    """Return the name of a rule, by what expires by it."""
    return f"gate.retention.{what}"


class _Expiry:
    """Expiry of one batch, inside of a transaction."""

    def __init__(self, ledger: Ledger, writing: Writing, what: str, days: int, now: float) -> None:
        self._ledger, self._writing, self._what, self._days = ledger, writing, what, days
        self._now = min(now, writing.now)
        self._cursor = f"{EXPIRED} {what}"

    def __call__(self, file: sqlite3.Connection) -> tuple[int, bool]:
        """Return how many it has deleted, and whether there may be more."""
        first = int(self._writing.recorded(self._cursor) or 1)
        before = self._before(file, first)
        if before <= first:
            return 0, False
        rows = file.execute(f"{_ENTRIES} AND number < ? ORDER BY number", (first, before))
        entries = [Entry(*row) for row in rows]
        file.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
        _check(entries)
        expire_batch = self._reduce if self._what == ENTRIES else self._delete_details
        count = expire_batch(file, entries, before)
        self._writing.set_recorded(self._cursor, str(before))
        return count, len(entries) >= BATCH

    def _before(self, file: sqlite3.Connection, first: int) -> int:
        """Return the number of the first entry that is kept, of a batch.

        One that is dated ahead, by a clock that was wrong, is as old as the one that follows.
        """
        young = file.execute(
            "SELECT number FROM log WHERE number >= ? AND time > ? AND time <= ? "
            "ORDER BY number LIMIT 1",
            (first, self._now - self._days * DAY, self._writing.now),
        ).fetchone()
        (last,) = file.execute("SELECT coalesce(max(number), 0) FROM log").fetchone()
        (begin,) = file.execute(
            "SELECT coalesce(min(number), 0) FROM log WHERE number >= ?", (first,)
        ).fetchone()
        return min(int(last) + 1 if young is None else int(young[0]), int(begin) + BATCH)

    def _reduce(self, file: sqlite3.Connection, entries: list[Entry], before: int) -> int:
        left = [e for e in entries if e.kind not in WHOLE and e.text != REDUCED]
        if not left:
            return 0
        sums = Sums()
        for entry in left:
            sums.add(entry)
        self._record(entries, before, len(left), sha256=digest_of_reduced(left), **sums.to_dict())
        numbers = [(REDUCED, entry.number) for entry in left]
        file.executemany("UPDATE log SET body = ? WHERE number = ?", numbers)
        return len(left)

    def _delete_details(self, file: sqlite3.Connection, entries: list[Entry], before: int) -> int:
        spoken_of = {rows for e in entries if (rows := e.body.get("rows")) is not None}
        here = {rows for rows in spoken_of if self._is_here(file, rows)}
        if not here:
            return 0
        young = file.execute(
            "SELECT DISTINCT json_extract(body, '$.rows') FROM log "
            "WHERE number >= ? AND json_valid(body)",
            (before,),
        )
        rules = (self._writing.recorded(RULES) or "").partition(":")[2]  # those that count now
        gone = here - {rows for (rows,) in young} - {rules}
        if gone:
            self._record(entries, before, len(gone))
            file.executemany("DELETE FROM details WHERE hash = ?", [(rows,) for rows in gone])
        return len(gone)

    def _is_here(self, file: sqlite3.Connection, rows: str) -> bool:
        if file.execute("SELECT 1 FROM details WHERE hash = ?", (rows,)).fetchone() is None:
            return False  # an entry before has let it expire, or verify tells that it is lost
        if self._ledger.detail(rows) is None:
            raise LedgerError(f"detail {rows[:12]} was changed, so nothing expires; {_ADVICE}")
        return True

    def _record(self, entries: list[Entry], before: int, count: int, **more: object) -> None:
        rule = f"{rule_of(self._what)}: {self._days}d"
        about = {"what": self._what, "rule": rule, "days": self._days, "count": count}
        span = {"first": entries[0].number, "before": before}
        self._writing.add(EXPIRED, {**about, **span, **more})


_ADVICE = "mplang audit verify says more"


def _check(entries: list[Entry]) -> None:
    """Check that entries are as they were written: what expires is no longer evidence."""
    for last, entry in zip([None, *entries], entries, strict=False):
        follows = last is None or entry.previous == last.hash
        is_whole = entry.text == REDUCED or hash_of(*entry[:5]) == entry.hash
        if not follows or not is_whole:
            raise LedgerError(f"entry {entry.number} was changed, so nothing expires; {_ADVICE}")


def header_of(entry: Entry) -> bytes:
    """Return the SHA-256 of what is left of an entry that is reduced."""
    left = [entry.number, entry.time, entry.kind, entry.previous, entry.hash]
    return hashlib.sha256(canonical(left).encode()).digest()


def digest_of_reduced(entries: list[Entry]) -> str:
    """Return the SHA-256 of what is left of entries, in hex."""
    return hashlib.sha256(b"".join(map(header_of, entries))).hexdigest()
