"""Threads may be the first to read a message together, in a worker that has just started.

msgspec crashes the process (one in ten, with eight threads) where two threads are the first to
read one ``Struct``; a decoder gets it ready when it is made. So decoders are made at import, and
what is read without one is of plain types, which need no getting ready.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for folder in ("mplang_core", "plugins", "examples")
    for path in (ROOT / folder).rglob("*.py")
    if "msgspec" in path.read_text(encoding="utf-8") and "tests" not in path.parts
)
PLAIN = {"Any", "bool", "bytes", "dict", "float", "int", "list", "str", "tuple"}


def unready(source):
    """Yield the lines that get a type ready when they run, rather than at import."""
    tree = ast.parse(source)
    late = {
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
    }
    for node in late:
        if not (isinstance(node, ast.Call) and ast.unparse(node.func).startswith("msgspec.")):
            continue
        kinds = [keyword.value for keyword in node.keywords if keyword.arg == "type"]
        names = {n.id for kind in kinds for n in ast.walk(kind) if isinstance(n, ast.Name)}
        if node.func.attr == "Decoder" or not names <= PLAIN:
            yield node.lineno


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_decoders_are_made_at_import(path):
    assert not list(unready(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "late",
    [
        "def read(data): return msgspec.msgpack.decode(data, type=Head)",
        "def read(data): return msgspec.json.decode(data, type=list[Head])",
        "def read(data): return msgspec.msgpack.Decoder(Head).decode(data)",
        "read = lambda data: msgspec.convert(data, type=Head)",
    ],
)
def test_one_that_is_made_later_is_found(late):
    assert list(unready(late)) == [1]
    assert not list(unready("decoder = msgspec.msgpack.Decoder(Head)"))
