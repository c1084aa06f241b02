"""Witness of logs: what a gate tells others of its log, and notes of theirs."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Mapping
from functools import partial

from mplang_policy.alarms import PEER, Alarm, add_alarm
from mplang_policy.ledger import Ledger, Writing
from mplang_policy.peer_logs import SET_BACK, Evidence, PeerLogs
from mplang_policy.signed_heads import GateKey, HeadError, Seal, SignedHead, verifies

BEFORE = 256  # hashes of entries that go with a head
UNSIGNED = "the log was set back, or {}, or its coordinator, lies: no signature proves it"
log = logging.getLogger("mplang.policy")


class Witness:
    """Witness of logs: reports its party's, and remembers others'. As thread-safe as its ledger.

    Args:
        party: name of the party.
        ledger: its ledger.
        key: signing key of its gate.
    """

    def __init__(self, party: str, ledger: Ledger, key: GateKey) -> None:
        self._party, self._ledger, self._key = party, ledger, key
        self._recent: list[str] = []  # hashes of the last entries
        self._last = 0  # number of the last one

    def seen(self, peers: Iterable[str]) -> dict[str, str]:
        """Return by its name what is remembered of each peer's log, as the peer has sealed it."""
        seals = self._ledger.reading(lambda file: PeerLogs(file).seals())
        return {peer: seals[peer].to_text() for peer in peers if peer in seals}

    def missing(self, seen: Mapping[str, str]) -> tuple[str, str] | None:
        """Return who remembers an entry that the log has not, and what that means; else ``None``.

        Args:
            seen: by a name what a peer or a coordinator remembers; untrusted.
        """
        for who, told in seen.items():
            try:
                seal = Seal.read(told)
            except HeadError:
                text = f"{who} reports an impossible head of this party's log"
                return who, f"{text}: {who}, or its coordinator, lies"
            if not self._ledger.has(seal.head):
                signed = verifies(self._key.public, seal)
                means = "the log was set back" if signed else UNSIGNED.format(who)
                return who, (
                    f"{who} remembers entry {seal.number} of this party's log, "
                    f"{seal.hash[:12]}…, which is not there: {means}"
                )
        return None

    def has_sealed(self, seal: str) -> bool:
        """Return whether this party's gate has sealed what somebody remembers; untrusted."""
        try:
            return verifies(self._key.public, Seal.read(seal))
        except HeadError:
            return False

    def head(self, run: str, seen: Mapping[str, str], writing: Writing) -> SignedHead:
        """Return the last entry of the log, signed, inside of the transaction that has added it.

        Args:
            run: name of a run that its parties know.
            seen: by the name of a peer what it remembers; untrusted.
            writing: the transaction.
        """
        before = self._before(writing)
        numbers = {peer: Seal.read(text).number for peer, text in seen.items()}
        shown = {peer: self._ledger.head_at(number) for peer, number in numbers.items()}
        shown = {peer: head for peer, head in shown.items() if head.number}
        return self._key.sign(self._party, run, writing.head, before, shown)

    def _before(self, writing: Writing) -> list[str]:
        """Return the hashes of the entries before the last one; those known are not read again."""
        number, _ = writing.head
        if self._last and self._ledger.head_at(self._last).hash == self._recent[-1]:
            self._recent += writing.hashes(self._last + 1)
        else:
            self._recent = writing.hashes(number - BEFORE)
        self._recent = self._recent[-BEFORE - 1 :]
        self._last = number
        return self._recent[:-1]

    def note(
        self, writing: Writing, run: str, heads: Mapping[str, tuple[bytes, str]]
    ) -> dict[str, list[int | str]]:
        """Record the heads of peers in the transaction that has the end of a run on record.

        Args:
            writing: the transaction.
            run: name of the run that its parties know.
            heads: by the name of a peer its signed head, untrusted, and the public key of its gate.

        Returns:
            By the name of a peer the last entry of its log; those that are not evidence are left
            out.
        """
        noted: dict[str, list[int | str]] = {}
        for peer, (data, key) in heads.items():
            try:
                signed = SignedHead.read(data, key)
                if (signed.party, signed.run) != (peer, run):
                    raise HeadError("it is of another party or run")
            except HeadError as error:
                log.warning("the head of %s's log after %s is ignored: %s", peer, run, error)
                continue
            me, now = self._party, writing.now
            finding = writing.changed(partial(_note, signed, me, now))
            noted[peer] = [*signed.seal.head]
            if finding is not None:
                writing.add(finding.kind, {**finding.body, "run": run})
                if finding.kind == SET_BACK:
                    writing.changed(partial(_alarm, Alarm(PEER, peer, run)))
                    log.error("the log of %s was set back; ask its owner why", peer)
        return noted


def _alarm(alarm: Alarm, file: sqlite3.Connection) -> None:
    add_alarm(file, alarm)


def _note(signed: SignedHead, me: str, now: float, file: sqlite3.Connection) -> Evidence | None:
    return PeerLogs(file).note(signed, me, now)
