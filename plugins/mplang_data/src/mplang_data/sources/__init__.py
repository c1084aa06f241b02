"""Kinds of sources that data sets are read from; an extension point. Imports no Arrow.

A package adds one by an entry point of the group ``mplang.sources``.
"""

from __future__ import annotations

import os

from mplang_core.ext import ConfigError, plugin_manager
from mplang_data.sources.source import Source

GROUP = "mplang.sources"
_KINDS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".npy": "npy",
}


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
        raise ConfigError(
            f"no kind of source {kind[:80]!r} is installed; there are {known}", code="C008"
        )
    made: Source = found()
    return made


def source_of_path(path: str) -> str:
    """Return the source of a file, by the ending of its name unless its kind stands before it.

    Raises:
        ConfigError: the kind is not known.

    Example:
        >>> source_of_path("people.csv"), source_of_path("csv:people.dat")
        ('csv:people.csv', 'csv:people.dat')
    """
    kind, _, where = path.partition(":")
    if where and kind in plugin_manager.names(GROUP):
        return path
    kind = _KINDS.get(os.path.splitext(path)[1].lower(), "")
    if not kind:
        raise ConfigError(
            f"the kind of the file {path} is not known; name it, as parquet:{path}", code="C008"
        )
    return f"{kind}:{path}"


def engine_of(kind: str) -> str | None:
    """Return the engine in which SQL over a kind of source runs; ``None`` for DuckDB.

    Example:
        >>> engine_of("parquet"), engine_of("postgresql")
        (None, 'postgresql')
    """
    return source_of(kind).engine


def engines() -> list[str]:
    """Return the engines of the kinds of sources that are installed, beside DuckDB."""
    return sorted({each for kind in plugin_manager.names(GROUP) if (each := engine_of(kind))})
