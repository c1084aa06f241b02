"""Parts of a graph view: nodes, edges and regions."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Region:
    """A region of control flow, or of a function.

    Attributes:
        id: number of the region, unique in the program.
        label: the op and the region's name.
        parent: number of the region around it, if there is one.
        when: how often it runs: ``per iteration``, ``in a branch``, …; empty for once.
    """

    id: int
    label: str
    parent: int | None
    when: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """An op among the parties, an input or an output.

    Attributes:
        id: number of the node, unique in the program.
        kind: kind of the node.
        label: name of the op; of a ``pcall`` the ops that it runs.
        gives: types of its results.
        line: the user's line, or empty.
        parties: the parties that take part.
        routing: of a move, ``(to, from)`` per receiver.
        depth: number of regions around it.
        region: number of the innermost region around it, if there is one.
    """

    id: int
    kind: Literal["input", "run", "move", "join", "region", "output"]
    label: str
    gives: str
    line: str
    parties: tuple[int, ...]
    routing: tuple[tuple[int, int], ...] = ()
    depth: int = 0
    region: int | None = None

    def who(self) -> str:
        """Return the parties, or of a move from whom to whom."""
        ways = ", ".join(f"{frm}->{to}" for to, frm in self.routing if to != frm)
        return ways or "{" + ", ".join(map(str, self.parties)) + "}"

    def side(self, rank: int) -> Node:
        """Return one party's side of a move; other nodes as they are."""
        sent = ", ".join(str(to) for to, frm in self.routing if frm == rank != to)
        got = ", ".join(str(frm) for to, frm in self.routing if to == rank != frm)
        does = [f"send to {sent}"] * bool(sent) + [f"receive from {got}"] * bool(got)
        return dataclasses.replace(self, label=", ".join(does)) if does else self


@dataclass(frozen=True, slots=True)
class Edge:
    """A value from one node to another.

    Attributes:
        source: number of the node that gives it.
        target: number of the node that takes it.
        type: its type.
        form: ``plain``, ``share``, …
        parties: its holders.
    """

    source: int
    target: int
    type: str
    form: str
    parties: tuple[int, ...]


@dataclass(frozen=True, slots=True, repr=False)
class GraphParts:
    """Parts of a graph view.

    Attributes:
        name: name of the program.
        parties: its parties.
        nodes: in the order of the program.
        edges: the values between nodes.
        regions: the regions of control flow and functions.
        sources: the texts of lines, as far as they are known.
        names: what the parties are called, in their order; empty for ``party 0``, ….
    """

    name: str
    parties: tuple[int, ...]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    regions: tuple[Region, ...]
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)
    names: tuple[str, ...] = field(default=(), compare=False)
