"""Disclosure row: one thing that a party, or the host, gets to know of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mplang_analysis.event import Receiver
from mplang_analysis.guarding import WHOLE
from mplang_analysis.labels import Source, data_sets
from mplang_analysis.lineage import Guard
from mplang_analysis.party_names import quoted, quoted_line
from mplang_analysis.readers import reader_of
from mplang_analysis.words import What

COLUMNS = ("what", "from", "to", "type", "form", "bytes", "inputs", "discloses", "line", "when")
MAX_COLUMNS = 3  # that are named in a cell; a row as data has all


@dataclass(frozen=True, slots=True)
class DisclosureRow:
    """Row of the disclosure table: data that another party, or the host, learns of.

    Attributes:
        what: ``move``, ``reveal``, ``predicate``, ``index``, ``match``, ``result``, ``size``,
            ``duration``, ``failure`` or ``change``; see ``docs/disclosure.md``.
        sender: the party that it comes from, that takes long, may fail, or can change it; ``None``
            in a reveal, and where all parties do it together, or every party can change it.
        receiver: the party that gets it, or ``"host"``; ``"everyone"`` of a duration or failure.
        type: the type of what crosses; of a ``size``, of what has it; of a ``change``, of what can
            be changed.
        payload: what that stands for: the tensor that is shared or encrypted.
        form: how the receiver can read it: ``plain``, ``share``, ``ciphertext``, …
        bytes: an estimate; ``None`` where the type does not tell.
        inputs: the parties whose private data flows into it.
        discloses: those of them whose data the receiver can read in it, or infer of it, and
            did not know from the beginning.
        line: the user's line, ``demo.py:12``; empty if unknown.
        when: ``once``, ``per iteration``, ``in a branch``, …
        lines: the lines of all ops that it stands for; those of a failure or change may be several.
        sources: the private data that flows into it.
        protocol: the protocol of a share, or the one that does not notice a change; else empty.
    """

    what: What
    sender: int | None
    receiver: Receiver
    type: str
    payload: str
    form: str
    bytes: int | None
    inputs: tuple[int, ...]
    discloses: tuple[int, ...]
    line: str
    when: str
    lines: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    protocol: str = ""
    HEADS: ClassVar[Sequence[str]] = COLUMNS

    @property
    def alert(self) -> bool:
        """Whether its receiver can read or infer another party's data."""
        return bool(self.discloses)

    @property
    def data(self) -> tuple[str, ...]:
        """The data sets and columns that flow into it, such as ``0/patients.age``."""
        return data_sets(self.sources)

    @property
    def guards(self) -> tuple[str, ...]:
        """The guards that all data which it discloses went through, with what they bound."""
        told = [each for each in self.sources if each.party in self.discloses]
        through = [{_guard(guard) for guard in each.guards} for each in told]
        return tuple(sorted(set.intersection(*through))) if through else ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data; sender and receiver are called ``from`` and ``to``."""
        return {
            "what": self.what,
            "from": self.sender,
            "to": self.receiver,
            "type": self.type,
            "payload": self.payload,
            "form": self.form,
            "bytes": self.bytes,
            "inputs": list(self.inputs),
            "discloses": list(self.discloses),
            "line": self.line,
            "when": self.when,
            "lines": list(self.lines),
            "data": list(self.data),
            "guards": list(self.guards),
            "protocol": self.protocol,
        }

    def texts(self) -> list[str]:
        """Return the cells of its line in a table."""
        return [
            self.what,
            "" if self.sender is None else str(self.sender),
            self._reader(),
            self.payload,
            self.form,
            "?" if self.bytes is None else str(self.bytes),
            self._sources() or "public",
            _parties(self.discloses) or "-",
            quoted_line(self.line) if self.line else "",
            self.when,
        ]

    def _reader(self) -> str:
        sealed = reader_of(self.type, str(self.receiver)) if self.what == What.MOVE else None
        return sealed or str(self.receiver)

    def _sources(self) -> str:
        """Return whose data it is, with the names of data sets, and what all of it went through."""
        parts = [_parties(self.inputs), *_data_sets(self.data), *self.guards]
        return ", ".join(filter(None, parts))


def _guard(guard: Guard) -> str:
    """Return a guard and what it bounds.

    Example:
        >>> _guard(Guard("guard", ("id",), 20, ("mean",), max_share=500_000))
        'guard k=20 max_share=0.5'
    """
    bounds = [f" k={guard.k}"] if guard.k else []
    bounds += [f" max_share={guard.max_share / WHOLE:g}"] if guard.max_share < WHOLE else []
    bounds += [f" of at most {guard.tried:,} keys"] if guard.tried else []
    bounds += [f" with at least {guard.least:,} in common"] if guard.least else []
    return guard.op + "".join(bounds)


def _data_sets(data: Sequence[str]) -> list[str]:
    """Return the names of data sets with their columns, or the number of those.

    Example:
        >>> _data_sets(["0/people.age", "0/people.sex", "1/scan"])
        ['0/people (age, sex)', '1/scan']
    """
    found: dict[str, list[str]] = {}
    for name in data:
        data_set, _, column = name.partition(".")
        rank, _, data_set = data_set.partition("/")
        found.setdefault(f"{rank}/{quoted(data_set)}", []).extend(
            [quoted(column)] if column else []
        )
    return [each + (f" ({_listed(columns)})" if columns else "") for each, columns in found.items()]


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(columns) if len(columns) <= MAX_COLUMNS else f"{len(columns)} columns"


def _parties(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))
