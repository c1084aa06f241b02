"""A page of an error, taken apart: what it sets up, the wrong program, the message, the right."""

from __future__ import annotations

import re
import shlex
import warnings
from dataclasses import dataclass
from typing import Any

from mplang_cli.explain import ErrorPage

from mplang_core.errors import MPLangError
from mplang_core.ext import SimpHost

PARTS = ("Wrong", "Right")
_BLOCK = re.compile(r"^```(python|sh|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """Block of a page: its language, its text, and how many lines stand before it."""

    language: str
    text: str
    before: int


def parts_of(page: ErrorPage) -> dict[str, list[Block]]:
    """Return the blocks of a page by the heading that they stand under; ``""`` before the first."""
    headings = [("", 0), *((found[1], found.start()) for found in _HEADING.finditer(page.text))]
    parts: dict[str, list[Block]] = {}
    for i, (name, begin) in enumerate(headings):
        end = headings[i + 1][1] if i + 1 < len(headings) else len(page.text)
        parts[name] = [
            Block(found[1], found[2], page.text.count("\n", 0, found.start()) + 1)
            for found in _BLOCK.finditer(page.text, begin, end)
        ]
    return parts


def run(block: Block, page: ErrorPage, names: dict[str, Any]) -> None:
    """Run a block of Python, or commands of a shell: those of ``mplang`` alone, in this process."""
    if block.language == "python":
        code = "\n" * block.before + block.text
        exec(compile(code, f"{page.code}.md", "exec"), names)
    elif block.language == "sh":
        from mplang_cli.cli import app

        for line in block.text.splitlines():
            command, *words = shlex.split(line)
            assert command == "mplang", line
            app(words, standalone_mode=False)


def told_by(blocks: list[Block], page: ErrorPage, names: dict[str, Any]) -> tuple[str, str]:
    """Return the code and the message of what a wrong program raises, or warns of."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        try:
            for block in blocks:
                run(block, page, names)
        except MPLangError as error:
            return error.code, str(error)
    told = [each for each in shown if hasattr(each.category, "code")]
    assert told, f"{page.code}.md: nothing is wrong with its wrong program"
    message, _, _ = str(told[0].message).partition("\nmplang explain")
    return told[0].category.code, message


def fits(message: str, shown: str) -> bool:
    """Return whether a message is the one that a page shows, where ``…`` stands for any text."""
    words = (re.escape(" ".join(part.split())) for part in shown.split("…"))
    return re.fullmatch(".*".join(words), " ".join(message.split())) is not None


def closed(names: dict[str, Any]) -> None:
    """Close the hosts and clusters that a page has opened."""
    for value in names.values():
        if isinstance(value, SimpHost) or type(value).__name__ == "LocalCluster":
            value.close()
