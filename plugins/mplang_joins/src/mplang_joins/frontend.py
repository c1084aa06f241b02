"""``mp.join``: tables of several parties, joined on secret shares. Imports no Arrow and no JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, get_args

import mplang_core as mp
from mplang_core import MPObject
from mplang_core.ext import Device, TraceError, at
from mplang_joins.on_shares import on_shares, salts
from mplang_joins.ops import enter
from mplang_joins.rows import How, JoinedRows, Side
from mplang_joins.sides import JoinSides, On, OwnedTable


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
        raise TraceError(
            f"{at()}join: how is one of {', '.join(get_args(How))}, got {how!r}", code="T018"
        )
    sides, keys, kinds, bounds, spu = JoinSides.of("join", tables, on, rows, to)
    shared = _shared(sides, keys, how)
    attrs = {"kinds": kinds, "sides": len(sides)}
    entered: list[Any] = []
    drawn = salts([each.device for each in sides])
    for i, bound in enumerate(bounds):
        fields = {"on": tuple(keys[i]), "columns": tuple(shared[i]), "side": i, "rows": bound}
        made = mp.device(sides[i].device)(enter)(drawn[i], sides[i].table, **attrs, **fields)
        tokens, there, *values = made
        leads = i == 0 and how in ("left", "anti")
        side = Side(tokens, there if leads else None, dict(zip(shared[i], values, strict=True)))
        entered.append(mp.seal(side, to=spu.name))
    return _aligned(spu, entered, how, [each.party for each in sides[1:]])


def _shared(
    sides: Sequence[OwnedTable], keys: Sequence[Sequence[str]], how: How
) -> list[list[str]]:
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
                    f"rename one at its party, on device {side.device}",
                    code="T018",
                )
            owner[name] = side.party
    return shared


def _aligned(spu: Device, sides: Sequence[Side], how: How, others: Sequence[str]) -> JoinedRows:
    """Join what was shared, on the SPU."""
    from mplang_joins.aligned import align

    columns, valid, matched = on_shares(spu, partial(align, how=how), list(sides))
    return JoinedRows(columns, valid, dict(zip(others, matched, strict=False)))
