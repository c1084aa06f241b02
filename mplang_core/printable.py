"""Escaping of untrusted text for terminals and logs."""

from __future__ import annotations

from unicodedata import bidirectional, category

_UNSAFE = {"R", "AL", "AN", "Mn", "Me", *"\u115f\u1160\u2800\u3164\uffa0\ufffc\U0001d159"}
"""Classes that reorder or combine with their neighbours, and signs that are blank."""


def printable(text: str, keep: str = "") -> str:
    r"""Return text with all characters escaped that are not seen, or change what is seen.

    These are line breaks, terminal escapes, bidirectional controls and letters that are written
    from right to left, combining marks, blanks other than the space, and what has no character:
    they could forge, hide or reorder other output. What is escaped stays so a second time.

    Args:
        text: text from an artifact, a program, a worker or a peer.
        keep: characters to leave as they are, such as ``"\n"`` in a message of several lines.

    Returns:
        The escaped text.

    Example:
        >>> print(printable("a\x1b[31m\rb"))
        a\x1b[31m\rb
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        mark if mark in keep or _is_plain(mark) else mark.encode("unicode_escape").decode()
        for mark in text
    )


def _is_plain(mark: str) -> bool:
    return mark.isprintable() and {mark, bidirectional(mark), category(mark)}.isdisjoint(_UNSAFE)
