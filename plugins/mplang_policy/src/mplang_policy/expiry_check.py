"""Verification of what has expired of a log: each deletion is on record, and was due."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mplang_core.ext import DAY
from mplang_policy.expiry import DETAILS, header_of
from mplang_policy.ledger import ENTRIES, REDUCED, WHOLE, Entry


class _Gone(NamedTuple):
    entry: Entry
    header: bytes = b""


class ExpiryCheck:
    """Check of the deletions of a log, entry by entry.

    Attributes:
        rules: by the rule that has deleted them the number of bodies and details.
    """

    def __init__(self) -> None:
        self.rules: dict[str, int] = {}
        self._first: int | None = None  # number of the first entry that is seen
        self._gone: dict[str, dict[int, _Gone]] = {ENTRIES: {}, DETAILS: {}}

    def is_reduced(self, entry: Entry) -> bool:
        """Return whether an entry has no body any more; an expiry must tell of it later."""
        self._first = entry.number if self._first is None else self._first
        if entry.text != REDUCED or entry.kind in WHOLE:
            return False
        slim = entry._replace(previous="", hash="")
        self._gone[ENTRIES][entry.number] = _Gone(slim, header_of(entry))
        return True

    def lose(self, entry: Entry) -> None:
        """Record that what an entry speaks of is not there; an expiry must tell of it later."""
        self._gone[DETAILS][entry.number] = _Gone(entry)

    def see(self, expiry: Entry) -> Iterator[str]:
        """Yield what is wrong with an expiry, and with what it has deleted.

        Args:
            expiry: an entry of the kind ``expired``, as it was written.
        """
        body = expiry.body
        what = body.get("what")
        if what not in self._gone:
            return  # of other things than the log
        try:
            first, before, days = (int(body[name]) for name in ("first", "before", "days"))
        except (LookupError, TypeError, ValueError):
            yield f"entry {expiry.number} (expired) does not say what it has deleted"
            return
        self._count(body)
        gone = self._gone[str(what)]
        begin = first if what == ENTRIES else 1
        numbers = [n for n in gone if begin <= n < min(before, expiry.number)]
        digest = hashlib.sha256(b"".join(gone[n].header for n in numbers)).hexdigest()
        is_whole = self._first is not None and self._first <= first  # none was moved away
        if what == ENTRIES and is_whole and digest != body.get("sha256"):
            yield f"of the entries that entry {expiry.number} has reduced, some were changed"
        for number in numbers:
            each = gone.pop(number).entry
            if expiry.time - days * DAY < each.time <= expiry.time:
                yield f"{_named(each)} was deleted before its {days} days were over"

    def _count(self, body: Mapping[str, object]) -> None:
        rule, count = str(body.get("rule")), body.get("count")
        self.rules[rule] = self.rules.get(rule, 0) + (count if type(count) is int else 0)

    def end(self) -> Iterator[str]:
        """Yield what was deleted, and no expiry records it."""
        for each in self._gone[ENTRIES].values():
            yield f"the body of {_named(each.entry)} was deleted, and no expiry records it"
        for each in self._gone[DETAILS].values():
            yield f"what {_named(each.entry)} speaks of is lost, or was changed"


def _named(entry: Entry) -> str:
    return f"entry {entry.number} ({entry.kind})"
