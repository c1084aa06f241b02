"""Changes: plain results of ops that a party can change, and nobody notices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from mplang_analysis import op_traits
from mplang_analysis.event import Event, Receiver
from mplang_analysis.labels import EVERY, Changer, Label
from mplang_analysis.tally import Tally
from mplang_analysis.words import What, When
from mplang_core import BaseType, Mask
from mplang_core.ext import Operation, interface_of


class Changes(NamedTuple):
    """Members that can change an op's plain results, unnoticed, by deviating from its protocol.

    A party may always lie about its own data, and send on something else than it got; that is
    none.

    Attributes:
        by: the parties that can, of which the receiver does not count; ``None`` for every party.
        protocol: the protocol, which is secure against semi-honest parties only; empty if it has
            no name.
    """

    by: Mask | None = None
    protocol: str = ""

    @property
    def label(self) -> Label:
        """The label of what they can change."""
        by = [EVERY] if self.by is None else self.by
        return Label(changers=frozenset(Changer(party, self.protocol) for party in by))


@runtime_checkable
class HasChanges(Protocol):
    """Interface of an op that says who can change its plain results unnoticed."""

    def changes(self, op: Operation) -> Changes:
        """Return who can change them."""


@dataclass(frozen=True, slots=True)
class ChangeRule:
    """A function as the interface :class:`HasChanges`, for ``OpDef(interfaces=[…])``.

    Attributes:
        rule: ``rule(op)``; ``Changes(by=Mask())`` if the op fails instead of giving a result that
            somebody else has changed.
    """

    rule: Callable[[Operation], Changes]

    def changes(self, op: Operation) -> Changes:
        """Return what the function does."""
        return self.rule(op)


ANYONE, NOBODY = Changes(), Changes(Mask())


def changes_of(op: Operation, *, together: bool = False) -> Changes:
    """Return who can change the plain results of an op unnoticed.

    Of an op that declares nothing everyone may, if it takes shares or parties run it together.

    Args:
        op: the op.
        together: whether parties run it together, and it does not tell its messages.
    """
    declared = interface_of(op, HasChanges)
    if declared is not None:
        return declared.changes(op)
    return ANYONE if together or op_traits.takes_shares(op) else NOBODY


@dataclass(slots=True)
class ChangeTally:
    """Tally of what can be changed: one event per party, receiver, type and protocol."""

    _tallies: dict[tuple[Receiver, BaseType, str], Tally] = field(default_factory=dict)

    def add(self, event: Event, changer: Changer) -> None:
        """Add who can change what somebody gets by an event."""
        key = event.receiver, event.type, changer.protocol
        found = self._tallies.get(key)
        if found is None:
            of = event.receiver, changer.protocol
            found = self._tallies[key] = Tally(What.CHANGE, event.type, (When.IF_IT_DEVIATES,), *of)
        party = None if changer.party == EVERY else changer.party
        found.add(party, event.label.data(), event.location)

    def events(self) -> Iterator[Event]:
        """Yield the events, by receiver, type and protocol in the order of the program."""
        for tally in self._tallies.values():
            yield from tally.events()
