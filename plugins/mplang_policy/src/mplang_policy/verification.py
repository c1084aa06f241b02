"""Verification of a log: entries that were changed, removed, moved or added."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mplang_core.ext import ConfigError
from mplang_policy.ledger import BEGINNING, Entry, Head, hash_of

MAX_WRONG = 20  # mistakes that are told


def mistakes(
    entries: Iterable[Entry],
    detail: Callable[[str], Any] | None = None,
    heads: Mapping[str, Head] = {},
) -> Iterator[str]:
    """Yield what is wrong with a log.

    Args:
        entries: its entries, in order.
        detail: returns what entries speak of by its SHA-256, or ``None``.
        heads: entries of it that others remember, by who does.

    Example:
        >>> entry = Entry(1, 0.0, "put", "{}", BEGINNING, "")
        >>> list(mistakes([entry]))
        ['entry 1 (put) was changed']
    """
    last, first, archived = Head(0, BEGINNING), 0, None
    remembered: dict[int, list[tuple[str, str]]] = {}
    for who, head in heads.items():
        remembered.setdefault(head.number, []).append((who, head.hash))
    for entry in entries:
        if not first:
            first, archived = entry.number, Head(entry.number - 1, entry.previous)
            last = archived
        yield from _links(entry, last)
        if detail is not None and "rows" in entry.body and detail(entry.body["rows"]) is None:
            yield f"what entry {entry.number} ({entry.kind}) speaks of is lost, or was changed"
        for who, digest in remembered.pop(entry.number, ()):
            if digest != entry.hash:
                yield f"{who} remembers another entry {entry.number}: the log was made anew"
        if entry.kind == "archived" and entry.body.get("head") == list(archived or ()):
            archived = Head(0, BEGINNING)
        last = Head(entry.number, entry.hash)
    if archived is not None and archived.number:
        yield f"entries 1 to {archived.number} are missing, and nothing says that they are archived"
    elif archived is not None and archived.hash != BEGINNING:
        yield "the first entry does not begin the log"
    for number, each in sorted(remembered.items()):
        for who, _ in each:
            if number >= max(first, 1):
                yield f"{who} remembers entry {number}; the log was cut off after {last.number}"


def _links(entry: Entry, last: Head) -> Iterator[str]:
    if entry.number != last.number + 1:
        yield f"after entry {last.number} comes {entry.number}: some were removed, or moved"
    elif entry.previous != last.hash:
        yield f"entry {entry.number} ({entry.kind}) does not follow the entry before"
    if hash_of(*entry[:5]) != entry.hash:
        yield f"entry {entry.number} ({entry.kind}) was changed"


def read_head(text: str) -> Head:
    """Return a head from ``NUMBER:HASH``.

    Raises:
        ConfigError: it is none.
    """
    number, _, digest = text.partition(":")
    if not number.isdecimal() or len(digest) != len(BEGINNING):
        raise ConfigError(f"expected NUMBER:HASH as mplang audit heads prints it, got {text!r}")
    return Head(int(number), digest)


def to_line(entry: Entry, detail: Any = None) -> str:
    """Return an entry as a line of JSON."""
    fields = entry._asdict() | {"time": time_of(entry), "body": entry.body}
    del fields["text"]
    return json.dumps(fields if detail is None else {**fields, "detail": detail}, sort_keys=True)


def time_of(entry: Entry) -> str:
    """Return when an entry was made, in UTC."""
    return datetime.datetime.fromtimestamp(entry.time, datetime.UTC).isoformat(timespec="seconds")
