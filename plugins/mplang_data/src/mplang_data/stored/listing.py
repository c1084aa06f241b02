"""Listing of a sink for its owner, read from the folder, also while its worker runs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mplang_analysis import DATA_SET, Label

from mplang_data.stored.entry import Entry, StoreError
from mplang_data.stored.sink import owner_of
from mplang_data.stored.versions import current_entry


def entries_in(folder: Path) -> Iterator[tuple[str, Entry]]:
    """Yield the coordinators and the current entries of a sink.

    Args:
        folder: its folder.
    """
    for owned in sorted(each for each in folder.glob("*") if each.is_dir()):
        for each in sorted(owned.glob("[A-Za-z]*")):
            with contextlib.suppress(StoreError):
                entry = current_entry(each)
                if entry is not None:
                    yield owner_of(owned), entry


def members_of(entry: Entry) -> list[str]:
    """Return the names of the parties that hold a stored value."""
    return [entry.parties[rank] for rank in entry.members]


def about(entry: Entry) -> dict[str, Any]:
    """Return what an owner is told of a stored value, as plain data.

    Args:
        entry: what is kept beside it.

    Returns:
        Its name, its type, whose data it is made of, when it was stored, and by which program.
    """
    data: dict[str, set[str]] = {}
    for label in map(Label.decode, entry.labels):
        for source in label.sources:
            party = entry.parties[source.party] if source.party < len(entry.parties) else "?"
            name, _, column = source.name.removeprefix(DATA_SET).partition(".")
            data.setdefault(f"{party}/{name}", set()).add(column)
    return {
        "name": entry.name,
        "type": ", ".join(entry.kinds),
        "data": {name: sorted(columns - {""}) for name, columns in sorted(data.items())},
        "stored": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(entry.time or 0)),
        "program": entry.program,
    }
