"""Drawings as SVG, and as pages that load nothing."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mplang_core.analysis.colours import colour
from mplang_core.analysis.shapes import Edge, Group, Node
from mplang_core.analysis.table import PAGE

__all__ = ["page", "svg"]

LANE, ROW, BOX, TOP = 230, 62, 38, 40  # pixels: widths of a lane, heights of a row, a box, a head
AROUND = 150  # how far a long edge swings out, to pass the boxes between
SHOWN = 30  # characters of a label, per lane

STYLE = """
html, body { margin: 0; height: 100%; font: 13px system-ui, sans-serif; }
body { display: flex; flex-direction: column; }
header { padding: .5em 1em; border-bottom: 1px solid #ccc; }
main { flex: 1; overflow: hidden; cursor: grab; }
main svg { width: 100%; height: 100%; }
.dim { opacity: .12; }
.node:hover rect { stroke-width: 3; }
"""

SCRIPT = """
const svg = document.querySelector('main svg');
const view = svg.viewBox.baseVal;
svg.addEventListener('wheel', event => {
  event.preventDefault();
  const by = event.deltaY > 0 ? 1.15 : 1 / 1.15;
  const at = new DOMPoint(event.clientX, event.clientY)
    .matrixTransform(svg.getScreenCTM().inverse());
  view.x = at.x - (at.x - view.x) * by;
  view.y = at.y - (at.y - view.y) * by;
  view.width *= by;
  view.height *= by;
}, { passive: false });
svg.addEventListener('pointermove', event => {
  if (!event.buttons) return;
  const scale = svg.getScreenCTM().a;
  view.x -= event.movementX / scale;
  view.y -= event.movementY / scale;
});
const show = keep => {
  for (const part of svg.querySelectorAll('.node, .edge')) {
    part.classList.toggle('dim', !keep(part));
  }
};
document.querySelector('input').addEventListener('input', event => {
  const wanted = event.target.value.toLowerCase();
  show(part => part.textContent.toLowerCase().includes(wanted));
});
for (const node of svg.querySelectorAll('.node')) {
  node.addEventListener('click', () => {
    const id = node.dataset.id;
    const edges = [...svg.querySelectorAll('.edge')]
      .filter(edge => edge.dataset.from === id || edge.dataset.to === id);
    const near = new Set([id, ...edges.flatMap(edge => [edge.dataset.from, edge.dataset.to])]);
    show(part => edges.includes(part) || near.has(part.dataset.id));
  });
}
"""


def page(title: str, drawing: str) -> str:
    """Return a page of a drawing: wheel zooms, drag moves, click shows neighbours, search."""
    name = escape(title)
    body = (
        f"<header><b>{name}</b> &nbsp; "
        '<input type="search" placeholder="search ops, types, lines" size="30"> &nbsp; '
        "wheel: zoom, drag: move, click: neighbours, hover: types and line</header>"
        f"<main>{drawing}</main><script>{SCRIPT}</script>"
    )
    return PAGE.format(title=name, style=STYLE, body=body)


def svg(
    parties: Sequence[int],
    nodes: Sequence[Node],
    edges: Sequence[Edge],
    groups: Sequence[Group],
) -> str:
    """Draw lanes, groups, edges and nodes; all texts are escaped."""
    place = _Place(parties, nodes)
    width, height = LANE * len(parties), TOP + ROW * (1 + max([0, *(n.row for n in nodes)]))
    parts = [_lane(place.lanes[rank], rank, height) for rank in parties]
    parts += [_group(group, width) for group in groups]
    parts += [place.edge(edge) for edge in edges]
    parts += [place.node(node) for node in nodes]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="12">'
        + "".join(parts)
        + "</svg>"
    )


def _lane(lane: int, rank: int, height: int) -> str:
    x = lane * LANE
    return (
        f'<rect x="{x}" y="0" width="{LANE}" height="{height}" fill="{colour(rank)}" '
        f'opacity=".25"/><text x="{x + LANE // 2}" y="24" text-anchor="middle" '
        f'font-weight="bold">party {rank}</text>'
    )


def _group(group: Group, width: int) -> str:
    inset, y = 3 + 4 * group.depth, TOP + group.first * ROW - 8
    height = (group.last - group.first + 1) * ROW
    return (
        f'<rect x="{inset}" y="{y}" width="{width - 2 * inset}" height="{height}" fill="none" '
        'stroke="#888" stroke-dasharray="6 3" rx="6"/>'
        f'<text x="{inset + 6}" y="{y + 12}" fill="#555" font-size="10">'
        f"{escape(group.label)}</text>"
    )


class _Place:
    """Where nodes are."""

    def __init__(self, parties: Sequence[int], nodes: Sequence[Node]) -> None:
        self.lanes = {rank: i for i, rank in enumerate(parties)}
        self.nodes = {node.id: node for node in nodes}

    def box(self, node: Node) -> tuple[int, int, int]:
        """Return left, top and width."""
        lanes = [self.lanes[rank] for rank in node.parties]
        left, right = min(lanes) * LANE + 16, (max(lanes) + 1) * LANE - 16
        return left, TOP + node.row * ROW, right - left

    def node(self, node: Node) -> str:
        left, top, width = self.box(node)
        shown = _cut(node.label if node.kind != "move" else f"{node.label} {node.who()}", width)
        hover = [f"{node.label} {node.who()}", node.gives, node.line]
        fill = colour(node.parties[0]) if len(node.parties) == 1 else "#ffffff"
        middle = left + width // 2
        return (
            f'<g class="node" data-id="{node.id}">'
            f"<title>{escape(chr(10).join(filter(None, hover)))}</title>"
            f'<rect x="{left}" y="{top}" width="{width}" height="{BOX}" fill="{fill}" '
            f'stroke="{_stroke(node)}" rx="{4 if node.kind == "run" else 16}"/>'
            f'<text x="{middle}" y="{top + 16}" text-anchor="middle">{escape(shown)}</text>'
            f'<text x="{middle}" y="{top + 31}" text-anchor="middle" fill="#666" font-size="10">'
            f"{escape(_cut(node.line, width))}</text></g>"
        )

    def edge(self, edge: Edge) -> str:
        a, b = self.nodes[edge.source], self.nodes[edge.target]
        x1, y1 = self._port(a, edge), self.box(a)[1] + BOX
        x2, y2 = self._port(b, edge), self.box(b)[1]
        bend = max(12, (y2 - y1) // 2)
        aside = 0 if b.row - a.row < 2 else AROUND if a.id % 2 else -AROUND
        dash = "" if edge.form == "plain" else ' stroke-dasharray="4 3"'
        return (
            f'<g class="edge" data-from="{edge.source}" data-to="{edge.target}">'
            f"<title>{escape(edge.type)}</title>"
            f'<path d="M{x1} {y1} C{x1 + aside} {y1 + bend} '
            f'{x2 + aside} {y2 - bend} {x2} {y2}" fill="none" '
            f'stroke="#556"{dash}/></g>'
        )

    def _port(self, node: Node, edge: Edge) -> int:
        """Return where an edge touches a node: in the middle of the lanes that it is in."""
        lanes = [self.lanes[r] for r in edge.parties if r in node.parties] or [
            self.lanes[r] for r in node.parties
        ]
        return (min(lanes) + max(lanes) + 1) * LANE // 2


def _stroke(node: Node) -> str:
    return {"move": "#c0392b", "region": "#8e44ad"}.get(node.kind, "#556")


def _cut(text: str, width: int) -> str:
    most = SHOWN * max(1, width // (LANE - 32))
    return text if len(text) <= most else text[: most - 1] + "…"
