"""Tables of the owner's databases, which take the rows of what is stored."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from mplang_core import TableType
from mplang_data.apart import run_apart
from mplang_data.description import SourceError
from mplang_data.stored.disk import telling
from mplang_data.stored.entry import StoreError
from mplang_data.stored.versions import current_of, read_entry

COPIED = "copied"  # a file of a version, once the database has its rows


class Tables:
    """Tables that take the rows of the current versions of stored tables. Safe for threads.

    Args:
        places: URL of a database and table, by coordinator and name; see
            :class:`mplang_data.stored.SinkConfig`.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(places)
        self._locks = {key: threading.Lock() for key in places}

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Yield coordinator and name of what has a table."""
        for key in self._places:
            owner, _, name = key.rpartition("/")
            yield owner, name

    def copy(self, owner: str, name: str, folder: Path) -> None:
        """Have the database take the rows of the current version, unless it has them.

        Args:
            owner: the coordinator whose value it is.
            name: its name.
            folder: the folder of its versions.

        Raises:
            StoreError: it does not; its cause is for the owner.
        """
        key = f"{owner}/{name}"
        if key not in self._places:
            return
        with self._locks[key], telling("copied"):
            current = current_of(folder)
            if current is not None and not (folder / current / COPIED).exists():
                self._write(self._places[key], name, folder / current)
                (folder / current / COPIED).touch()

    def _write(self, place: str, name: str, folder: Path) -> None:
        entry = read_entry(folder)
        if len(entry.types) != 1 or not isinstance(entry.types[0], TableType):
            raise StoreError(
                f"it is stored; the owner's database takes a table, and not {entry.kinds[0]}"
            )
        url, _, table = place.partition("#")
        file = os.open(folder / entry.files()[0], os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            run_apart("writer", {"url": url, "table": table}, file)
        except SourceError as error:
            raise StoreError(
                f"it is stored; its table in the owner's database is not written: {error}"
            ) from error.__cause__
        finally:
            os.close(file)
