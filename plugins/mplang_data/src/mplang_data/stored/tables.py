"""Tables of the owner's databases, which take the rows of what is stored."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from mplang_core import TableType
from mplang_data.apart import run_apart
from mplang_data.description import SourceError
from mplang_data.stored.disk import at, telling
from mplang_data.stored.entry import StoreError
from mplang_data.stored.versions import current_of, read_entry

COPIED = "copied"  # a file of a version, which says to where it was copied


class Tables:
    """Tables that take the rows of the current versions of stored tables. Safe for threads.

    Args:
        places: URL of a database and table, by coordinator and name; see
            :class:`mplang_data.stored.SinkConfig`.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        keys = (key.rpartition("/") for key in places)
        self._places = {
            (owner, name): place
            for (owner, _, name), place in zip(keys, places.values(), strict=True)
        }
        # a DuckDB file is open in one process at a time
        self._locks = {place.rpartition("#")[0]: threading.Lock() for place in places.values()}

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Yield coordinator and name of what has a table."""
        return iter(self._places)

    def copy(self, owner: str, name: str, folder: Path) -> None:
        """Copy the rows of the current version to the database, unless they are there.

        Args:
            owner: the coordinator whose value it is.
            name: its name.
            folder: the folder of its versions.

        Raises:
            StoreError: it does not; its cause is for the owner.
        """
        place = self._places.get((owner, name))
        if place is None:
            return
        url, _, table = place.rpartition("#")
        with self._locks[url], telling("copied"):
            current = current_of(folder)
            if current is None or _is_copied(at(folder, current), place):
                return
            _write(url, table, at(folder, current))
            with open(at(at(folder, current), COPIED), "w") as file:
                file.write(_digest(place))


def _digest(place: str) -> str:
    return hashlib.sha256(place.encode()).hexdigest()  # it may have a password


def _is_copied(folder: str, place: str) -> bool:
    with contextlib.suppress(FileNotFoundError), open(at(folder, COPIED)) as file:
        return file.read() == _digest(place)
    return False


def _write(url: str, table: str, folder: str) -> None:
    entry = read_entry(folder)
    if len(entry.types) != 1 or not isinstance(entry.types[0], TableType):
        raise StoreError(
            f"it is stored; the owner's database takes a table, and not {entry.kinds[0]}"
        )
    file = os.open(at(folder, entry.files()[0]), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        run_apart("mplang_data.apart.writer", {"url": url, "table": table, "writes": True}, [file])
    except SourceError as error:
        raise StoreError(
            f"it is stored; its table in the owner's database is not written: {error}"
        ) from error.__cause__
    finally:
        os.close(file)
