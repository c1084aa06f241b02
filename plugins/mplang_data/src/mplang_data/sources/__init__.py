"""Kinds of sources that data sets are read from; an extension point. Imports no Arrow.

A package adds one by an entry point of the group ``mplang.sources``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from mplang_core import BaseType
from mplang_core.ext import ConfigError, plugin_manager

GROUP = "mplang.sources"


class Source(Protocol):
    """Kind of source, such as Parquet files.

    It is opened by the owner's process, which decides who reads what, and read by one that runs
    programs, and has the open files only: no path, no password.
    """

    def place(self, where: str, folder: str) -> str:
        """Return a place that does not depend on the working directory.

        Args:
            where: what follows the kind in the catalogue, such as a path.
            folder: the folder of the file that names it.

        Raises:
            SourceError: it is no such place.
        """

    def probe(self, where: str, kind: BaseType, match: Sequence[str] = ()) -> int | None:
        """Compare a source with a type, without its rows if it can.

        Args:
            where: the place, as :meth:`place` returns it.
            kind: the type.
            match: columns that are there, too, of whatever type.

        Returns:
            The number of rows; ``None`` if it is not known without reading them.

        Raises:
            SourceError: the source is not there, of another type, or is damaged.
        """

    def open(self, where: str, kind: BaseType) -> list[int]:
        """Open a source.

        Args:
            where: the place, as :meth:`place` returns it.
            kind: the type that is read: a source may open that part only.

        Returns:
            Descriptors of open files; the caller closes them.

        Raises:
            SourceError: there is none.
        """

    def read(self, files: Sequence[int], kind: BaseType) -> Any:
        """Read a source.

        Args:
            files: descriptors of open files; the caller closes them.
            kind: the type to read, of a table or an array: columns that are not in it are not read.

        Returns:
            A value of that type: a ``pyarrow.Table``, a :class:`mplang_tables.scan.Scan` or an
            array.

        Raises:
            SourceError: the source is of another type, or is damaged.
        """


def source_of(kind: str) -> Source:
    """Return a kind of source by its name.

    Raises:
        ConfigError: there is none of that name.
        PluginLoadError: its package does not load.

    Example:
        >>> type(source_of("parquet")).__name__
        'ParquetFiles'
    """
    found = plugin_manager.entry(GROUP, kind)
    if found is None:
        known = ", ".join(plugin_manager.names(GROUP))
        raise ConfigError(f"no kind of source {kind[:80]!r} is installed; there are {known}")
    made: Source = found()
    return made
