"""Request to run a program, as gates see it, whatever their rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mplang_analysis.disclosure_row import DisclosureRow
from mplang_analysis.guarding import Spend
from mplang_analysis.labels import Source


class PublicInput(NamedTuple):
    """Public input of a run.

    Attributes:
        position: its position among the inputs.
        numbers: its elements; ``None`` if they are too many, or no numbers.
    """

    position: int
    numbers: tuple[bool | int | float, ...] | None


@dataclass(frozen=True, eq=False)
class ProgramRequest:
    """Program that a coordinator asks a party to run; two are never equal.

    Attributes:
        coordinator: name of the coordinator.
        party: rank of the party whose rules are asked.
        names: names of the parties, by rank.
        program: digest of the program.
        name: name of the program.
        rows: its disclosure, over the labels of its inputs.
        reads: the data sets and columns that it reads at this party.
        stores: per name and rank what flows into what it leaves in storage.
        forms: per name the forms of that.
        mode: mode of the worker.
        shown: SHA-256 of its names and lines.
        texts: SHA-256 of functions and texts of its lines; empty if they are not told.
        storage: what it does in storage: action, name and ranks.
        spends: what it uses up of the budgets of data sets.
        remarks: why guards of it do not count, with their lines.
        questions: digests of what its engine asks about the data sets of this party.
    """

    coordinator: str
    party: int
    names: Sequence[str]
    program: str
    name: str
    rows: Sequence[DisclosureRow]
    reads: Sequence[str] = ()
    stores: Mapping[str, Mapping[int, Sequence[Source]]] = field(default_factory=dict)
    forms: Mapping[str, Sequence[str]] = field(default_factory=dict)
    mode: str = "production"
    shown: str = ""
    texts: str = ""
    storage: Sequence[tuple[str, str, Sequence[int]]] = ()
    spends: Sequence[Spend] = ()
    remarks: Sequence[str] = ()
    questions: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Run that a coordinator asks a party for.

    Attributes:
        session: name of its session.
        run: its name.
        asked: what it would do.
        inputs: its public inputs.
        given: SHA-256 of all its inputs.
        shared: its name at all parties, which none but they use.
        seen: by the name of another party the last entry of this party's log that it knows of, as
            this party's gate has sealed it.
        receipt: likewise, that its coordinator knows of; empty if it has none.
        approvals: those that its coordinator has passed on, as the gate has opened them.
        loaded: names of the runs whose stored values earlier runs of its session have loaded.
        approved: names of the approvals that earlier runs of its session rest on.
    """

    session: str
    run: str
    asked: ProgramRequest
    inputs: Sequence[PublicInput] = ()
    given: str = ""
    shared: str = ""
    seen: Mapping[str, str] = field(default_factory=dict)
    receipt: str = ""
    approvals: Sequence[Any] = ()
    loaded: Sequence[str] = ()
    approved: Sequence[str] = ()

    def about(self) -> dict[str, Any]:
        """Return what it is, as plain data, such as for a log."""
        asked = self.asked
        return {
            "coordinator": asked.coordinator,
            "session": self.session,
            "run": self.run,
            "program": asked.program,
            "name": asked.name,
            "parties": list(asked.names),
            "inputs": self.given,
        }
