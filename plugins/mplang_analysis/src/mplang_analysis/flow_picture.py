"""Picture of a graph view: what runs where and what moves, by the user's lines."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from mplang_analysis.diagram import Mark
from mplang_analysis.graph_parts import Edge, GraphParts, Node, Region
from mplang_analysis.party_names import PartyNames
from mplang_analysis.picture import Picture
from mplang_core.ext import printable

LEGEND = (
    "A dot: the party runs something. An arrow: a message, from the circle to the tips; dashed: "
    "protected, as a share is."
)

ENDS = {"input": "\0input", "output": "\0output"}
"""Kinds of nodes that are at no line, and what stands for a line of theirs."""


def flow_of(view: GraphParts) -> Picture:
    """Return the picture of a view; what a line does several times is drawn once, with a count."""
    marks = tuple(_Flow(view).marks())
    names = PartyNames(view.parties, view.names)
    lanes = tuple(map(names.of, view.parties))
    return Picture(f"{view.name}, line by line", lanes, marks, LEGEND, view.sources)


def often(regions: Mapping[int, Region], id: int | None) -> str:
    """Return how often a region runs, in words; empty for once.

    Args:
        regions: all regions by number.
        id: the number of the region; ``None`` for no region.
    """
    words: dict[str, None] = {}
    while id is not None:
        region = regions[id]
        words = {**({region.when: None} if region.when else {}), **words}
        id = region.parent
    return ", ".join(words)


class _Flow:
    """Collects the marks per line, in the order of the program."""

    def __init__(self, view: GraphParts) -> None:
        self.lane = {rank: i for i, rank in enumerate(view.parties)}
        self.regions = {region.id: region for region in view.regions}
        self.taken: dict[int, Edge] = {edge.target: edge for edge in view.edges}
        self.lines: dict[str, list[Node]] = defaultdict(list)
        for node in view.nodes:
            self.lines[ENDS.get(node.kind, node.line)].append(node)
        if "\0output" in self.lines:
            self.lines["\0output"] = self.lines.pop("\0output")  # the last ones

    def marks(self) -> Iterator[Mark]:
        for key, nodes in self.lines.items():
            line = "" if key in ENDS.values() else key
            counted = Counter(filter(None, (self.mark(line, node) for node in nodes)))
            waiting: list[Mark] = []  # what the same parties run one after the other is one mark
            for mark, count in counted.items():
                text = f"{mark.text} ×{count}" if count > 1 else mark.text
                each = Mark(line, mark.kind, mark.sender, mark.lanes, text, mark.label, mark.dashed)
                if waiting and (each.kind, each.lanes) != ("run", waiting[0].lanes):
                    yield _joined(waiting)
                    waiting = []
                if each.kind == "run":
                    waiting.append(each)
                else:
                    yield each
            if waiting:
                yield _joined(waiting)

    def mark(self, line: str, node: Node) -> Mark | None:
        """Return the mark of a node; none of what only names a value, and of a party elsewhere."""
        when = often(self.regions, node.region)
        suffix = f" ({when})" if when else ""
        known = {to: frm for to, frm in node.routing if to != frm}
        if node.kind == "move" and len(set(known.values())) == 1:
            sender = self.lane.get(next(iter(known.values())))
            lanes = tuple(self.lane[to] for to in known if to in self.lane)
            if sender is not None and lanes:
                edge = self.taken.get(node.id)
                form = edge.form if edge is not None else ""
                text = printable((edge.type if edge is not None else node.label) + suffix)
                return Mark(line, "send", sender, lanes, text, form, form not in ("plain", ""))
        lanes = tuple(self.lane[rank] for rank in node.parties if rank in self.lane)
        if node.kind == "join" or not lanes:
            return None
        label = node.kind if node.kind in ENDS else node.label
        return Mark(line, "run", None, lanes, printable(label + suffix))


def _joined(marks: Sequence[Mark]) -> Mark:
    first = marks[0]
    text = ", ".join(mark.text for mark in marks)
    return Mark(first.line, "run", None, first.lanes, text)
