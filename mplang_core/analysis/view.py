"""A program as nodes and edges, for the eye."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from mplang_core.analysis.mermaid import mermaid
from mplang_core.analysis.page import page, svg
from mplang_core.analysis.shapes import Edge, Group, Node
from mplang_core.errors import ConfigError

__all__ = ["GraphView"]


@dataclass(frozen=True, slots=True)
class GraphView:
    """A program, or what one party sees of it.

    Attributes:
        name: the program's.
        parties: the lanes.
        nodes: in the order of the program.
        edges: how values go from node to node.
        groups: regions of control flow and functions.
    """

    name: str
    parties: tuple[int, ...]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    groups: tuple[Group, ...]

    def party(self, rank: int) -> GraphView:
        """Return what one party takes part in; of a move, its own side.

        Raises:
            ConfigError: there is no such party.
        """
        if rank not in self.parties:
            raise ConfigError(f"{self.name} has the parties {list(self.parties)}, not {rank!r}")
        mine = [node for node in self.nodes if rank in node.parties]
        rows = {row: i for i, row in enumerate(sorted({node.row for node in mine}))}
        nodes = [
            dataclasses.replace(node.side(rank), parties=(rank,), row=rows[node.row])
            for node in mine
        ]
        kept = {node.id for node in mine}
        edges = [
            edge
            for edge in self.edges
            if rank in edge.parties and edge.source in kept and edge.target in kept
        ]
        groups = [group.among(rows) for group in self.groups]
        return GraphView(
            f"{self.name}, as party {rank} sees it",
            (rank,),
            tuple(nodes),
            tuple(edges),
            tuple(group for group in groups if group is not None),
        )

    def text(self) -> str:
        """Return a line per node: its number, who, what of which nodes, what it gives, where."""
        feeds: dict[int, list[str]] = {node.id: [] for node in self.nodes}
        for edge in self.edges:
            feeds[edge.target].append(str(edge.source))
        lines = [self.name]
        for node in self.nodes:
            taken = ", ".join(feeds[node.id])
            parts = [
                f"{node.id:>4}",
                f"{node.who():<10}",
                "  " * node.depth + node.label + (f"({taken})" if taken else ""),
                f": {node.gives}" if node.gives else "",
                f"at {node.line}" if node.line else "",
            ]
            lines.append(" ".join(part for part in parts if part))
        return "\n".join(lines)

    def mermaid(self) -> str:
        """Return it as a flowchart of Mermaid, all names escaped."""
        return mermaid(self.parties, self.nodes, self.edges)

    def html(self) -> str:
        """Return a page of its own: zoom by the wheel, drag, search, hover. It loads nothing."""
        return page(self.name, svg(self.parties, self.nodes, self.edges, self.groups))

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        drawing = svg(self.parties, self.nodes, self.edges, self.groups)
        return f'<div style="max-height: 40em; overflow: auto">{drawing}</div>'
