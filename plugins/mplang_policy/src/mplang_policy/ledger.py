"""Ledger of an owner: a chained log in one SQLite file, beside all that runs use up.

Each entry has the SHA-256 of itself and of the one before, so that a changed, removed, moved or
added one is found. A chain without a key can be made anew by who can write the file: its head goes
to the other parties with each run, and theirs are kept here.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from mplang_core import MPLangError
from mplang_policy.approval import Approval
from mplang_policy.budgets import Amount
from mplang_policy.ledger_tables import TABLES
from mplang_policy.quota import Used
from mplang_policy.tried import Tried, note_tried, tried_today

T = TypeVar("T")
Body: TypeAlias = Mapping[str, Any]
"""What an entry says, as plain data."""
VERSION = 1
BEGINNING = "0" * 64
"""What the first entry has for the hash of the one before."""

REDUCED = "null"
"""Text of an entry whose body has expired; see :mod:`mplang_policy.expiry`."""
ROTATION, EXPIRED, ENTRIES = "rotation", "expired", "entries"
WHOLE = (ROTATION, EXPIRED)  # kinds that are never reduced: verification needs them

BATCH = 1000  # entries that are read at a time
BESIDE = 200  # bytes of an entry beside its body
PATIENCE = 1.0  # seconds that the file may be locked
MAX_BACK = 60.0  # seconds that the clock may go back, as time servers correct it

_WRITTEN = f"""
WITH today AS (
  SELECT json_extract(body, '$.coordinator') AS coordinator,
    json_extract(body, '$.rows') AS rows, length(body) + {BESIDE} AS bytes
  FROM log WHERE json_valid(body) AND number > coalesce(
    (SELECT number FROM log WHERE time < ? ORDER BY number DESC LIMIT 1), 0)
)
SELECT coordinator, sum(entries), sum(bytes) FROM (
  SELECT coordinator, 1 AS entries, bytes FROM today UNION ALL
  SELECT coordinator, 0, length(body) + {BESIDE}
  FROM (SELECT DISTINCT coordinator, rows FROM today) JOIN details ON hash = rows
) WHERE typeof(coordinator) = 'text' GROUP BY coordinator
"""


SALT = "salt"  # field of an entry that is random


class LedgerError(MPLangError, RuntimeError, code="C013"):
    """Ledger that cannot be written, or was set back; nothing runs until it is mended."""


class Head(NamedTuple):
    """The last entry of a log.

    Attributes:
        number: its number, from 1; 0 of an empty log.
        hash: its SHA-256, in hex.
    """

    number: int
    hash: str


class Entry(NamedTuple):
    """An entry of the log.

    Attributes:
        number: its number, from 1.
        time: seconds since 1970.
        kind: ``run``, ``refusal``, ``fetch``, ``put``, ``end``, …
        text: the rest, in JSON.
        previous: hash of the entry before.
        hash: its own.
    """

    number: int
    time: float
    kind: str
    text: str
    previous: str
    hash: str

    @property
    def body(self) -> dict[str, Any]:
        """The rest, as plain data; nothing if it was changed to something else."""
        try:
            found = json.loads(self.text)
        except (ValueError, RecursionError):
            return {}
        return {k: found[k] for k in found if k != SALT} if isinstance(found, dict) else {}


class Ledger:
    """Ledger in a file. Safe for threads; one process has it at a time.

    Args:
        path: its file, which is made if it is not there.
        clock: returns the time, in seconds since 1970.
        read_only: whether it is only looked at, perhaps while its worker runs.

    Raises:
        LedgerError: it cannot be opened, or is of another version.
    """

    def __init__(
        self, path: str | Path, clock: Callable[[], float] = time.time, *, read_only: bool = False
    ) -> None:
        self._path = Path(path)
        self._clock = clock
        self._lock = threading.RLock()
        with _told(self._path):
            if not read_only:
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                with contextlib.suppress(FileExistsError):  # to close it drops this process's locks
                    os.close(os.open(self._path, flags, 0o600))
            self._file = _open(self._path, read_only)
            if not read_only:
                self._file.executescript(f"BEGIN IMMEDIATE; {TABLES} COMMIT;")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()

    @property
    def head(self) -> Head:
        """The last entry."""
        with self._lock, _told(self._path):
            return self._head()

    def _head(self) -> Head:
        row = self._file.execute("SELECT number, hash FROM log ORDER BY number DESC LIMIT 1")
        found = row.fetchone()
        return Head(0, BEGINNING) if found is None else Head(*found)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Writing]:
        """Change the ledger inside of ``with``: all of it is on the disk afterwards, or nothing.

        Raises:
            LedgerError: it cannot be written.
        """
        with self._lock, _told(self._path):
            self._file.execute("BEGIN IMMEDIATE")
            try:
                yield Writing(self._file, self._now(), self._head())
                self._file.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._file.execute("ROLLBACK")
                raise

    def _now(self) -> float:
        """Return the time, which does not go back.

        Raises:
            LedgerError: the clock was set back.
        """
        now = float(self._clock())
        query = "SELECT time FROM log ORDER BY number DESC LIMIT 1"  # the latest, without a scan
        (last,) = self._file.execute(query).fetchone() or (0.0,)
        if now < last - MAX_BACK:
            raise LedgerError(
                f"the clock is {last - now:.0f} s before the last entry; set it right, or, if it "
                "was wrong then, run mplang audit accept-clock"
            )
        return max(now, float(last))

    def accept_clock(self) -> float:
        """Go on by the clock as it is, if it is before the last entry; return by how many seconds.

        That is on record. 0 if there is nothing to accept.

        Raises:
            LedgerError: it cannot be written.
        """
        with self._lock, _told(self._path):
            self._file.execute("BEGIN IMMEDIATE")
            try:
                query = "SELECT time FROM log ORDER BY number DESC LIMIT 1"
                (last,) = self._file.execute(query).fetchone() or (0.0,)
                now = float(self._clock())
                if now < last:
                    body = {"before": last, "now": now}
                    Writing(self._file, now, self._head()).add("clock accepted", body)
                self._file.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._file.execute("ROLLBACK")
                raise
        return max(0.0, float(last) - now)

    def add(self, kind: str, body: Body) -> Head:
        """Add an entry.

        Args:
            kind: what it is about.
            body: plain data.

        Returns:
            The new head.

        Raises:
            LedgerError: it cannot be written.
        """
        with self.writing() as writing:
            return writing.add(kind, body)

    def entries(self, begin: int = 1) -> Iterator[Entry]:
        """Yield the entries from a number on.

        Raises:
            LedgerError: it cannot be read.
        """
        while True:
            with self._lock, _told(self._path):
                rows = self._file.execute(
                    "SELECT number, time, kind, body, previous, hash FROM log WHERE number >= ? "
                    "ORDER BY number LIMIT ?",
                    (begin, BATCH),
                ).fetchall()
            if not rows:
                return
            yield from map(Entry._make, rows)
            begin = rows[-1][0] + 1

    def detail(self, digest: str) -> Any:
        """Return data that entries speak of by its SHA-256; ``None`` if it is lost, or changed.

        Raises:
            LedgerError: it cannot be read.
        """
        with self._lock, _told(self._path):
            row = self._file.execute(
                "SELECT body FROM details WHERE hash = ?", (digest,)
            ).fetchone()
        if row is None or hashlib.sha256(row[0].encode()).hexdigest() != digest:
            return None
        return json.loads(row[0])

    def now(self) -> float:
        """Return the time in seconds since 1970, which does not go back.

        Raises:
            LedgerError: the clock was set back.
        """
        with self._lock, _told(self._path):
            return self._now()

    def uses(self) -> dict[str, int]:
        """Return how often approvals were used, by their names."""
        with self._lock, _told(self._path):
            return dict(self._file.execute("SELECT approval, used FROM uses").fetchall())

    def spent(self) -> dict[tuple[str, str], Amount]:
        """Return what was used up of data sets, by data set and coordinator."""
        with self._lock, _told(self._path):
            return _spent(self._file)

    def written(self, since: float) -> dict[str, Used]:
        """Return what each coordinator has caused since a time; what many entries speak of once.

        Args:
            since: seconds since 1970.
        """
        with self._lock, _told(self._path):
            return {who: Used(*used) for who, *used in self._file.execute(_WRITTEN, (since,))}

    def revoked(self) -> set[str]:
        """Return the names of the approvals that were revoked."""
        with self._lock, _told(self._path):
            return {name for (name,) in self._file.execute("SELECT approval FROM revoked")}

    def head_at(self, number: int) -> Head:
        """Return an entry of the log; 0 and no hash if there is none of that number.

        Args:
            number: its number.
        """
        with self._lock, _told(self._path):
            query = "SELECT number, hash FROM log WHERE number = ?"
            row = self._file.execute(query, (number,)).fetchone()
        return Head(0, "") if row is None else Head(*row)

    def heads(self) -> dict[str, Head]:
        """Return the last entries of the peers' logs, as they told them."""
        with self._lock, _told(self._path):
            rows = self._file.execute("SELECT peer, number, hash FROM heads").fetchall()
            if self._file.execute(
                "SELECT 1 FROM sqlite_master WHERE name = 'chains'"  # not in one that f9a7ea0 wrote
            ).fetchone():
                seals = self._file.execute("SELECT peer, seal FROM chains").fetchall()
                rows += [(peer, *seal.split(":")[:2]) for peer, seal in seals]
        return {peer: Head(int(number), digest) for peer, number, digest in rows}

    def reading(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Return what a function reads in the file.

        Raises:
            LedgerError: it cannot be read.
        """
        with self._lock, _told(self._path):
            return query(self._file)

    def rows(self, query: str, *args: str) -> list[tuple[str, ...]]:
        """Return the rows of a query."""
        with self._lock, _told(self._path):
            return self._file.execute(query, args).fetchall()

    def has(self, head: Head) -> bool:
        """Return whether the log has an entry as a peer remembers it, or has archived it."""
        if head.number == 0:
            return head.hash == BEGINNING
        with self._lock, _told(self._path):
            (first,) = self._file.execute("SELECT min(number) FROM log").fetchone()
            row = self._file.execute("SELECT hash FROM log WHERE number = ?", (head.number,))
            found = row.fetchone()
        if found is None:
            return first is not None and head.number < first
        return bool(found[0] == head.hash)


class Writing:
    """A change of the ledger.

    Args:
        file: the connection, inside of a transaction.
        now: the time.
        head: the last entry.

    Attributes:
        now: the time, in seconds since 1970.
        used: what it adds.
    """

    def __init__(self, file: sqlite3.Connection, now: float, head: Head) -> None:
        self._file = file
        self.now = now
        self.used = Used()
        self._last = head

    def add(self, kind: str, body: Body) -> Head:
        """Add an entry to the log, and return the new head."""
        # peers have hashes of the entries, which they could else guess
        text = canonical({**body, SALT: secrets.token_hex(8)})
        number, previous = self._last.number + 1, self._last.hash
        digest = hash_of(number, self.now, kind, text, previous)
        self._file.execute(
            "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)",
            (number, self.now, kind, text, previous, digest),
        )
        self._last = Head(number, digest)
        self.used = self.used.plus(Used(1, len(text) + BESIDE))
        return self._last

    def add_detail(self, body: Any) -> str:
        """Keep data that many entries speak of, once; return its SHA-256 for them.

        Args:
            body: plain data.
        """
        text, digest = canonical(body), digest_of(body)
        query = "INSERT OR IGNORE INTO details VALUES (?, ?)"
        if self._file.execute(query, (digest, text)).rowcount:
            self.used = self.used.plus(Used(0, len(text) + BESIDE))
        return digest

    def use(self, approval: Approval) -> str:
        """Use an approval once more; return why it cannot be, or nothing.

        Args:
            approval: the approval.
        """
        name = approval.id
        if self._one("SELECT time FROM revoked WHERE approval = ?", name) is not None:
            return f"approval {name} was revoked"
        if approval.expires.timestamp() <= self.now:
            return f"approval {name} has expired"
        if (self._one("SELECT used FROM uses WHERE approval = ?", name) or 0) >= approval.uses:
            return f"the {approval.uses} uses of approval {name} are used up"
        self._file.execute(
            "INSERT INTO uses VALUES (?, 1) ON CONFLICT (approval) DO UPDATE SET used = used + 1",
            (name,),
        )
        return ""

    def spent(self) -> dict[tuple[str, str], Amount]:
        """Return what was used up of data sets, by data set and coordinator."""
        return _spent(self._file)

    def spend(self, coordinator: str, data_set: str, amount: Amount) -> None:
        """Use up some of the budget of a data set."""
        self._file.execute(
            "INSERT INTO spent VALUES (?, ?, ?, ?) ON CONFLICT (data_set, coordinator) DO UPDATE "
            "SET epsilon = epsilon + excluded.epsilon, delta = delta + excluded.delta",
            (data_set, coordinator, *amount),
        )

    def tried(self) -> dict[tuple[str, str], int]:
        """Return how many keys were tried today, by data set and party."""
        return tried_today(self._file, self.now)

    def try_keys(self, wanted: Sequence[Tried]) -> None:
        """Add keys that a program tries."""
        note_tried(self._file, self.now, wanted)

    def drop_before(self, number: int) -> None:
        """Remove the entries before one, and what none speaks of any more."""
        self._file.execute("DELETE FROM log WHERE number < ?", (number,))
        self._file.execute(
            "DELETE FROM details WHERE hash NOT IN (SELECT json_extract(body, '$.rows') FROM log "
            "WHERE json_extract(body, '$.rows') IS NOT NULL)"
        )

    def revoke(self, approval: str) -> bool:
        """Revoke an approval; return whether it may have counted before."""
        query = "INSERT OR IGNORE INTO revoked VALUES (?, ?)"
        return self._file.execute(query, (approval, self.now)).rowcount > 0

    def change(self, query: str, *args: str | float) -> None:
        """Execute a statement inside of the transaction."""
        self._file.execute(query, args)

    def _one(self, query: str, name: str) -> Any:
        found = self._file.execute(query, (name,)).fetchone()
        return None if found is None else found[0]

    def changed(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Return what a function returns that changes the file, in this transaction."""
        return change(self._file)

    def recorded(self, subject: str) -> str | None:
        """Return what :meth:`set_recorded` has kept of a subject."""
        digest: str | None = self._one("SELECT digest FROM recorded WHERE subject = ?", subject)
        return digest

    def set_recorded(self, subject: str, digest: str) -> None:
        """Keep of a subject what the log has said of it last."""
        self._file.execute("INSERT OR REPLACE INTO recorded VALUES (?, ?)", (subject, digest))

    @property
    def head(self) -> Head:
        """The last entry, of this transaction if it has added one."""
        return self._last

    def hashes(self, first: int) -> list[str]:
        """Return the hashes of the entries from a number on."""
        query = "SELECT hash FROM log WHERE number >= ? ORDER BY number"
        return [digest for (digest,) in self._file.execute(query, (first,))]


def _spent(file: sqlite3.Connection) -> dict[tuple[str, str], Amount]:
    rows = file.execute("SELECT data_set, coordinator, epsilon, delta FROM spent").fetchall()
    return {(data_set, who): Amount(*amounts) for data_set, who, *amounts in rows}


def hash_of(number: int, at: float, kind: str, body: str, previous: str) -> str:
    """Return the SHA-256 of an entry, in hex."""
    return hashlib.sha256(canonical([number, at, kind, body, previous]).encode()).hexdigest()


def digest_of(data: Any) -> str:
    """Return the SHA-256 of plain data, in hex."""
    return hashlib.sha256(canonical(data).encode()).hexdigest()


def canonical(data: Any) -> str:
    """Return plain data in JSON, the same for equal data."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _open(path: Path, read_only: bool) -> sqlite3.Connection:
    if read_only and not path.exists():
        raise LedgerError(f"there is no log {path}; the worker makes it when it starts")
    where = f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rw'}"
    file = sqlite3.connect(
        where, timeout=PATIENCE, isolation_level=None, check_same_thread=False, uri=True
    )
    if not read_only:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = FULL")
    (version,) = file.execute("PRAGMA user_version").fetchone()
    if version not in (0, VERSION):
        raise LedgerError(f"{path} has version {version}; this one reads {VERSION}")
    if not read_only:
        file.execute(f"PRAGMA user_version = {VERSION}")
    return file


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise LedgerError(f"the log {path} cannot be used: {error}") from error
