"""``mp.join``: tables of several parties, joined on secret shares. Imports no Arrow and no JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias, get_args

from mplang_match.ext import key_columns, published_keys
from mplang_spu import SpuConfig

import mplang_core as mp
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
from mplang_joins.on_shares import on_shares, salts
from mplang_joins.ops import MAX_ROWS, MAX_SIDES, Kinds, enter
from mplang_joins.rows import How, JoinedRows, Side

On: TypeAlias = str | Sequence[str | tuple[str, ...]]


def join(
    *tables: MPObject,
    on: On,
    how: How = "inner",
    rows: Mapping[str, int] | None = None,
    to: str | None = None,
) -> JoinedRows:
    """Join tables of several parties on secret shares: nobody learns a row, who matched, how many.

    Each party makes a number of each of its keys, by a hash that is another one in each run, and
    shares it with its columns. There they are sorted by a method whose messages do not depend on
    data, and equal ones, which then are neighbours, are found by comparisons. What the parties see
    are sizes: the bounds in ``rows``.

    A key that is null is equal to none. Text equals text by Unicode's NFC, integers and decimals by
    value, whatever their widths; ``1`` is not ``"1"``.

    Args:
        *tables: two or more, each at another party. Each has one row for each key at most: what is
            more is aggregated by the key first, at its party. Their columns beside the key are
            numbers without nulls, under names that differ.
        on: the column to join on, or several, all of which have to be equal; for those with
            different names tuples with one of each table, ``[("id", "customer")]``.
        how: ``"inner"`` gives the rows whose key is in all tables, ``"left"`` all rows of the first
            table, ``"semi"`` those of its rows whose key is in all others, ``"anti"`` those whose
            key is in none of them.
        rows: by party how many rows its table has at most, as ``{"bank": 1200}``. By default the
            number that its owner publishes of the data set, ``keys:`` of the column or ``rows:``.
        to: the SPU; by default the only one of the cluster.

    Returns:
        The joined rows, on the SPU. Its length is that of all bounds together.

    Raises:
        TraceError: the tables are not at one party each, a column is not there, two have types of
            which no values are equal, or a bound is missing; shows the line.
        PartyError: two rows of a table have one key, it has more rows than its bound, or a column
            has nulls (when the program runs).

    Example:
        >>> import mplang_core as mp
        >>> data = {
        ...     "bank": {"prices": {"id": ["a", "b", "c"], "price": [5, 7, 11]}},
        ...     "shop": {"sales": {"id": ["c", "x", "a"], "sold": [10, 20, 30]}},
        ... }
        >>> def program():
        ...     prices, sales = mp.dataset("bank", "prices"), mp.dataset("shop", "sales")
        ...     both = mp.join(prices, sales, on="id", rows={"bank": 4, "shop": 4})
        ...     earned = lambda c: (c["price"] * c["sold"]).sum()
        ...     return mp.reveal(mp.device("SP0")(earned)(both.columns), to="P0")
        >>> cluster = mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])
        >>> with mp.Simulator(cluster, data=data) as sim:
        ...     int(mp.fetch(sim, mp.evaluate(sim, program)))
        260
    """
    if how not in get_args(How):
        raise TraceError(f"{at()}join: how is one of {', '.join(get_args(How))}, got {how!r}")
    sides = _sides(tables)
    keys = _keys(on, sides)
    shared = _shared(sides, keys, how)
    spu = _spu(sides, to)
    attrs = {"kinds": _kinds(sides, keys), "sides": len(sides)}
    entered: list[Any] = []
    drawn = salts([each.device for each in sides])
    for i, bound in enumerate(_bounds({} if rows is None else rows, sides, keys)):
        fields = {"on": tuple(keys[i]), "columns": tuple(shared[i]), "side": i, "rows": bound}
        made = mp.device(sides[i].device)(enter)(drawn[i], sides[i].table, **attrs, **fields)
        tokens, there, *values = made
        leads = i == 0 and how in ("left", "anti")
        side = Side(tokens, there if leads else None, dict(zip(shared[i], values, strict=True)))
        entered.append(mp.seal(side, to=spu.name))
    return _aligned(spu, entered, how, [each.party for each in sides[1:]])


class _Owned(NamedTuple):
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


def _sides(tables: Sequence[Any]) -> list[_Owned]:
    for each in tables:
        if not isinstance(each, MPObject) or not isinstance(each.base_type, TableType):
            raise TraceError(
                f"{at()}join takes tables at their parties, got {each!r:.60}: name a data set of "
                "the party, or have it put the table on its device first"
            )
    if not 2 <= len(tables) <= MAX_SIDES:
        raise TraceError(f"{at()}join takes 2 to {MAX_SIDES} tables, got {len(tables)}")
    cluster = context_of(*tables).cluster_spec
    assert isinstance(cluster, ClusterSpec)
    names = [cluster.nodes[the_holder(each)].name for each in tables]
    for name in names:
        if names.count(name) > 1:
            raise TraceError(
                f"{at()}join: two tables are those of {name}; join these first, on a device of its "
                "own, as any two tables"
            )
    devices = [device_of_party(cluster, name).name for name in names]
    return [_Owned(*each) for each in zip(tables, names, devices, strict=True)]


def _spu(sides: Sequence[_Owned], to: str | None) -> Device:
    cluster = sides[0].table.ctx.cluster_spec
    assert isinstance(cluster, ClusterSpec)
    known = [name for name, spec in cluster.devices.items() if spec.kind in device_kinds]
    spus = [each for each in map(cluster.device, known) if isinstance(each.config, SpuConfig)]
    named = spus if to is None else [each for each in spus if each.name == to]
    if len(named) == 1:
        return named[0]
    if not spus:
        raise TraceError(f"{at()}join: the cluster has no SPU to join on")
    names = " or ".join(each.name for each in spus)
    raise TraceError(f"{at()}join: to names the SPU that it joins on, {names}, got {to!r}")


def _keys(on: On, sides: Sequence[_Owned]) -> list[list[str]]:
    """Return the columns of each table's key."""
    parts = key_columns(on, len(sides))
    if not parts:
        raise TraceError(
            f"{at()}join: on is a column, a list of them, or of tuples with one of each of the "
            f"{len(sides)} tables, as [('id', 'customer')], got {on!r}"
        )
    keys = [list(each) for each in zip(*parts, strict=True)]
    for side, columns in zip(sides, keys, strict=True):
        for column in columns:
            if column not in side.columns:
                raise TraceError(
                    f"{at()}join: the table of {side.party} has no column {column!r}, but "
                    f"{', '.join(side.columns)}"
                )
    return keys


def _kinds(sides: Sequence[_Owned], keys: Sequence[Sequence[str]]) -> Kinds:
    """Return by which kind each column of the key is compared."""
    kinds: list[tuple[str, int]] = []
    for columns in zip(*keys, strict=True):
        types = [side.columns[column] for side, column in zip(sides, columns, strict=True)]
        try:
            kinds += key_kinds([[each] for each in types])
        except TypeError as error:
            named = ", ".join(f"{name!r}" for name in columns)
            raise TraceError(f"{at()}join: columns {named}: {error}") from None
    return tuple(kinds)


def _shared(sides: Sequence[_Owned], keys: Sequence[Sequence[str]], how: How) -> list[list[str]]:
    """Return the columns of each table beside its key that the result has."""
    first = [True, *[how in ("inner", "left")] * (len(sides) - 1)]
    shared: list[list[str]] = []
    owner: dict[str, str] = {}
    for side, names, wanted in zip(sides, keys, first, strict=True):
        shared.append([each for each in side.columns if each not in names] if wanted else [])
        for name in shared[-1]:
            if name in owner:
                raise TraceError(
                    f"{at()}join: {owner[name]} and {side.party} both have a column {name!r}; "
                    f"rename one at its party, on device {side.device}"
                )
            owner[name] = side.party
    return shared


def _bounds(
    rows: Mapping[str, int], sides: Sequence[_Owned], keys: Sequence[Sequence[str]]
) -> list[int]:
    """Return how many rows each table has at most."""
    names = [side.party for side in sides]
    if not isinstance(rows, Mapping) or not rows.keys() <= set(names):
        raise TraceError(
            f"{at()}join: rows is a number of rows by party, rows={{{names[0]!r}: 1200}}, got "
            f"{rows!r}"
        )
    bounds = []
    for side, columns in zip(sides, keys, strict=True):
        bound = rows.get(side.party, published_keys(side.table, side.party, columns))
        if bound is None:
            raise TraceError(
                f"{at()}join: how many rows the table of {side.party} has at most is not known: "
                f"say rows={{{side.party!r}: 1200}}, or let its owner publish keys: or rows: of "
                "the data set"
            )
        if type(bound) is not int or not 1 <= bound <= MAX_ROWS:
            raise TraceError(
                f"{at()}join: rows of {side.party} is a number from 1 to {MAX_ROWS:,}, got "
                f"{bound!r}"
            )
        bounds.append(bound)
    return bounds


def _aligned(spu: Device, sides: Sequence[Side], how: How, others: Sequence[str]) -> JoinedRows:
    """Join what was shared, on the SPU."""
    from mplang_joins.aligned import align

    columns, valid, matched = on_shares(spu, partial(align, how=how), list(sides))
    return JoinedRows(columns, valid, dict(zip(others, matched, strict=False)))
