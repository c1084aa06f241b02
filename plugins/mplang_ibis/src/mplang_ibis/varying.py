"""Sources of nondeterminism in queries. Imports nothing."""

from __future__ import annotations

_CHANCE = {
    "gen_random_uuid", "nextval", "rand", "random", "setseed", "uuid", "uuidv4", "uuidv7",
}  # fmt: skip
_TIME = {
    "age", "current_date", "current_localtime", "current_localtimestamp", "current_time",
    "current_timestamp", "get_current_time", "get_current_timestamp", "localtime",
    "localtimestamp", "now", "today", "transaction_timestamp",
}  # fmt: skip


def why_not_repeatable(name: str) -> str:
    """Return why a query with a function or a word is another one in each run, for its refusal.

    Args:
        name: the name of the function or the word; ``"sample"`` for the clause.

    Returns:
        What follows the name in a message; nothing for a name that is refused for other reasons.

    Example:
        >>> why_not_repeatable("now").partition(";")[0]
        ', which gives another time in each run'
        >>> why_not_repeatable("read_csv")
        ''
    """
    name = name.lower()
    if name in _CHANCE:
        return (
            ", which gives other values in each run; draw them yourself, and put them as a column "
            "of a table"
        )
    if name in _TIME:
        return (
            ", which gives another time in each run; write the time as a constant, as in "
            "TIMESTAMP '2026-01-31 12:00:00'"
        )
    if name == "sample":
        return ", which takes other rows in each run; filter by a column, as in WHERE id % 10 = 0"
    return ""
