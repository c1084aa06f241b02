"""Recorder of the taint analysis: what others learn of, and who can change what they get."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mplang_analysis import op_traits
from mplang_analysis.changes import ChangeTally
from mplang_analysis.effort import MAX_EFFORT, PER_OP, effort
from mplang_analysis.event import SIDE_CHANNELS, Event, Receiver
from mplang_analysis.holdings import Holdings
from mplang_analysis.labels import EVERY, MAX_MULTIPLIED, PUBLIC, Label, union
from mplang_analysis.party_names import quoted, quoted_line
from mplang_analysis.scope import Scope
from mplang_analysis.side_channels import SideChannels
from mplang_analysis.sizes import with_sizes
from mplang_analysis.tally import Tally
from mplang_analysis.transfer import Fact
from mplang_analysis.type_size import characters_of
from mplang_analysis.words import What, When
from mplang_core import BaseType, DType, Form, Program, TensorType
from mplang_core.ext import AdmissionError, Operation

BOOL, SECONDS = TensorType(DType.BOOL), TensorType(DType.F64)


class Recorder:
    """Recorder of the disclosures of a program.

    Args:
        program: the program.
        held: the holdings of the parties.

    Attributes:
        events: what they learn of so far, in the order of the program.
    """

    def __init__(self, program: Program, held: Holdings) -> None:
        self.events: list[Event] = []
        self._program, self._held = program, held
        self._effort = 0
        self._durations = Tally(What.DURATION, SECONDS)
        self._failures = Tally(What.FAILURE, BOOL, (When.IF_AN_OP_FAILS,))
        self._changes = ChangeTally()

    def spend(self, labels: Iterable[Label], scope: Scope, kind: BaseType | None = None) -> None:
        """Count the effort of an op, once per turn of a loop, or of an event that tells a type."""
        self._effort += effort(labels, 0 if kind is None else characters_of(kind))
        if self._effort > MAX_EFFORT:
            line = f" at {quoted_line(str(scope.location))}" if scope.location else ""
            raise AdmissionError(
                f"what {quoted(self._program.name)} discloses is too complex to compute: its ops, "
                f"those of loops once for each turn that is looked at, have taken{line} more than "
                f"{MAX_EFFORT:,} steps, {PER_OP} and one more for each source of what flows "
                "in; use fewer ops, values that many inputs flow into, columns of tables that are "
                "moved, or loops in loops",
                code="A003",
            )

    def record(
        self,
        what: What,
        sender: int | None,
        receiver: Receiver,
        kind: BaseType,
        label: Label,
        scope: Scope,
        *when: str,
        sent: bool = False,
    ) -> None:
        """Record that somebody learns something.

        Args:
            what: how.
            sender: where it comes from, if it is one party.
            receiver: who learns it.
            kind: the type of what is learned.
            label: its label.
            scope: where.
            *when: how often, beside what the scope tells.
            sent: whether a message carries it.
        """
        seen, often = label | scope.control, (*scope.when, *when)
        self.spend([seen], scope, kind)
        event = Event(what, sender, receiver, kind, seen, scope.location, often, sent)
        self.events.append(event)
        if seen.changers and what not in SIDE_CHANNELS:
            self.note_changes(event, scope)

    def publish(self, op: Operation, ins: Sequence[Fact], scope: Scope) -> bool:
        """Record that parties tell each other plain operands, as an op takes them for public.

        Its protocol does not protect them: messages may depend on them, and whoever gets a share
        of a result may read them in it. They compare them, too, and fail where they differ.

        Args:
            op: an op that says how it is run.
            ins: its operands.
            scope: where.

        Returns:
            Whether there is private data in them.
        """
        found = False
        for value, fact in zip(op.inputs, ins, strict=True):
            kind, everything = op_traits.base_of(value.type), union(fact.values())
            if kind.form is not Form.PLAIN or not everything.sources:
                continue
            found = True
            for rank in scope.parties:
                self._failures.add(rank, everything.data() | scope.control, scope.location)
                if everything.sources - fact.get(rank, PUBLIC).sources:
                    self.record(What.REVEAL, None, rank, kind, everything, scope)
        return found

    def note_failures(self, op: Operation, seen: Fact, scope: Scope) -> None:
        """Record that an op may fail at parties, which discloses something of their data to all."""
        if not op_traits.may_fail(op):
            return
        for rank, label in seen.items():
            self._failures.add(rank, label.data() | scope.control, scope.location)

    def note_side_channels(
        self, op: Operation, found: SideChannels, ins: Sequence[Fact], scope: Scope
    ) -> None:
        """Record the operands whose values change how long an op takes, or how much it sends."""
        for rank in scope.parties:
            had = [fact.get(rank, PUBLIC) for fact in ins]
            again = found.multiplies and any(x.multiplied >= MAX_MULTIPLIED for x in had)
            label = union(had[i].data() for i in (range(len(had)) if again else found.duration))
            if label.sources:
                self._durations.add(rank, label | scope.control, scope.location)
        if found.sizes:
            kind = op_traits.base_of(op.inputs[found.sizes[0]].type)
            label = union(each.data() for i in found.sizes for each in ins[i].values())
            for rank in scope.parties:
                if label.news_to(rank):
                    self.record(What.SIZE, None, rank, kind, label, scope)

    def note_changes(self, event: Event, scope: Scope) -> None:
        """Record who can change, undetected, what somebody gets in plain by an event."""
        others = [rank for rank in self._program.mask if rank != event.receiver]
        for changer in sorted(event.label.changers) if event.type.form is Form.PLAIN else ():
            if changer.party in others or (changer.party == EVERY and others):
                self.spend([event.label], scope, event.type)
                self._changes.add(event, changer)

    def note_duration(self, label: Label, scope: Scope) -> None:
        """Record that a private predicate decides what parties run, or how often."""
        one = next(iter(scope.parties)) if len(scope.parties) == 1 else None
        self._durations.add(one, label.data() | scope.control, scope.location)

    def unlock(self) -> None:
        """Record ciphertexts of before that a party can decrypt by what it got in the program."""
        for rank in self._program.mask:
            for kind, label in self._held.unlocked(rank):
                self.events.append(Event(What.REVEAL, None, rank, kind, label, None))

    def all_events(self) -> list[Event]:
        """Return what they learn of, that included which is known at the end only."""
        found = list(with_sizes(self.events, self.read))
        for tally in (self._durations, self._failures, self._changes):
            found += tally.events()
        return [each._replace(label=each.label.settled()) for each in found]

    def read(self, event: Event) -> Label | None:
        """Return the label of what the receiver of an event reads; ``None`` if it cannot."""
        if event.what in SIDE_CHANNELS:
            return event.label
        if event.what is What.CHANGE:
            return None  # that is another row's
        if isinstance(event.receiver, int):
            return self._held.read(event.receiver, event.type, event.label)
        return event.label if event.type.form is Form.PLAIN else None
