"""Matrix of who learns what: a row for whose data it is, a column for who learns of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mplang_analysis import matrix_svg, matrix_text
from mplang_analysis.disclosure_row import DisclosureRow
from mplang_analysis.grid import LearnerGrid
from mplang_analysis.learned import Group, Learned, by_line, kind_of, without_parts
from mplang_analysis.party_names import PartyNames, quoted
from mplang_analysis.phrases import frequency
from mplang_analysis.report import Drawing
from mplang_analysis.words import What
from mplang_core.ext import printable

Learner: TypeAlias = int | str

EVERYONE = "everyone"
OWN, NOTHING, NOTHING_ELSE = "its own", "nothing", "nothing else"


@dataclass(frozen=True, slots=True, repr=False)
class Matrix(Drawing, LearnerGrid):
    """A matrix that draws itself, as SVG or in characters."""

    def text(self, columns: int = 80) -> str:
        """Return the matrix in characters.

        Args:
            columns: its width; where a column for each learner does not fit, a list takes its
                place.
        """
        return matrix_text.written(self, columns)

    def rich(self) -> object:
        """Return the matrix for rich: as wide as the terminal, up to 100 columns."""
        return matrix_text.RichGrid(self)

    def html(self) -> str:
        """Return the matrix as HTML: inline SVG for wide and narrow columns."""
        return matrix_svg.draw(self)

    def svg(self) -> str:
        """Return the matrix as a document of SVG, which loads nothing."""
        return matrix_svg.document(self)


def matrix_of(title: str, rows: Sequence[DisclosureRow], names: PartyNames) -> Matrix:
    """Return the matrix of a table of disclosures.

    Args:
        title: the name of its program.
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
        >>> print(matrix_of("demo", rows, PartyNames((0, 1), ("shop", "bank"))))
        Who learns what of whose data by demo
                     shop     bank       the host
        shop's data  its own  3 numbers  nothing
    """
    return _Builder(rows, names).matrix(quoted(title))


class _Builder(Learned):
    """Builds the matrix of one table, of the rows that its sentences are made of."""

    def matrix(self, title: str) -> Matrix:
        owners = [rank for rank in self.names.parties if rank in self.sources]
        owners = owners or list(self.names.parties)
        learned = self.learned()
        readers = dict.fromkeys(who for who, _ in learned if who not in self.known)
        columns: list[Learner] = [*self.names.parties, "host", *readers]
        cells = {who: [self.cell(who, owner, learned) for owner in owners] for who in columns}
        if any(who == EVERYONE for who, _ in learned):
            cells[EVERYONE] = [self.cell(EVERYONE, owner, learned) for owner in owners]
        alike: dict[tuple[str, ...], list[Learner]] = {}
        for who, texts in cells.items():
            alike.setdefault(tuple(texts), []).append(who)
        return Matrix(
            f"Who learns what of whose data by {title}",
            tuple(map(self.names.of, self.names.parties)),
            tuple(map(self.names.of, owners)),
            tuple(tuple(map(self.names.of, each)) for each in alike.values()),
            tuple(zip(*alike, strict=True)),
            (OWN, NOTHING, NOTHING_ELSE),
        )

    @property
    def known(self) -> set[Learner]:
        return {*self.names.parties, "host", EVERYONE}

    def cell(self, who: Learner, owner: int, learned: Mapping[tuple[Learner, int], Group]) -> str:
        """Return what somebody learns of a party's data."""
        if who == owner:
            return OWN
        texts = dict.fromkeys(self.texts(learned.get((who, owner), [])))
        if texts:
            return printable("; ".join(texts))
        also = who != EVERYONE and (EVERYONE, owner) in learned
        return NOTHING_ELSE if also else NOTHING

    def learned(self) -> Mapping[tuple[Learner, int], Group]:
        """Return the rows by which each learner learns of each party's data."""
        rows: dict[tuple[Learner, int], Group] = {}
        for group in by_line([*self.rows, *self.beside]):
            for row in without_parts(group):
                for owner in row.discloses:
                    rows.setdefault((row.receiver, owner), []).append(row)
        for row in self.inside:
            for owner in row.inputs:
                rows.setdefault((self.reader(row), owner), []).append(row)
        return rows

    def texts(self, rows: Group) -> Iterator[str]:
        """Yield what is learned by some rows, by its kind and how often."""
        groups: dict[tuple[object, ...], Group] = {}
        for row in rows:
            sender = None if kind_of(row) == "value" else row.sender
            sealed = row in self.inside  # who gets it does not read it, but another one does
            groups.setdefault((kind_of(row), row.form, sender, sealed, row.when), []).append(row)
        for group in groups.values():
            often = "" if group[0].what == What.FAILURE else frequency(group[0].when)
            yield self.content(group) + (f", {often}" if often else "")
