"""Codes of errors in the sources: which classes and which raise sites have which."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packages import ROOT


@dataclass(frozen=True)
class Site:
    """Place of the sources that makes an error, its class, and its code."""

    place: str
    error: str
    code: str


def codes_of_classes() -> dict[str, str]:
    """Return the codes of the classes of errors by name; those without one have that of a base."""
    found: dict[str, str] = {"MPLangError": ""}
    defined = [each for tree in map(_tree, sources()) for each in ast.walk(tree)]
    defined = [each for each in defined if isinstance(each, ast.ClassDef)]
    while new := [
        each
        for each in defined
        if each.name not in found and any(_name(base) in found for base in each.bases)
    ]:
        for each in new:
            own = [
                str(ast.literal_eval(word.value)) for word in each.keywords if word.arg == "code"
            ]
            bases = (found[_name(base)] for base in each.bases if _name(base) in found)
            found[each.name] = next(iter([*own, *bases]))
    return found


def sources() -> Iterator[Path]:
    """Yield the files of the core and of the packages that stand beside it."""
    yield from sorted((ROOT / "mplang_core").rglob("*.py"))
    yield from sorted(ROOT.glob("plugins/*/src/**/*.py"))


def sites() -> Iterator[Site]:
    """Yield the places that make an error of the tree."""
    codes = codes_of_classes()
    for file in sources():
        for node in ast.walk(_tree(file)):
            if isinstance(node, ast.Call) and (name := _name(node.func)) in codes:
                named = [each.value for each in node.keywords if each.arg == "code"]
                code = (
                    named[0].value if named and isinstance(named[0], ast.Constant) else codes[name]
                )
                yield Site(f"{file.relative_to(ROOT)}:{node.lineno}", name, str(code))


@functools.cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
