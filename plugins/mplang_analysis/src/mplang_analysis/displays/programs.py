"""Displays of programs and functions: by the user's lines, without the code in them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from mplang_analysis.graph_builder import view_of
from mplang_analysis.graph_parts import Node
from mplang_analysis.line_texts import texts_by_line
from mplang_analysis.party_names import PartyNames, names_of, quoted, quoted_line
from mplang_analysis.report import Paragraphs, Part, TextTable, sections
from mplang_core import CompiledFunction, Program, TracedFunction, verify

MORE = (
    "mp.analysis.disclosure tells who learns what, mp.analysis.graph draws it, and print writes "
    "every op of a program."
)


def show(program: Program) -> str:
    """Return a program as HTML: a row for each of the user's lines.

    Example:
        >>> import mplang_core as mp
        >>> "input 0" in show(mp.parse('program "p" on {0} (%0: f32[3]@{0}) { return %0 }'))
        True
    """
    return sections([*_parts(program, ()), Paragraphs([MORE])])


def show_traced(function: TracedFunction) -> str:
    """Return a traced function as HTML, with the text of its lines."""
    return sections([*_traced(function), Paragraphs([MORE])])


def show_compiled(function: CompiledFunction[object]) -> str:
    """Return a compiled function as HTML: what it was traced for."""
    traces = function.traces
    if not traces:
        return sections(
            [Paragraphs([f"{quoted(function.fn.__name__)} is traced when it gets its arguments."])]
        )
    parts = [part for each in traces for part in _traced(each)]
    return sections([*parts, Paragraphs([MORE])])


def _traced(function: TracedFunction) -> list[Part]:
    return _parts(function.program, names_of(function))


def _parts(program: Program, names: Sequence[str]) -> list[Part]:
    verify(program)
    sources = {line: text for line, text in texts_by_line(program).items() if text}
    view = view_of(program)
    party = PartyNames(view.parties, tuple(names))
    who = ", ".join(party.of(rank) for rank in view.parties)
    count = sum(1 for _ in program.graph.walk())
    title = f"Program {quoted(program.name)} of {who}: {count:,} ops, digest {program.digest[:12]}…"
    types = {edge.target: edge.type for edge in view.edges}
    lines: dict[str, list[Node]] = defaultdict(list)
    for node in view.nodes:
        if node.kind not in ("input", "output", "join"):
            lines[node.line].append(node)
    rows = [
        *(_end(node, node.gives, party) for node in view.nodes if node.kind == "input"),
        *(_row(line, nodes, party, sources) for line, nodes in lines.items()),
        *(_end(node, types[node.id], party) for node in view.nodes if node.kind == "output"),
    ]
    columns = ["line", "source", "what", "parties"]
    if not sources:
        columns, rows = [columns[0], *columns[2:]], [[row[0], *row[2:]] for row in rows]
    return [TextTable(title, columns, rows)]


def _end(node: Node, kind: str, party: PartyNames) -> list[str]:
    return ["", "", f"{node.label}: {kind}", _who([node], party)]


def _row(
    line: str, nodes: Sequence[Node], party: PartyNames, sources: Mapping[str, str]
) -> list[str]:
    counted = Counter(_what(node, party) for node in nodes)
    what = ", ".join(f"{text} ×{n}" if n > 1 else text for text, n in counted.items())
    shown = quoted_line(line) if line else ""
    return [shown, sources.get(line, ""), what, _who(nodes, party)]


def _who(nodes: Sequence[Node], party: PartyNames) -> str:
    ranks = {rank for node in nodes for rank in node.parties}
    return ", ".join(party.of(rank) for rank in sorted(ranks))


def _what(node: Node, party: PartyNames) -> str:
    ways = [f"{party.of(frm)} → {party.of(to)}" for to, frm in node.routing if to != frm]
    return ", ".join(ways) if node.kind == "move" and ways else node.label
