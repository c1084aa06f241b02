"""Contents of disclosure rows in words, for sentences and the matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from mplang_analysis.disclosure_row import DisclosureRow
from mplang_analysis.party_names import PartyNames, quoted
from mplang_analysis.phrases import amounts, listed, protected, sizes_of
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

BESIDE = (What.SIZE, What.DURATION, What.FAILURE)
"""What is told beside values."""

PROTECTED = {"share": "put together", "ciphertext": "decrypt"}
"""What a receiver can do with a protected value that discloses something; else open it."""

VALUES = (What.MOVE, What.REVEAL, What.RESULT)
"""The rows by which a receiver gets the value itself."""

Group: TypeAlias = list[DisclosureRow]


class Learned:
    """Rows of one table by what they are: values, what is told beside them, changes.

    Args:
        rows: the rows of the table.
        names: the names of its parties.

    Attributes:
        names: the same.
        sources: the parties whose data is in it.
        rows: by which data is disclosed.
        beside: by which something is disclosed beside values.
        inside: moves of what another one than the receiver reads, inside of it.
        changes: the changes.
    """

    def __init__(self, rows: Sequence[DisclosureRow], names: PartyNames) -> None:
        self.names = names
        self.sources = {rank for row in rows for rank in (*row.inputs, *row.discloses)}
        self.changes = [row for row in rows if row.what == What.CHANGE]
        moves = [row for row in rows if row.what == What.MOVE and row.inputs]
        self.inside = [row for row in moves if self.reader(row)]
        disclosing = [row for row in rows if row.discloses]
        self.beside = [row for row in disclosing if row.what in BESIDE]
        self.rows = [row for row in disclosing if row.what not in BESIDE]

    def reader(self, row: DisclosureRow) -> str:
        """Return what reads a value inside of its receiver, which does not; else nothing."""
        party = self.names.of(row.receiver)
        reader = reader_of(row.type, party)
        return "" if reader is None or reader == party else reader

    def content(self, rows: Group) -> str:
        """Return what is learned by rows of one kind and form."""
        row, kinds = rows[0], [row.payload for row in rows]
        kind = row.what
        if row.sender is None and kind in TOGETHER:
            return TOGETHER[kind]
        if kind == What.SIZE:
            return sizes_of(kinds, self.names.of(row.sender))
        if kind in KINDS:
            bounds = f" ({listed(row.guards)})" if kind == What.MATCH and row.guards else ""
            return KINDS[kind].format(self.names.of(row.sender)) + bounds
        if row.form != "plain":
            return f"{protected(row.form, kinds)}, which it can {PROTECTED.get(row.form, 'open')}"
        return amounts(kinds) + ("" if kind in VALUES else f" ({quoted(kind)})")


def by_line(rows: Sequence[DisclosureRow]) -> Iterator[Group]:
    """Yield what each receiver learns at each line; beside values by each sender."""
    groups: dict[tuple[object, ...], Group] = {}
    for row in rows:
        who = (row.what, row.sender) if row.what in BESIDE else None
        groups.setdefault((row.receiver, row.line, who), []).append(row)
    yield from groups.values()


def kind_of(row: DisclosureRow) -> str:
    """Return the kind of what is learned: a value is one, however it comes."""
    return "value" if row.what in VALUES else row.what


def without_parts(rows: Sequence[DisclosureRow]) -> Group:
    """Return the rows of a receiver and line without shares of values that others reveal."""
    return [row for row, part in zip(rows, are_parts(rows), strict=True) if not part]


def are_parts(rows: Sequence[DisclosureRow]) -> list[bool]:
    """Return per row whether it is a share of a value that another one reveals.

    Where one party sends more shares than values of the type are revealed, none of them is.

    Args:
        rows: those of one receiver and line.
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

    return [is_part(row) for row in rows]
