"""What a program that is traced knows of the parties' data sets. Imports no Arrow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from mplang_core.ext import ConfigError
from mplang_data.description import Description, read_descriptions

Catalogue: TypeAlias = Mapping[str, Mapping[str, Description]]
"""Descriptions by party and by name."""

_given: ContextVar[Catalogue | None] = ContextVar("mplang_catalogue", default=None)


def read_catalogue(data: Any) -> dict[str, dict[str, Description]]:
    """Return a catalogue of plain data: by party and by name.

    Raises:
        ConfigError: it is malformed.

    Example:
        >>> found = read_catalogue({"bank": {"accounts": {"columns": {"age": "int64"}}}})
        >>> print(found["bank"]["accounts"].type)
        table<["age", "int64"]>
    """
    if not isinstance(data, Mapping):
        raise ConfigError(f"a catalogue has data sets by party, got a {type(data).__name__}")
    try:
        return {str(party): read_descriptions(each) for party, each in data.items()}
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the catalogue is malformed: {error}") from None


@contextmanager
def catalogue(source: str | os.PathLike[str] | Mapping[str, Any]) -> Iterator[Catalogue]:
    """Trace programs by a catalogue inside of ``with``, in place of what the host knows.

    It is for who compiles without workers, and for reviews: a program stays the same as long as its
    catalogue does. The workers compare it with their own when they read.

    Args:
        source: a YAML file, as ``mplang data schema`` writes it, or its content.

    Yields:
        The descriptions by party and by name.

    Raises:
        ConfigError: it cannot be read, or is malformed.

    Example:
        >>> import mplang_core as mp
        >>> known = {"node0": {"people": {"columns": {"age": "int64"}}}}
        >>> with mp.catalogue(known):
        ...     ctx = mp.TraceContext(mp.ClusterSpec.simple(1))
        ...     traced = mp.trace(ctx, lambda: mp.dataset("node0", "people"))
        >>> [str(value.type) for value in traced.program.graph.outputs]
        ['table<["age", "int64"]>@{0}']
    """
    data: Any = source
    if isinstance(source, str | os.PathLike):
        try:
            data = yaml.safe_load(Path(source).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ConfigError(f"cannot read the catalogue {os.fspath(source)}: {error}") from error
    made = read_catalogue(data)
    token = _given.set(made)
    try:
        yield made
    finally:
        _given.reset(token)


def known_to(ctx: Any) -> Catalogue:
    """Return the catalogue of a context: that of ``with``, else that of its host."""
    given = _given.get()
    if given is not None:
        return given
    found: Catalogue = getattr(ctx.root(), "catalogue", {})
    return found
