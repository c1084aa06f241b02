"""HTML text: escaped, and isolated from the direction of the text around it."""

from __future__ import annotations

import html


def isolated(text: str) -> str:
    """Return a text as an element of HTML that orders no other text.

    Example:
        >>> isolated("<b>")
        '<bdi>&lt;b&gt;</bdi>'
    """
    return f"<bdi>{html.escape(text)}</bdi>"
