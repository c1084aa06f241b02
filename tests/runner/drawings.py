"""Drawings as SVG: their elements, and that nothing in them overlaps or is cut off."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from typing import Any

SVG = "{http://www.w3.org/2000/svg}"


def roots(drawing: Any) -> list[ET.Element]:
    """Return a drawing as a document, and as the two elements that a page chooses from."""
    inline = ET.fromstring(f'<p xmlns="{SVG[1:-1]}">{drawing.html()}</p>')
    return [ET.fromstring(drawing.svg().encode()), *inline]


def assert_drawn_apart(root: ET.Element) -> None:
    """Assert that all texts and boxes are inside, and that no text covers another."""
    _, _, right, bottom = map(float, root.get("viewBox", "").split())
    boxes = []
    for text in root.findall(f"{SVG}text"):
        x, y, size = (float(text.get(name, "")) for name in ("x", "y", "textLength"))
        boxes.append((x, y - 9, x + size, y + 2))
    for left, top, far, low in boxes:
        assert 0 <= left < far <= right
        assert 0 <= top < low <= bottom
    for a, b in itertools.combinations(boxes, 2):
        assert not (a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3])
    for rect in root.findall(f"{SVG}rect"):
        assert float(rect.get("x", "")) + float(rect.get("width", "")) <= right
