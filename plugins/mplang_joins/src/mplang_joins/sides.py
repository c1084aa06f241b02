"""The tables of a join: who brings them, by which keys, of how many rows. Imports no Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from mplang_match.ext import key_columns, published_keys
from mplang_spu import SpuConfig

from mplang_core import ClusterSpec, MPObject, TableType
from mplang_core.ext import (
    Device,
    TraceError,
    at,
    context_of,
    device_kinds,
    device_of_party,
    the_holder,
)
from mplang_joins.keys import key_kinds
from mplang_joins.ops import MAX_ROWS, MAX_SIDES, Kinds

On: TypeAlias = str | Sequence[str | tuple[str, ...]]
"""The column to join on, or several; for those with different names tuples of one of each table."""


class OwnedTable(NamedTuple):
    """A table, the party that brings it, and the device of that."""

    table: MPObject
    party: str
    device: str

    @property
    def columns(self) -> Mapping[str, str]:
        """The types of its columns."""
        kind = self.table.base_type
        assert isinstance(kind, TableType)
        return dict(kind.columns)


class JoinSides(NamedTuple):
    """Tables that are joined on secret shares.

    Attributes:
        owned: the tables.
        keys: the columns of each table's key.
        kinds: by which each of them is compared.
        bounds: how many rows, or keys, each of them has at most.
        spu: the SPU.
    """

    owned: Sequence[OwnedTable]
    keys: Sequence[Sequence[str]]
    kinds: Kinds
    bounds: Sequence[int]
    spu: Device

    @classmethod
    def of(
        cls, what: str, tables: Sequence[Any], on: On, rows: Mapping[str, int] | None,
        to: str | None,
    ) -> JoinSides:  # fmt: skip
        """Return the sides of a join.

        Args:
            what: what joins them, as messages call it.
            tables: two tables or more, each at another party.
            on: the columns of the key.
            rows: by party how many rows its table has at most; by default what is published.
            to: the SPU; by default the only one of the cluster.

        Raises:
            TraceError: the tables are not at one party each, a column is not there, two have types
                of which no values are equal, or a bound is missing; shows the line.
        """
        owned = _owned(what, tables)
        keys = _keys(what, on, owned)
        kinds = _kinds(what, owned, keys)
        bounds = _bounds(what, {} if rows is None else rows, owned, keys)
        return cls(owned, keys, kinds, bounds, _spu(what, owned, to))

    def side_of(self, what: str, column: str) -> int:
        """Return the number of the side that has a column.

        Args:
            what: what asks for it, as messages call it.
            column: the column.

        Raises:
            TraceError: none has it, or several have; shows the line.
        """
        there = [i for i, each in enumerate(self.owned) if column in each.columns]
        if len(there) != 1:
            names = "; ".join(f"{each.party}: {', '.join(each.columns)}" for each in self.owned)
            several = "several tables have" if there else "no table has"
            raise TraceError(f"{at()}{what}: {several} a column {column!r}; {names}", code="T018")
        return there[0]


def _owned(what: str, tables: Sequence[Any]) -> list[OwnedTable]:
    for each in tables:
        if not isinstance(each, MPObject) or not isinstance(each.base_type, TableType):
            raise TraceError(
                f"{at()}{what} takes tables at their parties, got {each!r:.60}: name a data set of "
                "the party, or have it put the table on its device first",
                code="T018",
            )
    if not 2 <= len(tables) <= MAX_SIDES:
        raise TraceError(
            f"{at()}{what} takes 2 to {MAX_SIDES} tables, got {len(tables)}", code="T018"
        )
    cluster = context_of(*tables).cluster_spec
    assert isinstance(cluster, ClusterSpec)
    names = [cluster.nodes[the_holder(each)].name for each in tables]
    for name in names:
        if names.count(name) > 1:
            raise TraceError(
                f"{at()}{what}: two tables are those of {name}; join them first on its device, as "
                "any two tables",
                code="T018",
            )
    devices = [device_of_party(cluster, name).name for name in names]
    return [OwnedTable(*each) for each in zip(tables, names, devices, strict=True)]


def _spu(what: str, sides: Sequence[OwnedTable], to: str | None) -> Device:
    cluster = sides[0].table.ctx.cluster_spec
    assert isinstance(cluster, ClusterSpec)
    known = [name for name, spec in cluster.devices.items() if spec.kind in device_kinds]
    spus = [each for each in map(cluster.device, known) if isinstance(each.config, SpuConfig)]
    named = spus if to is None else [each for each in spus if each.name == to]
    if len(named) == 1:
        return named[0]
    if not spus:
        raise TraceError(f"{at()}{what}: the cluster has no SPU to join on", code="T018")
    names = " or ".join(each.name for each in spus)
    raise TraceError(
        f"{at()}{what}: to names the SPU that it joins on, {names}, got {to!r}", code="T018"
    )


def _keys(what: str, on: On, sides: Sequence[OwnedTable]) -> list[list[str]]:
    """Return the columns of each table's key."""
    parts = key_columns(on, len(sides))
    if not parts:
        raise TraceError(
            f"{at()}{what}: on is a column, a list of them, or of tuples with one of each of the "
            f"{len(sides)} tables, as [('id', 'customer')], got {on!r}",
            code="T018",
        )
    keys = [list(each) for each in zip(*parts, strict=True)]
    for side, columns in zip(sides, keys, strict=True):
        for column in columns:
            if column not in side.columns:
                raise TraceError(
                    f"{at()}{what}: the table of {side.party} has no column {column!r}, but "
                    f"{', '.join(side.columns)}",
                    code="T018",
                )
    return keys


def _kinds(what: str, sides: Sequence[OwnedTable], keys: Sequence[Sequence[str]]) -> Kinds:
    """Return by which kind each column of the key is compared."""
    kinds: list[tuple[str, int]] = []
    for columns in zip(*keys, strict=True):
        types = [side.columns[column] for side, column in zip(sides, columns, strict=True)]
        try:
            kinds += key_kinds([[each] for each in types])
        except TypeError as error:
            named = ", ".join(f"{name!r}" for name in columns)
            raise TraceError(f"{at()}{what}: columns {named}: {error}", code="T018") from None
    return tuple(kinds)


def _bounds(
    what: str, rows: Mapping[str, int], sides: Sequence[OwnedTable], keys: Sequence[Sequence[str]]
) -> list[int]:
    """Return how many rows each table has at most."""
    names = [side.party for side in sides]
    if not isinstance(rows, Mapping) or not rows.keys() <= set(names):
        raise TraceError(
            f"{at()}{what}: rows is a number of rows by party, rows={{{names[0]!r}: 1200}}, got "
            f"{rows!r}",
            code="T018",
        )
    bounds = []
    for side, columns in zip(sides, keys, strict=True):
        bound = rows.get(side.party, published_keys(side.table, side.party, columns))
        if bound is None:
            raise TraceError(
                f"{at()}{what}: how many rows the table of {side.party} has at most is not known: "
                f"say rows={{{side.party!r}: 1200}}, or let its owner publish keys: or rows: of "
                "the data set",
                code="T018",
            )
        if type(bound) is not int or not 1 <= bound <= MAX_ROWS:
            raise TraceError(
                f"{at()}{what}: rows of {side.party} is a number from 1 to {MAX_ROWS:,}, got "
                f"{bound!r}",
                code="T018",
            )
        bounds.append(bound)
    return bounds
