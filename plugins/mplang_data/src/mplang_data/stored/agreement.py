"""Agreement of parties on the version of a stored value that they load."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from mplang_data.stored.entry import Held, NotStoredError, StoreError, is_sealed


def agree(
    name: str, members: Sequence[int], parties: Sequence[str], held: Mapping[int, Sequence[Held]]
) -> str:
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
        The version.

    Raises:
        NotStoredError: a member holds none.
        StoreError: there is none that all members hold, or it was stored by others.
    """
    mine = {rank: {each.entry.version: each for each in held.get(rank, ())} for rank in members}
    current = {
        rank: next((version for version, each in mine[rank].items() if each.current), None)
        for rank in members
    }
    if not any(current.values()):
        raise NotStoredError(f"nothing is stored as {name!r} at {_names(members, parties)}")
    found = [
        version
        for version in set(current.values())
        if version is not None
        and all(version in mine[rank] for rank in members)
        and all(current[rank] in (version, mine[rank][version].entry.previous) for rank in members)
    ]
    if len(found) != 1:
        shown = (_shown(mine[rank].get(current[rank] or "")) for rank in members)
        told = "; ".join(
            f"{parties[rank]} has {each}" for rank, each in zip(members, shown, strict=True)
        )
        raise StoreError(
            f"{name!r} is not of one run at all of its members: {told}. Restore what is missing "
            "from a backup, or store it again"
        )
    chosen = mine[members[0]][found[0]].entry
    alone = not any(map(is_sealed, chosen.types)) and set(members) <= set(chosen.members)
    if tuple(chosen.members) != tuple(members) and not alone:
        were = _names(chosen.members, chosen.parties)
        raise StoreError(f"{name!r} was stored by {were}, not by {_names(members, parties)}")
    if [chosen.parties[rank] for rank in members] != [parties[rank] for rank in members]:
        raise StoreError(
            f"{name!r} was stored in a session of {', '.join(chosen.parties)}, in this order; this "
            f"one is of {', '.join(parties)}"
        )
    return found[0]


def _names(ranks: Sequence[int], parties: Sequence[str]) -> str:
    return ", ".join(parties[rank] for rank in ranks)


def _shown(held: Held | None) -> str:
    if held is None:
        return "none"
    stored = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(held.entry.time))
    return f"run {held.entry.version[:8]} of {stored} UTC"
