"""Disclosure table: what each party and the host learn of whose data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from mplang_analysis.disclosure_row import COLUMNS, DisclosureRow
from mplang_analysis.event import SIDE_CHANNELS, Event
from mplang_analysis.holdings import Holding, is_protected, unknown_history
from mplang_analysis.labels import Label, Source
from mplang_analysis.matrix import Matrix, matrix_of
from mplang_analysis.party_names import PartyNames, names_of, quoted, read_names
from mplang_analysis.picture import Picture
from mplang_analysis.picture_builder import build
from mplang_analysis.records import Records
from mplang_analysis.report import Paragraphs, Part, Report, TextTable
from mplang_analysis.sentences import sentences
from mplang_analysis.storage import Stored
from mplang_analysis.subject import program_of
from mplang_analysis.taint import Flow
from mplang_analysis.type_size import bytes_of, payload
from mplang_analysis.words import BETWEEN_CONDITIONS, What, When
from mplang_analysis.written import written
from mplang_core import BaseType, Form, Mask, MPType, Program
from mplang_core.ext import TraceError


@dataclass(frozen=True, slots=True)
class Disclosure(Report):
    """Disclosures of a program: in sentences, as a picture, and as a table.

    Attributes:
        program: its name.
        digest: its digest.
        parties: who runs it.
        rows: in the order of the program.
        notes: what was assumed.
        names: what the parties are called, in the order of ``parties``.
        subject: the program itself; a picture without it shows what the rows say.
    """

    program: str
    digest: str
    parties: tuple[int, ...]
    rows: tuple[DisclosureRow, ...]
    notes: tuple[str, ...]
    names: tuple[str, ...] = field(default=(), compare=False)
    subject: Program | None = field(default=None, compare=False, repr=False)

    def of(self, rank: int) -> tuple[DisclosureRow, ...]:
        """Return the rows by which another one gets to know a party's data."""
        return Records(row for row in self.rows if rank in row.discloses)

    def named(self, names: Sequence[str] | Mapping[int, str]) -> Disclosure:
        """Return the same with names for the parties, by rank.

        Raises:
            ConfigError: a name is not text.
        """
        return dataclasses.replace(self, names=read_names(names, self.parties))

    def name_of(self, who: int | str | None) -> str:
        """Return what a party is called; ``"host"`` is the host."""
        return self._names.of(who)

    @property
    def _names(self) -> PartyNames:
        return PartyNames(self.parties, self.names)

    def sentences(self) -> list[str]:
        """Return who learns what of whose data, in sentences."""
        literals = [] if self.subject is None else written(self.subject)
        return sentences(self.rows, self._names, literals)

    def matrix(self) -> Matrix:
        """Return who learns what of whose data, on one screen."""
        return matrix_of(self.program, self.rows, self._names)

    def picture(self) -> Picture:
        """Return who sends what to whom, drawn by the lines of the program."""
        return build(self.program, self.rows, self._names, self.subject)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "program": self.program,
            "digest": self.digest,
            "parties": list(self.parties),
            "names": [self.name_of(rank) for rank in self.parties],
            "sentences": self.sentences(),
            "rows": [row.to_dict() for row in self.rows],
            "notes": list(self.notes),
        }

    def tables(self) -> list[TextTable]:
        """Return the one table; rows that disclose something are its alerts."""
        alerts = [i for i, row in enumerate(self.rows) if row.discloses]
        rows = [row.texts() for row in self.rows]
        return [TextTable(f"What {quoted(self.program)} discloses", COLUMNS, rows, alerts)]

    def remarks(self) -> Sequence[str]:
        """Return the notes."""
        return self.notes

    def parts(self, drawings: bool = True) -> Sequence[Part]:
        """Return the sentences, the matrix, the picture, and the table with its notes."""
        title = f"Who learns what by what {quoted(self.program)} sends, reveals and returns"
        drawn = [self.picture()] if drawings else []
        return [Paragraphs(self.sentences(), title), self.matrix(), *drawn, *Report.parts(self)]


def disclosure(
    program: Any,
    *,
    labels: Sequence[Mapping[int, Label]] | None = None,
    held: Mapping[int, Holding] | None = None,
    uniform_inputs: bool = False,
    stored: Stored | None = None,
    names: Sequence[str] | Mapping[int, str] | None = None,
) -> Disclosure:
    """Return what crosses the boundary of a party, what is revealed, and whose data is in it.

    Args:
        program: a program, or a function that was traced or compiled.
        labels: per input a label for each holder's copy, as :func:`follow` returns them. A copy
            without one is its holder's own; a protected value without one may be anyone's.
        held: per party what it had in earlier runs, as :func:`follow` returns it. Without it
            parties count as having had anything where a label is of a share, a key or a ciphertext,
            and nothing where no label is.
        uniform_inputs: whether a plain input that several parties hold, and that has no label, is
            the same at all of them: then all of its holders know it, and where all parties hold
            it, it is public. A program does not tell; a note says where it was assumed.
        stored: the labels of what the parties have in storage, by name and by rank.
        names: names of the parties by rank; by default those in the cluster that a function was
            traced for, and ``party 0``, … for a program alone.

    Raises:
        ConfigError: a name is not text.
        TraceError: it is not a program, or the number of labels is not that of the inputs.
        VerifyError: the program breaks a rule.

    Example:
        >>> import mplang_core as mp
        >>> def program():
        ...     return mp.put("P1", mp.simp.pcall_static(0, lambda x: x + 1, mp.constant([1])))
        >>> traced = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), program)
        >>> for row in disclosure(traced).rows:
        ...     print(row.what, row.sender, row.receiver, row.payload, row.form, row.inputs)
        move 0 1 i64[1] plain ()
        result 1 host i64[1] plain ()
    """
    found = program_of(program)
    given = check_labels(found, labels)
    if held is None:
        protected = is_protected([*given, *(stored or {}).values()])
        held = unknown_history(found.mask) if protected else {}
    flow = Flow(found, given, held, uniform_inputs=uniform_inputs, stored=stored or {})
    notes = _assumed(found) if uniform_inputs and labels is None else []
    return table_of(flow, notes).named(names_of(program) if names is None else names)


def check_labels(
    program: Program, labels: Sequence[Mapping[int, Label]] | None
) -> Sequence[Mapping[int, Label]]:
    """Return labels for all inputs of a program.

    Raises:
        TraceError: the number of labels is not that of the inputs.
    """
    inputs = program.graph.inputs
    if labels is None:
        return [{} for _ in inputs]
    if len(labels) != len(inputs):
        raise TraceError(
            f"program {program.name!r}: expected labels of its {len(inputs)} inputs, got "
            f"{len(labels)}; pass {{}} for an input without labels"
        )
    return labels


def table_of(flow: Flow, notes: Sequence[str] = ()) -> Disclosure:
    """Return the table of a flow."""
    return Disclosure(
        program=flow.program.name,
        digest=flow.program.digest,
        parties=tuple(flow.program.mask),
        rows=Records(_row(flow, event) for event in flow.events),
        notes=tuple(notes),
        subject=flow.program,
    )


@lru_cache(maxsize=1024)
def _texts(kind: BaseType) -> tuple[str, str]:
    """Return the text of a type and of its payload; programs have few types and many rows."""
    return str(kind), str(payload(kind))


@lru_cache(maxsize=1024)
def _sorted(sources: frozenset[Source]) -> tuple[Source, ...]:
    """Return sources in order; programs have few combinations of them and many rows."""
    return tuple(sorted(sources))


def _row(flow: Flow, event: Event) -> DisclosureRow:
    read = flow.told.read(event)
    rank = event.receiver if isinstance(event.receiver, int) else None
    news = Mask() if read is None else read.news_to(rank)
    kind, carried = _texts(event.type)
    plain = event.what in SIDE_CHANNELS
    return DisclosureRow(
        what=event.what,
        sender=event.sender,
        receiver=event.receiver,
        type=kind,
        payload=carried,
        form=(Form.PLAIN if plain else event.type.form).value,
        bytes=None if event.what is What.SIZE else bytes_of(event.type),
        inputs=tuple(event.label.parties | news),
        discloses=tuple(news),
        line=str(event.location or ""),
        when=BETWEEN_CONDITIONS.join(event.when or [When.ONCE]),
        lines=tuple(dict.fromkeys(map(str, event.lines))),
        sources=_sorted((event.label if read is None else event.label | read).sources),
        protocol=event.protocol or str(getattr(event.type, "protocol", "")),
    )


def _assumed(program: Program) -> list[str]:
    notes = []
    for i, value in enumerate(program.graph.inputs):
        kind = value.type
        if isinstance(kind, MPType) and kind.base.form is Form.PLAIN and len(kind.pmask or ()) > 1:
            who = "public" if kind.pmask == program.mask else f"known to all of {kind.pmask}"
            notes.append(
                f"Input {i}, {kind}, is taken as the same at all its holders, and so {who}; "
                "without uniform_inputs=True it may differ, and each holder's copy is its own."
            )
    return notes
