"""Drawings as Mermaid flowcharts."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core.analysis.colours import colour
from mplang_core.analysis.shapes import Edge, Node

__all__ = ["mermaid"]


def mermaid(parties: Sequence[int], nodes: Sequence[Node], edges: Sequence[Edge]) -> str:
    """Write a flowchart. What one party runs has its colour; protected values are dotted."""
    lines = ["flowchart TD"]
    for node in nodes:
        text = "<br>".join(map(escape, filter(None, [f"{node.label}  {node.who()}", node.line])))
        left, right = {"input": ("([", "])"), "output": ("([", "])"), "region": ("{{", "}}")}.get(
            node.kind, ("[", "]")
        )
        lines.append(f'  n{node.id}{left}"{text}"{right}')
    for edge in edges:
        arrow = "-->" if edge.form == "plain" else "-.->"
        lines.append(f'  n{edge.source} {arrow}|"{escape(edge.type)}"| n{edge.target}')
    for rank in parties:
        own = [f"n{node.id}" for node in nodes if node.parties == (rank,)]
        if own:
            lines.append(f"  classDef p{rank} fill:{colour(rank)}")
            lines.append(f"  class {','.join(own)} p{rank}")
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Write a text such that Mermaid takes nothing of it as its own or as HTML.

    Example:
        >>> escape('<b>"x"</b> #1')
        '#60;b#62;#34;x#34;#60;/b#62; #35;1'
    """
    return "".join(
        char if char.isalnum() or char in " .,:_-@/()×" else f"#{ord(char)};" for char in text
    )
