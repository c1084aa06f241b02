"""Disclosure in sentences: who learns what of whose data, and of whose data nobody learns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mplang_analysis.change_sentences import change_sentences
from mplang_analysis.disclosure_row import DisclosureRow
from mplang_analysis.learned import KINDS, Group, Learned, by_line, kind_of, without_parts
from mplang_analysis.party_names import PartyNames
from mplang_analysis.phrases import amounts, frequency, listed, place
from mplang_analysis.words import What
from mplang_analysis.written import Written, sentence

EXCEPTIONS = {
    What.SIZE: "by its size",
    What.DURATION: "by its duration",
    What.FAILURE: "whether an op fails",
}
"""What is told beside values, and how it is an exception to what nobody learns."""


def sentences(
    rows: Sequence[DisclosureRow], names: PartyNames, literals: Sequence[Written] = ()
) -> list[str]:
    """Return what a table of disclosures says, in sentences.

    One sentence per receiver and line, then who learns nothing, then what the program itself
    tells everyone. What failures tell, and who can change what, comes last. A share of a value that
    the same line reveals has no words of its own; the table has its row.

    Args:
        rows: the rows of the table.
        names: the names of its parties.
        literals: those that the program gives to some of its parties.

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
    return _Writer(rows, names).all(literals)


class _Writer(Learned):
    """Writes the sentences of one table."""

    def all(self, literals: Sequence[Written]) -> list[str]:
        failures = [row for row in self.beside if row.what == What.FAILURE]
        channels = [row for row in self.beside if row.what != What.FAILURE]
        if self.rows or channels:
            told = [*self.learns(self.rows), *self.learners(), *self.unaware()]
        else:
            nobody = "No party" if self.inside else "Nobody"
            told = [f"{nobody} learns anything of anyone else's data{_except(failures)}."]
        told += sentence(literals, self.names)
        beside = [*self.learns(channels), *self.learns(failures)]
        return [*self.insiders(), *told, *beside, *change_sentences(self.changes, self.names)]

    # -- who reads what is sealed

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
        for group in by_line(rows):
            fetches = all(row.what == What.RESULT for row in group)
            key = "; ".join(self.items(group)), place(group), fetches
            alike.setdefault(key, []).append(self.names.of(group[0].receiver))
        for (items, where, fetches), names in alike.items():
            verb = "may fetch" if fetches else "learns" if len(names) == 1 else "each learn"
            yield f"{_capital(listed(names))} {verb}: {items}{where}."

    def items(self, rows: Group) -> Iterator[str]:
        """Yield what is learned, by what it is made of and how often."""
        groups: dict[tuple[object, ...], Group] = {}
        for row in without_parts(rows):
            key = kind_of(row), row.form, row.inputs, row.discloses, row.when
            groups.setdefault(key, []).append(row)
        for group in groups.values():
            row = group[0]
            often = "" if row.what == What.FAILURE else frequency(row.when)
            yield f"{self.what(group)} {self.data(row)}" + (f", {often}" if often else "")

    def what(self, rows: Group) -> str:
        """Return what is learned by rows of one kind, up to whose data it is of."""
        row = rows[0]
        if row.what in KINDS or row.what == What.SIZE:
            return f"{self.content(rows)}, which depends on"
        return f"{self.content(rows)}{'' if row.form == 'plain' else ','} made of"

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


def _capital(text: str) -> str:
    """Return a sentence's begin; names stay as they are written."""
    return _begun(text) if text in ("the host", "everyone") else text


def _begun(text: str) -> str:
    return text[0].upper() + text[1:]
