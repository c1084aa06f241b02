"""SQL text as users write it: placeholders of tables, lines of errors. Imports no DuckDB."""

from __future__ import annotations

import re
from collections.abc import Mapping

MAX_LINE = 80  # characters that a message shows of a line

_TOKEN = re.compile(
    r"""
    [eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | `[^`]*`
    | --[^\n]* | /\*.*?\*/ | (?P<mark>\$\w*\$).*?(?P=mark)
    | \{(?P<name>[A-Za-z_]\w*)\}
    """,
    re.VERBOSE | re.DOTALL,
)
"""What is passed over (texts, quoted names, comments), and a placeholder."""

_QUOTED_NAME = re.compile(r'"([^"]+)"')
_LINE = re.compile(r"line (\d+): ")


def filled(text: str, names: Mapping[str, str]) -> str:
    """Return SQL text with names of tables in place of their placeholders.

    Args:
        text: SQL, in which ``{people}`` stands for the table of that name, but within texts,
            quoted names and comments.
        names: the names of the tables, each of which the text uses, as SQL writes them.

    Raises:
        ValueError: a placeholder names no table, or a table has no placeholder.

    Example:
        >>> print(filled("SELECT '{people}' FROM {people}", {"people": '"people"'}))
        SELECT '{people}' FROM "people"
    """
    used = set()

    def name(match: re.Match[str]) -> str:
        key = match["name"]
        if key is None:
            return match[0]
        if key not in names:
            raise ValueError(
                f"{line_at(text, match.start())}: no table is called {key!r}; pass it by keyword, "
                f"as {key}=mp.dataset(…); tables are {', '.join(names) or 'none'}"
            )
        used.add(key)
        return names[key]

    made = _TOKEN.sub(name, text)
    if unused := [each for each in names if each not in used]:
        raise ValueError(
            f"the text does not read the table {unused[0]!r}; it is written as {{{unused[0]}}}, "
            "without quotes, in a text that is not an f-string"
        )
    return made


def located(text: str, reason: str) -> str:
    r"""Return the reason of a refusal behind the line of the text that it is about, if it tells.

    Args:
        text: SQL.
        reason: DuckDB's reason; the first name in double quotes that the text has tells the line.

    Example:
        >>> located("SELECT name\nFROM people\nWHERE agee > 17", 'no column "agee"')
        'line 3 (WHERE agee > 17): no column "agee"'
    """
    if match := _LINE.search(reason):
        return f"{shown(text, int(match[1]))}: {reason.replace(match[0], '', 1)}"
    for name in _QUOTED_NAME.findall(reason):
        match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
        if match is not None:
            return f"{line_at(text, match.start())}: {reason}"
    return reason


def line_at(text: str, position: int) -> str:
    """Return the line of a position, for a message."""
    return shown(text, text.count("\n", 0, position) + 1)


def shown(text: str, number: int) -> str:
    """Return a line of a text with its number, for a message."""
    lines = text.split("\n")
    line = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return f"line {number} ({line if len(line) <= MAX_LINE else f'{line[:MAX_LINE]}…'})"
