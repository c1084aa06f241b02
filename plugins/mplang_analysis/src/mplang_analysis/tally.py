"""Tally of what parties tell, or can change, by several ops: all of them in one row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mplang_analysis.event import SIDE_CHANNELS, Event, Receiver
from mplang_analysis.labels import PUBLIC, Label
from mplang_analysis.words import What
from mplang_core import BaseType
from mplang_core.ext import Location


@dataclass(slots=True)
class _Entry:
    """Sources that flow into the operands of a party's ops, and their lines."""

    label: Label = PUBLIC
    lines: dict[Location, None] = field(default_factory=dict)


@dataclass(slots=True)
class Tally:
    """Events by party, merged over the ops that cause them.

    Attributes:
        what: the kind of the events.
        type: the type of what is learned, or can be changed.
        when: how often, unless it is once.
        receiver: who learns it, or gets what can be changed.
        protocol: the protocol that does not notice a change.
    """

    what: What
    type: BaseType
    when: tuple[str, ...] = ()
    receiver: Receiver = "everyone"
    protocol: str = ""
    _entries: dict[int | None, _Entry] = field(default_factory=dict)

    def add(self, rank: int | None, label: Label, line: Location | None) -> None:
        """Add an op.

        Args:
            rank: the party that runs it; ``None`` if all do, in step.
            label: what decides on it; what is public tells nothing by a side channel.
            line: the user's line.
        """
        if not label.sources and self.what in SIDE_CHANNELS:
            return
        entry = self._entries.get(rank)
        if entry is None:
            entry = self._entries[rank] = _Entry()
        entry.label |= label
        if line is not None:
            entry.lines[line] = None

    def events(self) -> Iterator[Event]:
        """Yield the events, by party."""
        for rank, entry in sorted(self._entries.items(), key=_in_order):
            lines = tuple(entry.lines)
            first = lines[0] if lines else None
            who = self.what, rank, self.receiver, self.type
            yield Event(*who, entry.label, first, self.when, lines=lines, protocol=self.protocol)


def _in_order(item: tuple[int | None, _Entry]) -> int:
    return -1 if item[0] is None else item[0]
