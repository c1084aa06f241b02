"""Escaping of untrusted text for terminals and logs."""

from __future__ import annotations


def printable(text: str, keep: str = "") -> str:
    r"""Return text with all non-printable characters escaped.

    These include line breaks, terminal escapes and bidirectional controls, which could forge
    or hide other output.

    Args:
        text: text from an artifact, a program, a worker or a peer.
        keep: characters to leave as they are, such as ``"\n"`` in a message of several lines.

    Returns:
        The escaped text.

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
