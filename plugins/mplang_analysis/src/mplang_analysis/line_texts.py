"""Texts of the source lines of a program, as its coordinator has written them.

They say nothing of what runs, which the digest of the program decides: a coordinator may tell any
text. So they are shown as what a stranger wrote, and an approval holds for those that were shown.
"""

from __future__ import annotations

import hashlib
import json
import linecache
from collections.abc import Sequence
from typing import NamedTuple

from mplang_analysis.prompt_text import shortened
from mplang_core import Program
from mplang_core.ext import Location, printable

MAX_TEXT = 200
"""Characters of a line or the name of a function that are told; of more the first ones, and …."""

QUOTES = r"\u201c", r"\u201d"
"""What is shown in place of the quotes around a text."""


class LineText(NamedTuple):
    """Text of a source line.

    Attributes:
        function: the qualified name of the function that the line is in; empty if not known.
        text: the text of the line, without indentation; empty if not known.
    """

    function: str = ""
    text: str = ""


def line_text(line: Location | None) -> LineText:
    """Return what stands in a source line: escaped and shortened, so that it fits in a row.

    Args:
        line: the line. A file is read only for a line that ran in this process: what a stranger
            tells of a file here is none.

    Example:
        >>> line_text(Location("demo.py", 3, "slope.<locals>.fit", "    return x * y"))
        LineText(function='slope.fit', text='return x * y')
    """
    if line is None:
        return LineText()
    text = line.text
    if text is None:
        linecache.checkcache(line.file)
        text = linecache.getline(line.file, line.line)
    return LineText(_cut(line.function.replace(".<locals>", "")), _cut(text))


def line_texts(program: Program) -> Sequence[LineText]:
    """Return what stands in the line of each op, in the order of a walk over the program."""
    known: dict[Location | None, LineText] = {None: LineText()}
    texts = []
    for op in program.graph.walk():
        line = op.location
        if line not in known:
            known[line] = line_text(line)
        texts.append(known[line])
    return texts


def texts_by_line(program: Program) -> dict[str, str]:
    """Return the text of each line by its name; none where lines of one name differ.

    Args:
        program: the program.
    """
    lines = {op.location for op in program.graph.walk() if op.location is not None}
    known: dict[str, set[str]] = {}
    for line in lines:
        known.setdefault(str(line), set()).add(line_text(line).text)
    return {line: next(iter(texts)) for line, texts in known.items() if len(texts) == 1}


def in_curly_quotes(text: str) -> str:
    """Return the text of a line in quotes that hardly any line has, so that it stays readable.

    Example:
        >>> in_curly_quotes('mp.put("P0", x)')
        '“mp.put("P0", x)”'
    """
    return f"“{printable(text).replace('“', QUOTES[0]).replace('”', QUOTES[1])}”"


def texts_digest(program: Program) -> str:
    """Return the SHA-256 of functions and texts of the lines of a program, in hex.

    Names of files, cells and numbers of lines are not in it, so it stays if others change.

    Example:
        >>> import mplang_core as mp
        >>> program = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(1)), lambda: 1).program
        >>> len(texts_digest(program))
        64
    """
    ops = program.graph.walk()
    lines = [[op.opcode, *each] for op, each in zip(ops, line_texts(program), strict=True)]
    return hashlib.sha256(json.dumps(lines).encode()).hexdigest()


def _cut(text: str) -> str:
    return shortened(printable(text.strip()), MAX_TEXT)
