"""Tally of what everyone learns of a party by a side channel of its ops, all ops in one row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mplang_analysis.event import Event, What
from mplang_analysis.labels import PUBLIC, Label
from mplang_core import BaseType
from mplang_core.ext import Location


@dataclass(slots=True)
class _Entry:
    """What flows into the operands of a party's ops, and their lines."""

    label: Label = PUBLIC
    lines: dict[Location, None] = field(default_factory=dict)


@dataclass(slots=True)
class Tally:
    """One event per party that everyone learns of, made of all ops that tell it.

    Attributes:
        what: the kind of the events.
        type: the type of what is learned.
        when: how often, unless it is once.
    """

    what: What
    type: BaseType
    when: tuple[str, ...] = ()
    _entries: dict[int | None, _Entry] = field(default_factory=dict)

    def add(self, rank: int | None, label: Label, line: Location | None) -> None:
        """Add an op.

        Args:
            rank: the party that runs it; ``None`` if all do, in step.
            label: what decides on it; nothing is added if that is public.
            line: the user's line.
        """
        if not label.sources:
            return
        entry = self._entries.setdefault(rank, _Entry())
        entry.label |= label
        if line is not None:
            entry.lines[line] = None

    def events(self) -> Iterator[Event]:
        """Yield the events, by party."""
        for rank, entry in sorted(self._entries.items(), key=_in_order):
            lines = tuple(entry.lines)
            first = lines[0] if lines else None
            yield Event(
                self.what, rank, "everyone", self.type, entry.label, first, self.when, lines=lines
            )


def _in_order(item: tuple[int | None, _Entry]) -> int:
    return -1 if item[0] is None else item[0]
