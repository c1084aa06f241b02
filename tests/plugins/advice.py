"""Code in messages of the product: what an error or a warning says to write, or to run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_CALL = re.compile(r"\b(?:mp|np|jnp|jax|lax|ibis|pyarrow|pa|t|x|mplang_\w+)(?:\.\w+)+\(")
_COMMAND = re.compile(r"\bmplang ([a-z][a-z-]+)(?: ([a-z][a-z-]+))?")
_PLACE = "□"  # what is filled in
_TEXTS = (ast.Constant, ast.JoinedStr)


def messages() -> Iterator[tuple[str, str]]:
    """Yield the files of the product and the texts in each.

    What is filled in when the message is made is ``□``.
    """
    for folder in (ROOT / "mplang_core", *sorted((ROOT / "plugins").glob("*/src"))):
        for file in sorted(folder.rglob("*.py")):
            for text in _messages(ast.parse(file.read_text(encoding="utf-8"))):
                yield file.relative_to(ROOT).as_posix(), text


def calls_in(text: str) -> Iterator[str]:
    """Yield the calls in a text.

    Example:
        >>> list(calls_in("write mp.put('P0', f(x)), or np.int64(...)"))
        ["mp.put('P0', f(x))", 'np.int64(...)']
    """
    end = 0
    for match in _CALL.finditer(text):
        if match.start() >= end:
            end = _closing(text, match.end())
            if end:
                yield text[match.start() : end]


def commands_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the two words that follow ``mplang`` in a text; the second one may be empty.

    Example:
        >>> list(commands_in("run `mplang data check`"))
        [('data', 'check')]
    """
    yield from ((match[1], match[2] or "") for match in _COMMAND.finditer(text))


def _closing(text: str, at: int) -> int:
    """Return the end of a call whose parenthesis was opened, with the calls of its result."""
    depth = 1
    while at < len(text) and depth:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
        if not depth and text[at : at + 1] == "(":
            depth, at = 1, at + 1
    return 0 if depth else at


def _messages(tree: ast.Module) -> Iterator[str]:
    """Yield the strings of a module that are not documentation and no part of another string."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(
                str(each.value) if isinstance(each, ast.Constant) else _PLACE
                for each in node.values
            )
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, _TEXTS)):
            waiting += ast.iter_child_nodes(node)
