"""``mp.match``: the rows that two parties' tables have in common. Imports no Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from mplang_core import ClusterSpec, Mask, MPObject, TableType
from mplang_core.ext import TraceError, at, context_of, device_of_party, the_holder
from mplang_match.key_columns import key_columns
from mplang_match.ops import MAX_KEYS, is_size
from mplang_match.published import published_keys

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
        rows: by party how many different keys it has at most, as ``{"bank": 50_000}``: nobody
            learns how many there are. By default the number that its owner publishes of the data
            set, ``keys:`` of the column or ``rows:``; without one, the other party learns how many
            different keys there are.
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
    for each in (a, b):
        if not isinstance(each, MPObject):
            raise TraceError(
                f"{at()}match takes tables at their parties, got a {type(each).__name__}: name a "
                "data set of the party, or have it put the table on its device first",
                code="T018",
            )
        if not isinstance(each.base_type, TableType):
            raise TraceError(f"{at()}match takes tables, got {each!r}", code="T018")
    ctx = context_of(a, b)
    cluster = ctx.cluster_spec
    assert isinstance(cluster, ClusterSpec)
    ranks = the_holder(a), the_holder(b)
    names = [cluster.nodes[rank].name for rank in ranks]
    if names[0] == names[1]:
        raise TraceError(
            f"{at()}match: both tables are those of {names[0]}; there, on device "
            f"{_device(cluster, a).name}, they are joined as any two tables",
            code="T018",
        )
    pairs = _pairs(on)
    _check_columns(pairs, (a, b), names)
    _check_size("at_least", at_least, 0)
    attrs = {
        "on": pairs,
        "learn": _learners(learn, ranks, names),
        "most": _most({} if rows is None else rows, names, (a, b), pairs),
        "at_least": at_least,
        "keep": keep,
        "number": number,
        "protocol": protocol,
    }
    matched = ctx.emit("match.match", [a, b], attrs)
    outs = [ctx.place(each, _device(cluster, each)) for each in matched]
    return outs[0] if len(outs) == 1 else tuple(outs)


def _pairs(on: On) -> tuple[tuple[str, str], ...]:
    pairs = key_columns(on, 2)
    if not pairs:
        raise TraceError(
            f"{at()}match: on is a column, a list of them, or of pairs such as ('id', 'customer'), "
            f"got {on!r}",
            code="T018",
        )
    return tuple((a, b) for a, b in pairs)


def _check_columns(
    pairs: Sequence[tuple[str, str]], both: Sequence[MPObject], names: Sequence[str]
) -> None:
    """Refuse columns that a table does not have."""
    for pair in pairs:
        for side, column in enumerate(pair):
            kind = both[side].base_type
            assert isinstance(kind, TableType)
            there = [name for name, _ in kind.columns]
            if column not in there:
                raise TraceError(
                    f"{at()}match: the table of {names[side]} has no column {column!r}, but "
                    f"{', '.join(there)}; columns of different names are a pair, "
                    f"on=[(that of {names[0]}, that of {names[1]})], and one that its owner "
                    f"permits only to be matched on is named, mp.dataset(…, match=[{column!r}])",
                    code="T018",
                )


def _check_size(what: str, size: object, least: int) -> None:
    if not is_size(size) or size < least:
        raise TraceError(
            f"{at()}match: {what} is a number of keys from {least} to {MAX_KEYS:,}, got {size!r}",
            code="T018",
        )


def _learners(learn: str, ranks: Sequence[int], names: Sequence[str]) -> Mask:
    if learn == "both":
        return Mask.from_ranks(ranks)
    if learn not in names:
        either = " or ".join(map(repr, names))
        raise TraceError(f"{at()}match: learn is 'both', {either}, got {learn!r}", code="T018")
    return Mask.of(ranks[names.index(learn)])


def _most(
    rows: Mapping[str, int],
    names: Sequence[str],
    both: Sequence[MPObject],
    pairs: Sequence[tuple[str, str]],
) -> tuple[int | None, ...]:
    """Return how many keys each party has at most: as is asked for, or as its owner publishes."""
    if not isinstance(rows, Mapping) or not rows.keys() <= set(names):
        raise TraceError(
            f"{at()}match: rows is a number of keys by party, rows={{{names[0]!r}: 50_000, "
            f"{names[1]!r}: 50_000}}, got {rows!r}",
            code="T018",
        )
    for name, size in rows.items():
        _check_size(f"rows of {name}", size, 1)
    return tuple(
        rows[name] if name in rows else published_keys(table, name, keys)
        for name, table, keys in zip(names, both, zip(*pairs, strict=True), strict=True)
    )


def _device(cluster: ClusterSpec, value: MPObject) -> Any:
    rank = the_holder(value)
    return device_of_party(cluster, cluster.nodes[rank].name)
