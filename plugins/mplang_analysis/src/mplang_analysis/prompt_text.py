"""Text of reports at a prompt: short, and in color where a terminal shows it."""

from __future__ import annotations

import sys
from importlib.util import find_spec

MOST = 3_800
"""Bytes of a text that a prompt shows."""

MOST_OF_LINE = 400
"""Characters of a line that a prompt shows."""


def shortened(text: str, most: int) -> str:
    """Return a text, or the first characters of a longer one.

    Args:
        text: the text.
        most: how many characters it may have.

    Example:
        >>> shortened("a long text", 7)
        'a long…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def clipped(text: str, how: str) -> str:
    r"""Return the first lines of a text, and how many more there are.

    Args:
        text: the text.
        how: how to see all of it.

    Example:
        >>> print(clipped("\n".join(["a line"] * 1000), "print(x) shows all")[-43:])
        a line
        … 458 more lines; print(x) shows all
    """
    shown, size, lines = [], 0, text.splitlines()
    for line in lines:
        short = shortened(line, MOST_OF_LINE)
        size += len(short.encode(errors="replace")) + 1
        if size > MOST:
            break
        shown.append(short)
    rest = lines[len(shown) :]
    if not rest:
        return "\n".join(shown)
    red = sum(line.startswith("! ") for line in rest)
    marked = f", {red} of them marked !" if red else ""
    return "\n".join([*shown, f"… {len(rest):,} more lines{marked}; {how}"])


def colored(renderable: object) -> str:
    """Return what rich makes of an object for this terminal; empty where there is none, or no rich.

    Args:
        renderable: an object that rich renders.
    """
    if not sys.stdout.isatty() or find_spec("rich") is None:
        return ""
    from rich.console import Console

    console = Console(file=sys.stdout)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get().rstrip("\n")
