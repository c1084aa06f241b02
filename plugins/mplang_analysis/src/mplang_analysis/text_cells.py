"""Text cells: widths of texts in columns of a monospaced font, wrapping and cutting by them."""

from __future__ import annotations

import unicodedata


def width(text: str) -> int:
    """Return the columns that a text takes: two for a wide character, none for a combining one.

    Example:
        >>> width("bank"), width("銀行"), width("é")
        (4, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, most: int) -> str:
    """Return the end of a text, at most some columns wide.

    Example:
        >>> cut("a_long_name.py:92", 10)
        '…ame.py:92'
    """
    return cut_end(text[::-1], most)[::-1]


def cut_end(text: str, most: int) -> str:
    """Return the begin of a text, at most some columns wide.

    Example:
        >>> cut_end("return mp.reveal(loss)", 10)
        'return mp…'
    """
    if width(text) <= most:
        return text
    kept = ""
    for char in text:
        if width(kept) + _width(char) >= most:
            break
        kept += char
    return kept + "…"


def wrap_most(text: str, columns: int, most: int) -> list[str]:
    """Return the lines of a text as :func:`wrap` does, but at most some, the last one cut.

    Example:
        >>> wrap_most("one two three four", 9, 1)
        ['one two…']
    """
    lines = wrap(text, columns) if text else []
    if len(lines) <= most:
        return lines
    last = lines[most - 1]
    return [*lines[: most - 1], cut_end(f"{last}…", columns)]


def pad(text: str, columns: int) -> str:
    """Return a text with blanks up to a width."""
    return text + " " * (columns - width(text))


def wrap(text: str, columns: int) -> list[str]:
    """Return the lines of a text that are at most some columns wide; long words are broken.

    Example:
        >>> wrap("one two incomprehensible", 8)
        ['one two', 'incompre', 'hensible']
    """
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and width(lines[-1]) + 1 + width(word) <= columns:
            lines[-1] += " " + word
            continue
        if lines[-1]:
            lines.append("")
        for char in word:
            if width(lines[-1]) + _width(char) > columns:
                lines.append("")
            lines[-1] += char
    return lines
