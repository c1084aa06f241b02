"""Disclosure in sentences: who learns what of whose data, and of whose data nobody learns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from mplang_analysis.change_sentences import change_sentences
from mplang_analysis.disclosure_row import DisclosureRow
from mplang_analysis.party_names import PartyNames, quoted
from mplang_analysis.phrases import amounts, frequency, listed, place, protected, sizes_of
from mplang_analysis.readers import reader_of
from mplang_analysis.words import What

KINDS = {
    What.PREDICATE: "which way a condition or a loop goes",
    What.INDEX: "which party is asked for a value",
    What.MATCH: "which keys it has in common with {}, and how many",
    What.DURATION: "how long ops of {} take",
    What.FAILURE: "whether an op of {} fails",
}
"""What is learned where it is not the value itself; of a failure, by whom."""

TOGETHER = {
    What.SIZE: "the number and sizes of messages",
    What.DURATION: "how often a loop turns, or which branch is taken, by the time",
}
"""What is learned by what all parties do together."""

EXCEPTIONS = {
    What.SIZE: "by its size",
    What.DURATION: "by its duration",
    What.FAILURE: "whether an op fails",
}
"""What is told beside values, and how it is an exception to what nobody learns."""

PROTECTED = {"share": "put together", "ciphertext": "decrypt"}
"""What a receiver can do with a protected value that discloses something; else open it."""

VALUES = (What.MOVE, What.REVEAL, What.RESULT)
"""The rows by which a receiver gets the value itself."""

Group: TypeAlias = list[DisclosureRow]


def sentences(rows: Sequence[DisclosureRow], names: PartyNames) -> list[str]:
    """Return what a table of disclosures says, in sentences.

    One sentence per receiver and line, then who learns nothing. What failures tell, and who can
    change what, comes last. A share of a value that the same line reveals has no words of its own;
    the table has its row.

    Args:
        rows: the rows of the table.
        names: the names of its parties.

    Example:
        >>> import mplang_core as mp
        >>> program = mp.parse('''
        ... program "demo" on {0, 1} (%0: f32[3]@{0}) {
        ...   %1 = simp.shuffle_static(%0) {routing = [[1, 0]]} : f32[3]@{1} at "demo.py:7"
        ...   return
        ... }''')
        >>> rows = mp.analysis.disclosure(program).rows
        >>> for text in sentences(rows, PartyNames((0, 1), ("shop", "bank"))):
        ...     print(text)
        bank learns: 3 numbers made of shop's data (demo.py:7).
        Only bank learns anything of shop's data.
        shop learns nothing of anyone else's data.
    """
    return _Writer(rows, names).all()


class _Writer:
    """Writes the sentences of one table."""

    def __init__(self, rows: Sequence[DisclosureRow], names: PartyNames) -> None:
        self.names = names
        self.sources = {rank for row in rows for rank in (*row.inputs, *row.discloses)}
        self.changes = [row for row in rows if row.what == What.CHANGE]
        moves = [row for row in rows if row.what == What.MOVE and row.inputs]
        self.inside = [row for row in moves if self.reader(row)]
        disclosing = [row for row in rows if row.discloses]
        self.beside = [row for row in disclosing if row.what in EXCEPTIONS]
        self.rows = [row for row in disclosing if row.what not in EXCEPTIONS]

    def all(self) -> list[str]:
        failures = [row for row in self.beside if row.what == What.FAILURE]
        channels = [row for row in self.beside if row.what != What.FAILURE]
        if self.rows or channels:
            told = [*self.learns(self.rows), *self.learners(), *self.unaware()]
        else:
            nobody = "No party" if self.inside else "Nobody"
            told = [f"{nobody} learns anything of anyone else's data{_except(failures)}."]
        beside = [*self.learns(channels), *self.learns(failures)]
        return [*self.insiders(), *told, *beside, *change_sentences(self.changes, self.names)]

    # -- who reads what is sealed

    def reader(self, row: DisclosureRow) -> str:
        """Return what reads a value inside of its receiver, which does not; else nothing."""
        party = self.names.of(row.receiver)
        reader = reader_of(row.type, party)
        return "" if reader is None or reader == party else reader

    def insiders(self) -> Iterator[str]:
        """Yield what is read inside of receivers, by reader and line."""
        groups: dict[tuple[object, ...], Group] = {}
        for row in self.inside:
            key = self.reader(row), row.line, row.inputs, row.when
            groups.setdefault(key, []).append(row)
        for (reader, *_), rows in groups.items():
            often = frequency(rows[0].when)
            data = f"made of {self.owned(rows[0].inputs)}" + (f", {often}" if often else "")
            kinds = amounts([row.payload for row in rows])
            party = self.names.of(rows[0].receiver)
            yield f"{_begun(str(reader))} reads: {kinds} {data}{place(rows)}; {party} does not."

    # -- who learns what

    def learns(self, rows: Group) -> Iterator[str]:
        """Yield what each receiver learns at each line; who learns the same has one sentence."""
        alike: dict[tuple[str, str, bool], list[str]] = {}
        groups: dict[tuple[object, ...], Group] = {}
        for row in rows:
            who = (row.what, row.sender) if row.what in EXCEPTIONS else None
            groups.setdefault((row.receiver, row.line, who), []).append(row)
        for group in groups.values():
            fetches = all(row.what == What.RESULT for row in group)
            key = "; ".join(self.items(group)), place(group), fetches
            alike.setdefault(key, []).append(self.names.of(group[0].receiver))
        for (items, where, fetches), names in alike.items():
            verb = "may fetch" if fetches else "learns" if len(names) == 1 else "each learn"
            yield f"{_capital(listed(names))} {verb}: {items}{where}."

    def items(self, rows: Group) -> Iterator[str]:
        """Yield what is learned, by what it is made of and how often."""
        groups: dict[tuple[object, ...], Group] = {}
        for row in _without_parts(rows):
            kind = "value" if row.what in VALUES else row.what
            key = kind, row.form, row.inputs, row.discloses, row.when
            groups.setdefault(key, []).append(row)
        for group in groups.values():
            row = group[0]
            often = "" if row.what == What.FAILURE else frequency(row.when)
            yield f"{self.what(group)} {self.data(row)}" + (f", {often}" if often else "")

    def what(self, rows: Group) -> str:
        """Return what is learned by rows of one kind."""
        row, kinds = rows[0], [row.payload for row in rows]
        kind = row.what
        if row.sender is None and kind in TOGETHER:
            return TOGETHER[kind] + ", which depends on"
        if kind == What.SIZE:
            return f"{sizes_of(kinds, self.names.of(row.sender))}, which depends on"
        if kind in KINDS:
            bounds = f" ({listed(row.guards)})" if kind == What.MATCH and row.guards else ""
            return KINDS[kind].format(self.names.of(row.sender)) + f"{bounds}, which depends on"
        if row.form != "plain":
            way = PROTECTED.get(row.form, "open")
            return f"{protected(row.form, kinds)}, which it can {way}, made of"
        return amounts(kinds) + (" made of" if kind in VALUES else f" ({quoted(kind)}) made of")

    def data(self, row: DisclosureRow) -> str:
        """Return whose data something is made of, the receiver's own and what it knew included."""
        receiver = row.receiver
        known = [rank for rank in row.inputs if rank not in row.discloses and rank != receiver]
        parts = [self.owned(row.discloses)]
        if receiver in row.inputs:
            parts.append("its own")
        if known:
            parts.append(f"what it knew of {self.owned(known)}")
        return listed(parts)

    def owned(self, ranks: Iterable[int]) -> str:
        return listed(f"{self.names.of(rank)}'s" for rank in ranks) + " data"

    # -- who learns nothing

    def learners(self) -> Iterator[str]:
        """Yield per party that has data who learns anything of it."""
        owners: dict[tuple[tuple[int | str, ...], str], list[int]] = {}
        for rank in self.names.parties:
            if rank in self.sources:
                rows = [row for row in self.rows if rank in row.discloses]
                receivers = {row.receiver for row in rows}
                order = sorted(receivers, key=lambda who: (isinstance(who, str), who))
                beside = _except(row for row in self.beside if rank in row.discloses)
                owners.setdefault((tuple(order), beside), []).append(rank)
        for (who, exception), ranks in owners.items():
            data = self.owned(ranks) + exception
            if not who:
                yield f"Nobody else learns anything of {data}."
            elif "everyone" not in who:
                verb = "learns" if len(who) == 1 else "learn"
                yield f"Only {listed(map(self.names.of, who))} {verb} anything of {data}."

    def unaware(self) -> Iterator[str]:
        """Yield the parties that learn nothing of the data of others, if there are any."""
        receivers: set[int | str] = {row.receiver for row in self.rows}
        idle = [rank for rank in self.names.parties if rank not in receivers]
        if idle and "everyone" not in receivers:
            verb = "learns" if len(idle) == 1 else "learn"
            names = listed(map(self.names.of, idle))
            told = _except(row for row in self.beside if row.receiver in ("everyone", *idle))
            yield f"{names} {verb} nothing of anyone else's data{told}."


def _except(rows: Iterable[DisclosureRow]) -> str:
    """Return the exception to make where rows tell something beside values."""
    kinds = {row.what for row in rows}
    found = [text for what, text in EXCEPTIONS.items() if what in kinds]
    return f", except {listed(found)}" if found else ""


def _without_parts(rows: Group) -> Group:
    """Return the rows without the shares of values that other rows of the line reveal.

    Where one party sends more shares than values of the type are revealed, all shares stay.
    """
    opened = [row for row in rows if row.form == "plain" and row.what == What.REVEAL]
    reveals = Counter((row.payload, row.when) for row in opened)
    owners = {(row.payload, row.when, row.inputs, row.discloses) for row in opened}
    sent = Counter((row.payload, row.when, row.sender) for row in rows if row.form == "share")

    def is_part(row: DisclosureRow) -> bool:
        same = row.payload, row.when
        return (
            row.form == "share"
            and sent[*same, row.sender] <= reveals[same]
            and any(
                (payload, when) == same
                and set(row.inputs) <= set(inputs)
                and set(row.discloses) <= set(discloses)
                for payload, when, inputs, discloses in owners
            )
        )

    return [row for row in rows if not is_part(row)]


def _capital(text: str) -> str:
    """Return a sentence's begin; names stay as they are written."""
    return _begun(text) if text in ("the host", "everyone") else text


def _begun(text: str) -> str:
    return text[0].upper() + text[1:]
