"""Agreement of parties on the version of a stored value that they load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mplang_data.stored.entry import Card, Held, NotStoredError, StoreError


def agree(
    name: str, members: Sequence[int], parties: Sequence[str], held: Mapping[int, Sequence[Held]]
) -> Card:
    """Return the version of a stored value that its members load, the same at all of them.

    It is what was stored last. A member that was killed while it stored may have the new version
    whole, and still the one before as its current one: where one has made it its current one, all
    had it whole before, so it is what was stored. Whoever has something else as its current one, or
    not that version, was restored from a backup or has removed it.

    Args:
        name: its name.
        members: ranks of those who load it.
        parties: names of the session's parties, by rank.
        held: per member the versions that it holds.

    Returns:
        What a member tells of the version; the others say the same of it.

    Raises:
        NotStoredError: no member has stored one.
        StoreError: there is none that all members hold, or it was stored by others.
    """
    mine = {rank: {each.card.version: each for each in held.get(rank, ())} for rank in members}
    current = {
        rank: next((version for version, each in mine[rank].items() if each.current), None)
        for rank in members
    }
    if not any(current.values()):
        where = _names(members, parties)
        raise NotStoredError(f"nothing is stored as {name!r} at {where}; mp.store it first")
    found = [
        version
        for version in set(current.values())
        if version is not None
        and all(version in mine[rank] for rank in members)
        and all(current[rank] in (version, mine[rank][version].card.previous) for rank in members)
    ]
    if len(found) != 1:
        shown = (_shown(mine[rank].get(current[rank] or "")) for rank in members)
        told = "; ".join(
            f"{parties[rank]} has {each}" for rank, each in zip(members, shown, strict=True)
        )
        raise StoreError(
            f"{name!r} comes from different runs at its members: {told}. Restore what is missing "
            "from a backup, or store it again"
        )
    cards = [mine[rank][found[0]].card for rank in members]
    if any(card.like() != cards[0].like() for card in cards):
        raise StoreError(f"{_names(members, parties)} report different data for {name!r}")
    _check_members(name, members, parties, cards[0])
    return cards[0]


def _check_members(name: str, members: Sequence[int], parties: Sequence[str], card: Card) -> None:
    """Check that a version was stored by those who load it; of a plain value some are enough."""
    stored = [card.parties[rank] for rank in card.members]
    loading = [parties[rank] for rank in members]
    if card.is_plain and set(loading) <= set(stored):
        return
    if loading != stored:
        raise StoreError(
            f"{name!r} was stored by {', '.join(stored)}, in this order, and is loaded by "
            f"{', '.join(loading)}"
        )
    if tuple(card.members) != tuple(members):  # shares are of ranks
        raise StoreError(
            f"{name!r} was stored in a session of {', '.join(card.parties)}, in this order; this "
            f"one is of {', '.join(parties)}"
        )


def _names(ranks: Sequence[int], parties: Sequence[str]) -> str:
    return ", ".join(parties[rank] for rank in ranks)


def _shown(held: Held | None) -> str:
    if held is None:
        return "none"
    return f"run {held.card.version[:8]}"
