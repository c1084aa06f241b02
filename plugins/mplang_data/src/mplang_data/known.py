"""Catalogues of the parties' data sets, as known while tracing. Imports no Arrow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import yaml

from mplang_core import ClusterSpec, Program
from mplang_core.ext import ConfigError, at, given_catalogue, printable, similar
from mplang_data.description import Description, read_descriptions
from mplang_data.engine_check import check_engines

T = TypeVar("T")


class UnknownNameError(ConfigError, KeyError, code="T014"):
    """Name that is not in a catalogue; the message has those that are."""

    def __str__(self) -> str:
        return str(self.args[0])


class ByName(dict[str, T]):
    """Dict whose error for another name has the user's line, and the names that there are.

    Args:
        what: what the names are of, for messages.
        there: what is there by name.
    """

    def __init__(self, what: str, there: Mapping[str, T]) -> None:
        super().__init__(there)
        self._what = what

    def __missing__(self, name: str) -> T:
        known = f"there are {', '.join(map(printable, self)) or 'none'}"
        advice = " ".join(filter(None, (similar(str(name), self), known)))
        raise UnknownNameError(f"{at()}no {self._what} {name!r}; {advice}")


class Catalogue(Mapping[str, Mapping[str, Description]]):
    """Descriptions by party and by name; hashable, as programs are cached by it.

    Args:
        parties: descriptions by party and by name.
        stored: what programs of this coordinator have left at the parties, by party and by name:
            how the values are nested, and their types.

    Attributes:
        stored: the same.
    """

    def __init__(
        self,
        parties: Mapping[str, Mapping[str, Description]],
        stored: Mapping[str, Mapping[str, tuple[str, tuple[str, ...]]]] | None = None,
    ) -> None:
        self._parties = ByName(
            "party", {p: ByName(f"data set of {p}", parties[p]) for p in parties}
        )
        self.stored = {party: dict(each) for party, each in (stored or {}).items()}
        self._hash = hash(repr((self._parties, self.stored)))

    def storing(self, stored: Mapping[str, Mapping[str, tuple[str, tuple[str, ...]]]]) -> Catalogue:
        """Return it with what is stored now."""
        return Catalogue(self._parties, stored)

    def check_program(self, program: Program, cluster: ClusterSpec) -> None:
        """Check that a program, once it is traced, runs on the engines of its data sets.

        Raises:
            TraceError: SQL would give another answer there than on DuckDB.
        """
        if any(each.engine for sets in self._parties.values() for each in sets.values()):
            check_engines(program, [node.name for node in cluster.nodes], self._parties)

    def __getitem__(self, party: str) -> Mapping[str, Description]:
        return self._parties[party]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parties)

    def __len__(self) -> int:
        return len(self._parties)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Catalogue) and self.stored != other.stored:
            return False
        return isinstance(other, Mapping) and self._parties == dict(other)

    def __repr__(self) -> str:
        return f"Catalogue({self._parties})"

    def __str__(self) -> str:
        lines = []
        for party, sets in self._parties.items():
            lines.append(party)
            lines += [f"  {name}: {described}" for name, described in sets.items()]
            if there := self.stored.get(party):
                lines.append(f"  stored: {', '.join(there)}")
        return "\n".join(map(printable, lines)) or "no data set may be read"


def read_catalogue(data: Any) -> Catalogue:
    """Return a catalogue of plain data: by party and by name.

    Raises:
        ConfigError: it is malformed.

    Example:
        >>> found = read_catalogue({"bank": {"accounts": {"columns": {"age": "int64"}}}})
        >>> print(found["bank"]["accounts"].type)
        table<["age", "int64"]>
    """
    if not isinstance(data, Mapping):
        raise ConfigError(
            f"a catalogue has data sets by party, got a {type(data).__name__}", code="C008"
        )
    try:
        return Catalogue({str(party): read_descriptions(each) for party, each in data.items()})
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the catalogue is malformed: {error}", code="C008") from None


@contextmanager
def catalogue(source: str | os.PathLike[str] | Mapping[str, Any]) -> Iterator[Catalogue]:
    """Trace programs by a catalogue inside of ``with``, in place of what the host knows.

    It is for who compiles without workers, and for reviews: a program stays the same as long as its
    catalogue does. The workers compare it with their own when they read. What is compiled inside
    is traced by it later, too.

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
            raise ConfigError(
                f"cannot read the catalogue {os.fspath(source)}: {error}", code="C008"
            ) from error
    made = read_catalogue(data)
    token = given_catalogue.set(made)
    try:
        yield made
    finally:
        given_catalogue.reset(token)
