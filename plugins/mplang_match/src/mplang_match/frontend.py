"""``mp.match``: the rows that two parties' tables have in common. Imports no Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from mplang_core import ClusterSpec, Mask, MPObject, TableType
from mplang_core.ext import TraceError, at, context_of, device_of_party, the_holder
from mplang_match.published import published_rows

On: TypeAlias = str | Sequence[str | tuple[str, str]]


def match(
    a: MPObject,
    b: MPObject,
    on: On,
    *,
    learn: str = "both",
    rows: Mapping[str, int] | None = None,
    at_least: int = 0,
    keep: bool = False,
    number: str = "match",
    protocol: str = "RR22",
) -> Any:
    """Return the rows of two parties' tables whose keys are in both.

    Each row stays at its owner. A key that is null is in common with none. Text equals text by
    Unicode's NFC, integers and decimals by value, whatever their widths; ``1`` is not ``"1"``.

    Args:
        a: a table at one party.
        b: a table at another one.
        on: the column to match on, or several, all of which have to be equal; for those with
            different names pairs ``("id", "customer")``.
        learn: who gets to know which keys are in common: ``"both"``, or the name of one party.
        rows: by party how many different keys it has at most: nobody learns how many there are.
            By default the number of rows that its owner publishes of the data set, ``rows:``;
            without one, the other party learns how many different keys there are.
        at_least: how many keys have to be in common; if fewer are, nothing is told but that.
        keep: whether results have the columns that were matched on.
        number: name of the column with the numbers of the keys in common.
        protocol: the matcher: ``"RR22"``, ``"KKRT"``, ``"ECDH"`` or one that is installed.

    Returns:
        The rows of ``a`` and those of ``b`` that matched, each at its party; only those of the
        party that learns, if it is one. Both are in the order of the column ``number``, which has
        0, 1, 2, … for the keys in common, in an order that tells nothing. A party with several rows
        of a key has them one after the other.

    Raises:
        TraceError: the tables are not at one party each, a column is not there, or two have types
            of which no values are equal; shows the line.
        RunError: a party has more keys than it says, or fewer are in common than ``at_least``.

    Example:
        >>> import mplang_core as mp
        >>> data = {
        ...     "bank": {"customers": {"id": ["a", "b", "c"], "debt": [1, 2, 3]}},
        ...     "shop": {"orders": {"id": ["c", "x", "a", "a"], "spent": [10, 20, 30, 40]}},
        ... }
        >>> def program():
        ...     customers, orders = mp.dataset("bank", "customers"), mp.dataset("shop", "orders")
        ...     return mp.match(customers, orders, on="id", keep=True)
        >>> cluster = mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])
        >>> with mp.Simulator(cluster, data=data) as sim:
        ...     bank, shop = mp.fetch(sim, mp.evaluate(sim, program))
        >>> sorted((row["id"], row["debt"]) for row in bank.to_pylist())
        [('a', 1), ('c', 3)]
        >>> sorted((row["id"], row["spent"]) for row in shop.to_pylist())
        [('a', 30), ('a', 40), ('c', 10)]
    """
    ctx = context_of(a, b)
    for each in (a, b):
        if not isinstance(each.base_type, TableType):
            raise TraceError(f"{at()}match takes tables, got {each!r}")
    cluster = ctx.cluster_spec
    assert isinstance(cluster, ClusterSpec)
    ranks = the_holder(a), the_holder(b)
    attrs = {
        "on": _pairs(on),
        "learn": _learners(cluster, learn, ranks),
        "most": _most(cluster, rows or {}, ranks, (a, b)),
        "at_least": at_least,
        "keep": keep,
        "number": number,
        "protocol": protocol,
    }
    matched = ctx.emit("match.match", [a, b], attrs)
    outs = [ctx.place(each, _device(cluster, each)) for each in matched]
    return outs[0] if len(outs) == 1 else tuple(outs)


def _pairs(on: On) -> tuple[tuple[str, str], ...]:
    listed = [on] if isinstance(on, str) else on
    pairs = [_pair(each) for each in listed] if isinstance(listed, list | tuple) else []
    if not pairs or None in pairs:
        raise TraceError(
            f"{at()}match: on is a column, a list of them, or of pairs such as ('id', 'customer'), "
            f"got {on!r}"
        )
    return tuple(pair for pair in pairs if pair is not None)


def _pair(named: object) -> tuple[str, str] | None:
    """Return a pair of columns; ``None`` if it is none."""
    both = [named, named] if isinstance(named, str) else named
    if not isinstance(both, list | tuple) or len(both) != 2:
        return None
    a, b = both
    return (str(a), str(b)) if isinstance(a, str) and isinstance(b, str) else None


def _learners(cluster: ClusterSpec, learn: str, ranks: Sequence[int]) -> Mask:
    if learn == "both":
        return Mask.from_ranks(ranks)
    mask = device_of_party(cluster, learn).mask
    if mask.first not in ranks:
        names = " or ".join(repr(cluster.nodes[rank].name) for rank in ranks)
        raise TraceError(f"{at()}match: learn is 'both', {names}, got {learn!r}")
    return mask


def _most(
    cluster: ClusterSpec, rows: Mapping[str, int], ranks: Sequence[int], both: Sequence[MPObject]
) -> tuple[int | None, ...]:
    """Return how many keys each party has at most: as is asked for, or as its owner publishes."""
    if not isinstance(rows, Mapping):
        raise TraceError(f"{at()}match: rows is a number of keys by party, got {rows!r}")
    by_rank = {device_of_party(cluster, name).mask.first: size for name, size in rows.items()}
    if not by_rank.keys() <= set(ranks):
        raise TraceError(f"{at()}match: rows are of the two parties, got {dict(rows)}")
    return tuple(
        by_rank[rank] if rank in by_rank else published_rows(table, cluster.nodes[rank].name)
        for rank, table in zip(ranks, both, strict=True)
    )


def _device(cluster: ClusterSpec, value: MPObject) -> Any:
    rank = the_holder(value)
    return device_of_party(cluster, cluster.nodes[rank].name)
