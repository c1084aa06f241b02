"""Changes in sentences: who can change what others get, and nobody notices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from mplang_analysis.disclosure_row import DisclosureRow
from mplang_analysis.party_names import PartyNames, quoted
from mplang_analysis.phrases import listed, place

Receivers: TypeAlias = Mapping[int | str, frozenset[int | None]]
"""For each receiver of a result those who can change it."""


def change_sentences(rows: Sequence[DisclosureRow], names: PartyNames) -> Iterator[str]:
    """Yield who can change what whom gets, one sentence for parties and lines that are alike.

    Args:
        rows: rows of the kind ``change``.
        names: the names of the parties.
    """
    groups: dict[tuple[int | str, str], list[DisclosureRow]] = {}
    for row in rows:
        groups.setdefault((row.receiver, row.protocol), []).append(row)
    alike: dict[str, dict[int | str, frozenset[int | None]]] = {}
    for (receiver, protocol), group in groups.items():
        why = f": {quoted(protocol)} is semi-honest" if protocol else ""
        senders = frozenset(row.sender for row in group)
        alike.setdefault(f"unnoticed{why}{place(group)}", {})[receiver] = senders
    for end, receivers in alike.items():
        yield from (f"{who}, {end}." for who in _who(receivers, names))


def _who(receivers: Receivers, names: PartyNames) -> Iterator[str]:
    """Yield who can change what whom gets; of what they get of each other, in one sentence."""
    members = frozenset[int | None]().union(*receivers.values())
    mutual = [who for who in receivers if who in members and receivers[who] == members - {who}]
    if len(mutual) < max(2, len(members)):
        mutual = []
    if mutual:
        other = "the other one gets" if len(mutual) == 2 else "the others get"
        yield f"Each of {listed(map(names.of, mutual))} can change what {other}"
    by_senders: dict[frozenset[int | None], list[int | str]] = {}
    for receiver, senders in receivers.items():
        if receiver not in mutual:
            by_senders.setdefault(senders, []).append(receiver)
    for senders, found in by_senders.items():
        get = f"{listed(map(names.of, found))} get{'s' * (len(found) == 1)}"
        yield f"{_senders(senders, names)} change what {get}"


def _senders(senders: frozenset[int | None], names: PartyNames) -> str:
    ranks = sorted(rank for rank in senders if rank is not None)
    if None in senders:
        return "Every other party can"
    return listed(map(names.of, ranks)) + " can" + " each" * (len(ranks) > 1)
