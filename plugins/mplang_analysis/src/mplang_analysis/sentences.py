"""Disclosure in sentences: who learns what of whose data, and of whose data nobody learns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from mplang_analysis.party_names import quoted
from mplang_analysis.phrases import amounts, frequency, listed

if TYPE_CHECKING:
    from mplang_analysis.disclosure_table import Disclosure, DisclosureRow

KINDS = {
    "predicate": "which way a condition or a loop goes",
    "index": "which party is asked for a value",
}
"""What is learned where it is not the value itself."""

PROTECTED = {
    "share": "put together from shares",
    "ciphertext": "decrypt",
    "handle": "open by its handle",
}
"""What a receiver can do with a protected value that discloses something."""

Group = list["DisclosureRow"]


def sentences(table: Disclosure) -> list[str]:
    """Return what a table of disclosures says, in sentences.

    One sentence per receiver and line, then who learns nothing. They say no more than the rows:
    a share that belongs to a value which the same line reveals has no words of its own.

    Args:
        table: the disclosures; the names of its parties are those of the sentences.

    Example:
        >>> import mplang_core as mp
        >>> program = mp.parse('''
        ... program "demo" on {0, 1} (%0: f32[3]@{0}) {
        ...   %1 = simp.shuffle_static(%0) {routing = [[1, 0]]} : f32[3]@{1} at "demo.py:7"
        ...   return
        ... }''')
        >>> for text in sentences(mp.analysis.disclosure(program, names=["shop", "bank"])):
        ...     print(text)
        bank learns: 3 numbers made of shop's data (demo.py:7).
        Only bank learns anything of shop's data.
    """
    return _Writer(table).all()


class _Writer:
    """Writes the sentences of one table."""

    def __init__(self, table: Disclosure) -> None:
        self.table = table
        self.rows = [row for row in table.rows if row.discloses]

    def all(self) -> list[str]:
        if not self.rows:
            return [
                f"Nobody learns anything of anyone else's data by what {quoted(self.table.program)} "
                "sends, reveals and returns."
            ]
        lines = [self.learns(group) for group in _grouped(self.rows, "receiver", "line")]
        return [*lines, *self.learners(), *self.unaware()]

    # -- who learns what

    def learns(self, rows: Group) -> str:
        """Return what one receiver learns at one line."""
        receiver: int | str = rows[0].receiver
        who = self.table.name_of(receiver)
        only_results = receiver == "host" and all(row.what == "result" for row in rows)
        items = "; ".join(self.items(rows))
        line = f" ({quoted(rows[0].line)})" if rows[0].line else ""
        return f"{_capital(who)} {'may fetch' if only_results else 'learns'}: {items}{line}."

    def items(self, rows: Group) -> Iterator[str]:
        """Yield what is learned, by what it is made of and how often."""
        shown = [row for row in rows if not _is_part(row, rows)]
        for group in _grouped(shown, "what", "form", "inputs", "discloses", "when"):
            row = group[0]
            often = frequency(row.when)
            yield f"{self.what(group)} {self.made_of(row)}" + (f", {often}" if often else "")

    def what(self, rows: Group) -> str:
        """Return what is learned by rows of one kind."""
        row, kinds = rows[0], [row.payload for row in rows]
        kind: str = row.what
        if kind == "failure":
            return f"whether an op of {self.table.name_of(row.sender)} fails, which is"
        if kind in KINDS:
            return f"{KINDS[kind]}, which is"
        if row.form != "plain":
            way = PROTECTED.get(row.form, f"open, being a {quoted(row.form)}")
            return f"{amounts(kinds)}, which it can {way},"
        plain = kind in ("move", "reveal", "result")
        return amounts(kinds) + ("" if plain else f" by {quoted(kind)}")

    def made_of(self, row: DisclosureRow) -> str:
        """Return whose data it is made of, the receiver's own and what it knew included."""
        receiver: int | str = row.receiver
        known = [rank for rank in row.inputs if rank not in row.discloses and rank != receiver]
        parts = [self.owned(row.discloses)]
        if receiver in row.inputs:
            parts.append("its own")
        if known:
            parts.append(f"what it knew of {self.owned(known)}")
        return f"made of {listed(parts)}"

    def owned(self, ranks: Iterable[int]) -> str:
        return listed(f"{self.table.name_of(rank)}'s" for rank in ranks) + " data"

    # -- who learns nothing

    def learners(self) -> Iterator[str]:
        """Yield per party that has data who learns anything of it."""
        owners: dict[tuple[int | str, ...], list[int]] = {}
        for rank in self.table.parties:
            if any(rank in (*row.inputs, *row.discloses) for row in self.table.rows):
                rows = [row for row in self.rows if rank in row.discloses]
                owners.setdefault(tuple(dict.fromkeys(row.receiver for row in rows)), []).append(
                    rank
                )
        for who, ranks in owners.items():
            data = self.owned(ranks)
            if not who:
                yield f"Nobody else learns anything of {data}."
            elif "everyone" not in who:
                verb = "learns" if len(who) == 1 else "learn"
                yield f"Only {listed(map(self.table.name_of, who))} {verb} anything of {data}."

    def unaware(self) -> Iterator[str]:
        """Yield the parties that learn nothing of the data of others, if there are any."""
        receivers: set[int | str] = {row.receiver for row in self.rows}
        idle = [rank for rank in self.table.parties if rank not in receivers]
        if idle and not _told_to_everyone(self.rows, idle):
            verb = "learns" if len(idle) == 1 else "learn"
            names = listed(map(self.table.name_of, idle))
            yield f"{_capital(names)} {verb} nothing of anyone else's data."


def _told_to_everyone(rows: Sequence[DisclosureRow], ranks: Sequence[int]) -> bool:
    """Tell whether one of some parties learns something by rows for everyone."""
    receivers: list[tuple[int | str, DisclosureRow]] = [(row.receiver, row) for row in rows]
    told = [row.discloses for who, row in receivers if who == "everyone"]
    return any(set(owners) - {rank} for owners in told for rank in ranks)


def _is_part(row: DisclosureRow, rows: Group) -> bool:
    """Tell whether a row is a share of a value that another row of the line makes plain."""
    return row.form == "share" and any(
        other.form == "plain"
        and other.what in ("move", "reveal", "result")
        and (other.payload, other.when) == (row.payload, row.when)
        and set(row.inputs) <= set(other.inputs)
        and set(row.discloses) <= set(other.discloses)
        for other in rows
    )


def _grouped(rows: Iterable[DisclosureRow], *fields: str) -> list[Group]:
    groups: dict[tuple[object, ...], Group] = {}
    for row in rows:
        groups.setdefault(tuple(getattr(row, field) for field in fields), []).append(row)
    return list(groups.values())


def _capital(text: str) -> str:
    """Return a sentence's begin; names stay as they are written."""
    return text[0].upper() + text[1:] if text in ("the host", "everyone") else text
