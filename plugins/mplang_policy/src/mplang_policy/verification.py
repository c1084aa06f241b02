"""Verification of a log: entries that were changed, removed, moved or added."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from mplang_core.ext import ConfigError
from mplang_policy.expiry_check import ExpiryCheck
from mplang_policy.ledger import BEGINNING, EXPIRED, REDUCED, ROTATION, Entry, Head, hash_of

MAX_WRONG = 20  # mistakes that are told


def mistakes(
    entries: Iterable[Entry],
    detail: Callable[[str], Any] | None = None,
    heads: Sequence[tuple[str, Head]] = (),
    expiries: ExpiryCheck | None = None,
) -> Iterator[str]:
    """Yield what is wrong with a log.

    Args:
        entries: its entries, in order.
        detail: returns what entries speak of by its SHA-256, or ``None``.
        heads: entries of it that others remember, and who does.
        expiries: counts what has expired.

    Example:
        >>> entry = Entry(1, 0.0, "put", "{}", BEGINNING, "")
        >>> list(mistakes([entry]))
        ['entry 1 (put) was changed']
    """
    last, first = Head(0, BEGINNING), None
    expiries = ExpiryCheck() if expiries is None else expiries
    rotations: set[tuple[Any, Any]] = set()
    remembered: dict[int, list[tuple[str, str]]] = {}
    for who, head in heads:
        remembered.setdefault(head.number, []).append((who, head.hash))
    for entry in entries:
        if first is None:
            first = entry
            last = Head(entry.number - 1, entry.previous)  # what was before is asked for below
        if entry.kind == ROTATION:
            rotations.add((entry.body.get("first"), entry.body.get("previous")))
        wrong = list(_links(entry, last))
        if not expiries.is_reduced(entry) and hash_of(*entry[:5]) != entry.hash:
            wrong.append(f"entry {entry.number} ({entry.kind}) was changed")
        yield from wrong
        if entry.kind == EXPIRED and not wrong:
            yield from expiries.see(entry)
        if detail is not None and not wrong:
            rows = entry.body.get("rows")
            if rows is not None and detail(rows) is None:
                expiries.lose(entry)
        for who, digest in remembered.pop(entry.number, ()):
            if digest != entry.hash:
                yield f"{who} remembers another entry {entry.number}: the log was made anew"
        last = Head(entry.number, entry.hash)
    yield from expiries.end()
    begins = (1, BEGINNING) if first is None else (first.number, first.previous)
    if begins != (1, BEGINNING) and begins not in rotations:
        yield f"the entries before {begins[0]} were removed, and no rotation records it"
    for number, each in sorted(remembered.items()):
        for who, _ in each:
            if number > last.number:
                yield f"{who} remembers entry {number}; the log was cut off after {last.number}"
            elif number >= begins[0]:
                yield f"{who} remembers entry {number}, which is missing"


def _links(entry: Entry, last: Head) -> Iterator[str]:
    if entry.number != last.number + 1:
        yield f"after entry {last.number} comes {entry.number}: some were removed, or moved"
    elif entry.previous != last.hash:
        yield f"entry {entry.number} ({entry.kind}) does not follow the entry before"


def read_head(text: str) -> Head:
    """Return a head from ``NUMBER:HASH``.

    Raises:
        ConfigError: it is none.
    """
    number, _, digest = text.partition(":")
    if not number.isdecimal() or len(digest) != len(BEGINNING):
        raise ConfigError(
            f"expected NUMBER:HASH as mplang audit heads prints it, got {text!r}", code="C006"
        )
    return Head(int(number), digest)


def to_line(entry: Entry, detail: Any = None) -> str:
    """Return an entry as a line of JSON."""
    fields = entry._asdict() | {"time": time_of(entry), "body": entry.body}
    del fields["text"]
    if entry.text == REDUCED:
        fields["expired"] = True
    return json.dumps(fields if detail is None else {**fields, "detail": detail}, sort_keys=True)


def time_of(entry: Entry) -> str:
    """Return when an entry was made, in UTC."""
    try:
        when = datetime.datetime.fromtimestamp(entry.time, datetime.UTC)
    except (OverflowError, ValueError, OSError):  # somebody has changed it
        return str(entry.time)
    return when.isoformat(timespec="milliseconds")
