"""Graph view: a program as nodes and edges, written as text or as a Mermaid flowchart."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from mplang_analysis.flow_picture import flow_of
from mplang_analysis.graph_parts import GraphParts
from mplang_analysis.party_names import PartyNames, quoted_line
from mplang_analysis.picture import Picture
from mplang_analysis.prompt_text import clipped
from mplang_analysis.report import ALL
from mplang_analysis.svg import COLORS
from mplang_core.ext import ConfigError, printable

SHAPES = {"input": ("([", "])"), "output": ("([", "])"), "region": ("{{", "}}")}
"""Mermaid's brackets by kind of node; others are rectangles."""


@dataclass(frozen=True, slots=True, repr=False)
class GraphView(GraphParts):
    """A program, or the part of it that one party sees.

    Terminals print it as text; notebooks draw it by the user's lines, as :meth:`picture` does.
    """

    def party(self, rank: int) -> GraphView:
        """Return what one party takes part in; of a move, its own side.

        Raises:
            ConfigError: there is no such party.
        """
        if rank not in self.parties:
            raise ConfigError(
                f"{self.name} has the parties {list(self.parties)}, not {rank!r}", code="C006"
            )
        mine = [node for node in self.nodes if rank in node.parties]
        kept = {node.id for node in mine}
        return GraphView(
            f"{self.name}, as party {rank} sees it",
            (rank,),
            tuple(dataclasses.replace(node.side(rank), parties=(rank,)) for node in mine),
            tuple(
                edge
                for edge in self.edges
                if rank in edge.parties and edge.source in kept and edge.target in kept
            ),
            self.regions,
            self.sources,
            (PartyNames(self.parties, self.names).of(rank),),
        )

    def text(self) -> str:
        """Return a line per node: number, parties, op and operands, types, line."""
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
                f"at {quoted_line(node.line)}" if node.line else "",
            ]
            lines.append(" ".join(part for part in parts if part))
        return "\n".join(map(printable, lines))

    def picture(self) -> Picture:
        """Return what runs where and what moves, drawn by the lines of the program."""
        return flow_of(self)

    def mermaid(self) -> str:
        """Return a flowchart of Mermaid for viewers that draw it, all names escaped.

        A subgraph is a region. What one party runs has its color; protected values are dotted.
        """
        lines = ["flowchart TD", *self._members(None, "  ")]
        for edge in self.edges:
            arrow = "-->" if edge.form == "plain" else "-.->"
            lines.append(f'  n{edge.source} {arrow}|"{_escape(edge.type)}"| n{edge.target}')
        for rank in self.parties:
            own = [f"n{node.id}" for node in self.nodes if node.parties == (rank,)]
            if own:
                lines.append(f"  classDef p{rank} fill:{COLORS[rank % len(COLORS)]}")
                lines.append(f"  class {','.join(own)} p{rank}")
        return "\n".join(lines) + "\n"

    def _members(self, region: int | None, indent: str) -> Iterator[str]:
        for node in self.nodes:
            if node.region == region:
                what = [
                    f"{node.label}  {node.who()}",
                    *([quoted_line(node.line)] if node.line else []),
                ]
                left, right = SHAPES.get(node.kind, ("[", "]"))
                yield f'{indent}n{node.id}{left}"{"<br>".join(map(_escape, what))}"{right}'
        for each in self.regions:
            members = list(self._members(each.id, indent + "  ")) if each.parent == region else []
            if members:
                yield f'{indent}subgraph r{each.id}["{_escape(each.label)}"]'
                yield from members
                yield f"{indent}end"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return clipped(self.text(), ALL)

    def _repr_html_(self) -> str:
        return self.picture()._repr_html_()


def _escape(text: str) -> str:
    """Escape what Mermaid would take as syntax or HTML, and what is not seen.

    Example:
        >>> _escape('<b>"x"</b> #1')
        '#60;b#62;#34;x#34;#60;/b#62; #35;1'
    """
    return "".join(
        char if char.isalnum() or char in " .,:_-@/()×" else f"#{ord(char)};"
        for char in printable(text)
    )
