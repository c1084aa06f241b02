"""Reveals of a line: which rows of a disclosure table open one value to whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from mplang_analysis.disclosure_row import DisclosureRow
from mplang_analysis.learned import are_parts
from mplang_analysis.words import What


@dataclass(frozen=True, slots=True)
class Reveal:
    """Values that become plain at some receivers, the same at each.

    Attributes:
        rows: the rows of the kind ``reveal``, by index.
        shares: the rows of the shares that are put together, by index.
    """

    rows: tuple[int, ...]
    shares: tuple[int, ...]


def reveals_of(table: Sequence[DisclosureRow], rows: Sequence[int]) -> list[Reveal]:
    """Return the reveals among the rows of a line.

    Args:
        table: all rows.
        rows: those of the line, by index.
    """
    by_receiver: dict[int | str, list[int]] = defaultdict(list)
    values: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for i in rows:
        row = table[i]
        by_receiver[row.receiver].append(i)
        if row.what == What.REVEAL and row.sender is None:
            values[row.receiver, row.payload, row.form, row.when].append(i)
    parts: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for who, mine in by_receiver.items():
        for i, part in zip(mine, are_parts([table[i] for i in mine]), strict=True):
            if part:
                parts[who, table[i].payload, "plain", table[i].when].append(i)
    alike: dict[tuple[object, ...], list[tuple[object, ...]]] = defaultdict(list)
    for key, mine in values.items():
        alike[*key[1:], len(mine)].append(key)
    joined: dict[tuple[object, ...], list[tuple[object, ...]]] = defaultdict(list)
    for (_, form, when, _), keys in alike.items():
        receivers = frozenset(receiver for receiver, *_ in keys)
        joined[receivers, form, when].extend(keys)
    return [
        Reveal(
            tuple(i for key in keys for i in values[key]),
            tuple(i for key in keys for i in parts.get(key, ())),
        )
        for keys in joined.values()
    ]
