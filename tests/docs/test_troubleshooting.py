"""Messages that docs/troubleshooting.md explains are messages of the code."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
MESSAGES = [
    message
    for table in re.findall(r"^\| message \| cause \| do \|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    for message in re.findall(r"^\| `(.+?)` \|", table, re.MULTILINE)
]


def text_of(node: ast.AST) -> str:
    """Return a text of the code, with … for what is filled in."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(text_of(each) if isinstance(each, ast.Constant) else "…" for each in node.values)


@cache
def texts() -> str:
    """All texts of the packages' code, one a line."""
    found = []
    for folder in (ROOT / "mplang_core", *ROOT.glob("plugins/*/src")):
        for file in folder.rglob("*.py"):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            found += [
                text_of(node)
                for node in ast.walk(tree)
                if isinstance(node, ast.Constant | ast.JoinedStr)
            ]
    return "\n".join(found)


def test_messages_were_found():
    assert len(MESSAGES) > 40
    assert len(set(MESSAGES)) == len(MESSAGES)


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_one_of_the_code(message):
    assert message.strip(" …") in texts()
