"""Text of others, made safe for a terminal and for a log."""

from __future__ import annotations


def printable(text: str, keep: str = "") -> str:
    r"""Return text with its control characters escaped: they could rewrite what stands before.

    Line breaks, terminal escapes, and marks that turn the direction of writing are among them.

    Args:
        text: of an artifact, a program, a worker or a peer.
        keep: characters that stay, as ``"\n"`` in a message of several lines.

    Example:
        >>> print(printable("a\x1b[31m\rb"))
        a\x1b[31m\rb
    """
    if text.isprintable():
        return text
    return "".join(
        mark if mark.isprintable() or mark in keep else mark.encode("unicode_escape").decode()
        for mark in text
    )
