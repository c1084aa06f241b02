"""Receipts of runs: what the gates of workers have signed of their logs, kept by the coordinator.

A gate whose log lacks what a receipt remembers runs nothing, so an owner that nobody else takes
part with cannot take back a run either.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MAX_KEPT = 100_000  # receipts, the oldest of which go
PRUNED = 1000  # receipts after which those that are too many go
MAX_TEXT = 512  # characters of a receipt
log = logging.getLogger("mplang.http.receipts")

_TABLES = """
CREATE TABLE IF NOT EXISTS receipts (
  gate TEXT NOT NULL, number INTEGER NOT NULL, party TEXT NOT NULL, address TEXT NOT NULL,
  run TEXT NOT NULL, time REAL NOT NULL, text TEXT NOT NULL, PRIMARY KEY (gate, number)
) STRICT;
"""


class Receipt(NamedTuple):
    """Receipt of one run at one worker.

    Attributes:
        party: name of the worker.
        address: its address.
        run: name of the run.
        time: when it came, in seconds since 1970.
        text: ``NUMBER:HASH:…``, as the gate has signed it.
    """

    party: str
    address: str
    run: str
    time: float
    text: str

    @property
    def head(self) -> str:
        """The entry that contains the run, as ``mplang audit verify --head`` takes it."""
        return f"{self.party}={':'.join(self.text.split(':')[:2])}"


def receipts_path() -> Path:
    """Return the file of the receipts, ``$XDG_STATE_HOME/mplang/receipts.db``."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "mplang" / "receipts.db"


class Receipts:
    """Receipts in a file, which several hosts may share. Safe for threads.

    Where it cannot be written they are lost with this process, and a warning says so once.

    Args:
        path: the file; made with its folder once there is something to keep.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = receipts_path() if path is None else path
        self._lock = threading.Lock()
        self._file: sqlite3.Connection | None = None
        self._latest: dict[str, str] = {}  # by gate, of this process
        self._kept = 0
        self._warned = False

    def keep(self, gate: str, receipt: Receipt) -> None:
        """Keep a receipt, unless it is kept already.

        Args:
            gate: public key of the worker's gate.
            receipt: the receipt, as the worker tells it.
        """
        number = receipt.text.partition(":")[0]
        wrong = not (number.isascii() and number.isdecimal() and len(number) < 19)
        if wrong or len(receipt.text) > MAX_TEXT or self._latest.get(gate) == receipt.text:
            return
        self._latest[gate] = receipt.text
        with self._lock, self._warning():
            file = self._open()
            file.execute(
                "INSERT OR IGNORE INTO receipts VALUES (?, ?, ?, ?, ?, ?, ?)",
                (gate, int(number), *receipt),
            )
            if self._kept % PRUNED == 0:
                file.execute(
                    "DELETE FROM receipts WHERE rowid IN "
                    "(SELECT rowid FROM receipts ORDER BY time DESC LIMIT -1 OFFSET ?)",
                    (MAX_KEPT,),
                )
            self._kept += 1

    def latest(self, gate: str) -> str:
        """Return the receipt with the largest number of a gate; empty if there is none."""
        rows: list[tuple[str]] = []
        with self._lock, self._warning():
            query = "SELECT text FROM receipts WHERE gate = ? ORDER BY number DESC LIMIT 1"
            if self._path.exists():
                rows = self._open().execute(query, (gate,)).fetchall()
        lost = self._latest.get(gate, "") if self._warned else ""
        return rows[0][0] if rows else lost

    def all(self) -> list[Receipt]:
        """Return all receipts, the oldest first.

        Raises:
            sqlite3.Error: the file cannot be read.
        """
        if not self._path.exists():
            return []
        query = "SELECT party, address, run, time, text FROM receipts ORDER BY time"
        with self._lock:
            return [Receipt(*row) for row in self._open().execute(query)]

    def forget(self, party: str) -> int:
        """Forget the receipts of a party; return how many there were.

        Raises:
            sqlite3.Error: the file cannot be written.
        """
        with self._lock:
            done = self._open().execute("DELETE FROM receipts WHERE party = ?", (party,))
            return done.rowcount

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._file = None

    def _open(self) -> sqlite3.Connection:
        if self._file is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with contextlib.suppress(FileExistsError):  # to close it drops locks of this process
                os.close(os.open(self._path, flags, 0o600))
            file = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            file.execute("PRAGMA journal_mode = WAL")
            file.execute("PRAGMA synchronous = NORMAL")  # a run waits for no disk of the host
            file.executescript(_TABLES)
            self._file = file
        return self._file

    @contextlib.contextmanager
    def _warning(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if not self._warned:
                log.warning("receipts of runs are not kept in %s: %s", self._path, error)
            self._warned = True


def receipt_now(party: str, address: str, run: str, text: str) -> Receipt:
    """Return a receipt that comes now."""
    return Receipt(party, address, run, time.time(), text)
