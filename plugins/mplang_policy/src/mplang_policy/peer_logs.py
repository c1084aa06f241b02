"""Memory of peers' logs: a head is judged by the chain that it is on, and not by when it comes.

Runs of several coordinators are told of in any order, so a head with a smaller number than the
last one is not evidence. Another hash at a number that is known is.
"""

from __future__ import annotations

import sqlite3
from typing import Any, NamedTuple

from mplang_policy.alarms import PEER, clear_alarms
from mplang_policy.signed_heads import DIGITS, Seal, SignedHead

KEPT = 1024  # hashes of a peer's log: those of heads that may come late
SET_BACK = "set back"
NOT_SHOWN = "not shown"


class Chain(NamedTuple):
    """Hashes of entries in turn.

    Attributes:
        number: number of the last one.
        hashes: their SHA-256, joined, in hex.
    """

    number: int
    hashes: str

    @property
    def first(self) -> int:
        """Number of the first one."""
        return self.number - len(self.hashes) // DIGITS + 1

    def at(self, number: int) -> str:
        """Return the hash of an entry; nothing if it is not among them."""
        if not self.first <= number <= self.number:
            return ""
        begin = (number - self.first) * DIGITS
        return self.hashes[begin : begin + DIGITS]

    def between(self, first: int, last: int) -> str:
        """Return the hashes of some that are among them, joined."""
        return self.hashes[(first - self.first) * DIGITS : (last - self.first + 1) * DIGITS]

    def difference(self, other: Chain) -> int:
        """Return the number of the first entry in both whose hashes differ; 0 if none do."""
        first, last = max(self.first, other.first), min(self.number, other.number)
        if first > last or self.between(first, last) == other.between(first, last):
            return 0
        return next(n for n in range(first, last + 1) if self.at(n) != other.at(n))

    def meets(self, other: Chain) -> bool:
        """Return whether an entry is in both."""
        return max(self.first, other.first) <= min(self.number, other.number)

    def followed_by(self, other: Chain) -> Chain:
        """Return it with the later entries of one that it meets, the last ones of all."""
        joined = self.hashes + other.hashes[(self.number + 1 - other.first) * DIGITS :]
        return Chain(other.number, joined[-KEPT * DIGITS :])


class Evidence(NamedTuple):
    """Evidence by the head of a peer's log.

    Attributes:
        kind: ``set back`` or ``not shown``.
        body: plain data.
    """

    kind: str
    body: dict[str, Any]


class PeerLogs:
    """Store of peers' log heads, in the file of the party's own log.

    Args:
        file: the file, inside of a transaction if it is changed.
    """

    def __init__(self, file: sqlite3.Connection) -> None:
        self._file = file

    def seals(self) -> dict[str, Seal]:
        """Return the last entries of the peers' logs, as they told them."""
        rows = self._file.execute("SELECT peer, number, hash FROM heads").fetchall()
        seals = {peer: Seal(number, digest) for peer, number, digest in rows}
        rows = self._file.execute("SELECT peer, seal FROM chains").fetchall()
        return seals | {peer: Seal.read(text) for peer, text in rows}

    def chain(self, peer: str) -> Chain | None:
        """Return what is remembered of a peer's log; ``None`` if nothing is."""
        query = "SELECT number, hashes FROM chains WHERE peer = ?"
        row = self._file.execute(query, (peer,)).fetchone()
        if row is not None:
            return Chain(row[0], bytes(row[1]).hex())
        query = "SELECT number, hash FROM heads WHERE peer = ?"  # of an earlier version
        row = self._file.execute(query, (peer,)).fetchone()
        return None if row is None else Chain(*row)

    def forget(self, peer: str) -> bool:
        """Forget a peer's log; return whether anything was remembered."""
        done = [
            self._file.execute(f"DELETE FROM {table} WHERE peer = ?", (peer,)).rowcount
            for table in ("heads", "chains")
        ]
        clear_alarms(self._file, PEER, [peer])
        return any(done)

    def note(self, signed: SignedHead, me: str, now: float) -> Evidence | None:
        """Remember a head; return what it shows of a log that is not as it was.

        Args:
            signed: the head, whose signature was verified.
            me: name of this party.
            now: the time.
        """
        new = Chain(signed.seal.number, "".join([*signed.before, signed.seal.hash]))
        known = self.chain(signed.party)
        if known is None:
            self._keep(signed, new, now)
            return None
        answer = signed.shown.get(me)
        answered = answer is not None and known.at(answer.number) != ""
        if answer is not None and answered and known.at(answer.number) != answer.hash:
            return _set_back(signed.party, answer.number, known, Chain(*answer))
        differing = known.difference(new)
        if differing:
            return _set_back(signed.party, differing, known, new)
        shown = known.meets(new) or answered
        if new.number > known.number:
            self._keep(signed, known.followed_by(new) if known.meets(new) else new, now)
        if shown:
            return None
        remembered = [known.number, known.at(known.number)]
        return Evidence(
            NOT_SHOWN, {"peer": signed.party, "before": remembered, "now": [*signed.seal.head]}
        )

    def _keep(self, signed: SignedHead, chain: Chain, now: float) -> None:
        hashes = bytes.fromhex(chain.hashes)
        self._file.execute(
            "INSERT OR REPLACE INTO chains VALUES (?, ?, ?, ?, ?)",
            (signed.party, chain.number, hashes, signed.seal.to_text(), now),
        )
        self._file.execute("DELETE FROM heads WHERE peer = ?", (signed.party,))


def _set_back(peer: str, number: int, known: Chain, new: Chain) -> Evidence:
    before, now = [number, known.at(number)], [number, new.at(number)]
    return Evidence(SET_BACK, {"peer": peer, "before": before, "now": now})
