"""Keys that others try: how many of their own the parties of a day match with a data set.

Who brings every telephone number learns which of them are in a data set. So an owner bounds how
many keys another party may bring, in one program by rules (``context.tried``), in a day by this.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from mplang_analysis import DATA_SET, ProgramRequest, What, When

from mplang_policy.guarded import is_match

if TYPE_CHECKING:
    import sqlite3

TOKENS = "match.tokens"
"""The type of what a match sends, whatever matches."""

_ONCE = {When.ONCE, When.IN_A_BRANCH}


class Tried(NamedTuple):
    """Keys that a party brings to a match with a data set.

    Attributes:
        data_set: the data set.
        party: name of the other party.
        keys: how many; 0 if nothing bounds it.
    """

    data_set: str
    party: str
    keys: int


def tries(asked: ProgramRequest) -> list[Tried]:
    """Return the keys that others bring to matches with a party's data sets.

    Args:
        asked: the program, as the party is asked about it. Each match has a row of tokens for the
            party that they go to, whoever learns what is in common.
    """
    keys_tried = []
    for row in asked.rows:
        if not row.type.startswith(TOKENS) or row.what != What.MOVE or row.receiver == asked.party:
            continue
        party, once = asked.names[int(row.receiver)], set(row.when.split(", ")) <= _ONCE
        sets: dict[str, int] = {}
        for source in row.sources:
            if source.party == asked.party and source.name.startswith(DATA_SET):
                data_set = source.name.removeprefix(DATA_SET).partition(".")[0]
                matched = [guard for guard in source.guards if is_match(guard)]
                keys = matched[-1].tried if matched and once else 0
                sets[data_set] = min(keys, sets.get(data_set, keys))
        keys_tried += [Tried(data_set, party, keys) for data_set, keys in sets.items()]
    return keys_tried


def over_tried(wanted: Iterable[Tried], before: Mapping[tuple[str, str], int],
               limits: Mapping[str, int]) -> str:  # fmt: skip
    """Return why matches are more than what a day has left; nothing if they are not.

    Args:
        wanted: what a program would try.
        before: what was tried today, by data set and party.
        limits: by data set how many keys each other party may try in a day.
    """
    sums = dict(before)
    for each in wanted:
        limit = limits.get(each.data_set)
        if limit is None:
            continue
        if not each.keys:
            return (
                f"the number of keys that {each.party} tries on data set {each.data_set} has no "
                f"bound, but a limit of {limit} a day: declare it by rows= of mp.match, and do not "
                "match in a loop"
            )
        key = each.data_set, each.party
        sums[key] = sums.get(key, 0) + each.keys
        if sums[key] > limit:
            return (
                f"{each.party} would try {sums[key]} keys on data set {each.data_set} today, of "
                f"{limit} that it may (gate.tried)"
            )
    return ""


def tried_today(file: sqlite3.Connection, now: float) -> dict[tuple[str, str], int]:
    """Return what was tried on a day, by data set and party; UTC."""
    query = "SELECT data_set, party, keys FROM tried WHERE day = ?"
    return {(name, party): keys for name, party, keys in file.execute(query, (day_of(now),))}


def note_tried(file: sqlite3.Connection, now: float, wanted: Iterable[Tried]) -> None:
    """Add what a program tries; of days before, nothing is kept."""
    today = day_of(now)
    file.execute("DELETE FROM tried WHERE day <> ?", (today,))
    for each in wanted:
        file.execute(
            "INSERT INTO tried VALUES (?, ?, ?, ?) ON CONFLICT (data_set, party) DO UPDATE "
            "SET keys = keys + excluded.keys",
            (each.data_set, each.party, today, each.keys),
        )


def day_of(now: float) -> str:
    """Return the day of a time, UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime(now))
