"""The parts of a drawing, as plain data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["Edge", "Group", "Node"]


@dataclass(frozen=True, slots=True)
class Node:
    """An op among the parties, an input or an output.

    Attributes:
        id: its number, unique in the program.
        kind: what it is.
        label: its name; of a ``pcall`` the ops that it runs.
        gives: the types of its results.
        line: the user's line, or empty.
        parties: who takes part.
        routing: of a move, ``(to, from)`` per receiver.
        row: how far down it is drawn.
        depth: how many regions are around it.
    """

    id: int
    kind: Literal["input", "run", "move", "join", "region", "output"]
    label: str
    gives: str
    line: str
    parties: tuple[int, ...]
    routing: tuple[tuple[int, int], ...]
    row: int
    depth: int

    def who(self) -> str:
        """Return the parties, or of a move from whom to whom."""
        ways = ", ".join(f"{frm}->{to}" for to, frm in self.routing if to != frm)
        return ways or "{" + ", ".join(map(str, self.parties)) + "}"

    def side(self, rank: int) -> Node:
        """Return what a party does of a move; of others all of it."""
        sent = ", ".join(str(to) for to, frm in self.routing if frm == rank != to)
        got = ", ".join(str(frm) for to, frm in self.routing if to == rank != frm)
        does = [f"send to {sent}"] * bool(sent) + [f"receive from {got}"] * bool(got)
        return dataclasses.replace(self, label=", ".join(does)) if does else self


@dataclass(frozen=True, slots=True)
class Edge:
    """A value on its way from one node to another.

    Attributes:
        source: the node that gives it.
        target: the node that takes it.
        type: its type.
        form: ``plain``, ``share``, …
        parties: at whom.
    """

    source: int
    target: int
    type: str
    form: str
    parties: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A region.

    Attributes:
        label: the op and the region's name.
        first: its first row.
        last: its last row.
        depth: how many regions are around it.
    """

    label: str
    first: int
    last: int
    depth: int

    def among(self, rows: Mapping[int, int]) -> Group | None:
        """Return it where only some rows are left, which have new numbers."""
        left = [new for old, new in rows.items() if self.first <= old <= self.last]
        return dataclasses.replace(self, first=left[0], last=left[-1]) if left else None
