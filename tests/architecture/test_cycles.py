"""Import cycles within each package; imports in functions and for type checkers count."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import mplang_core

ROOT = Path(mplang_core.__file__).parent
PACKAGES = [
    ROOT,
    *sorted(file.parent for file in ROOT.parent.glob("plugins/*/src/*/__init__.py")),
    *sorted(file.parent for file in ROOT.parent.glob("examples/*/src/*/__init__.py")),
]

DYNAMIC = {
    "mplang_core": "what other packages add to it is found when it is asked for",
    "mplang_core.deprecation": "what a name is called now may be anywhere",
}
"""Modules that import by name at run time, below themselves, each with its reason."""


@pytest.mark.parametrize("root", PACKAGES, ids=lambda root: root.name)
def test_no_modules_import_each_other(root):
    graph = imports_below(root)
    assert graph
    assert not cycle_in(graph)


def test_modules_are_imported_by_statements():
    trees = {name: ast.parse(file.read_text()) for name, file in modules_below(ROOT).items()}
    assert {name for name, tree in trees.items() if imports_by_name(tree)} == set(DYNAMIC)


@pytest.mark.parametrize(
    "source",
    [
        "import toy.low",
        "from toy import low",
        "from toy.low import name",
        "def late():\n    from toy.low import name",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from toy.low import Name",
    ],
)
def test_each_form_of_import_counts(tmp_path, source):
    root = tmp_path / "toy"
    root.mkdir()
    for name, text in {"__init__": "", "low": "import toy.middle", "middle": source}.items():
        (root / f"{name}.py").write_text(text)
    assert set(cycle_in(imports_below(root))) == {"toy.low", "toy.middle"}


@pytest.mark.parametrize(
    "source",
    [
        "def __getattr__(name): ...",
        "if not TYPE_CHECKING:\n    def __getattr__(name): ...",
        "import importlib\nimportlib.import_module('toy')",
        "from importlib import import_module as load",
        "__import__('toy')",
    ],
)
def test_each_form_of_import_by_name_counts(source):
    assert imports_by_name(ast.parse(source))


def modules_below(root: Path) -> dict[str, Path]:
    """Return the files of a package by the names of their modules."""
    files = {file.relative_to(root.parent).with_suffix(""): file for file in root.rglob("*.py")}
    return {".".join(path.parts).removesuffix(".__init__"): files[path] for path in sorted(files)}


def imports_below(root: Path) -> dict[str, set[str]]:
    """Return what each module of a package imports of that package, wherever it does so."""
    modules = modules_below(root)
    found = {}
    for name, file in modules.items():
        nodes = list(ast.walk(ast.parse(file.read_text())))
        names = {x.name for node in nodes if isinstance(node, ast.Import) for x in node.names}
        for node in (node for node in nodes if isinstance(node, ast.ImportFrom)):
            assert not node.level, f"{name}:{node.lineno}: a relative import"
            full = (f"{node.module}.{x.name}" for x in node.names)
            names |= {each if each in modules else node.module for each in full}
        found[name] = (names & set(modules)) - {name}
    return found


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """Return a cycle of a graph, each node before one that it points at; else nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def imports_by_name(tree: ast.Module) -> bool:
    """Return whether a module has names that it imports when asked, or imports by a string."""
    guarded = [each for node in tree.body if isinstance(node, ast.If) for each in node.body]
    hooks = (node.name for node in [*tree.body, *guarded] if isinstance(node, ast.FunctionDef))
    named = (
        getattr(node, field, None)
        for node in ast.walk(tree)
        for field, kind in (("id", ast.Name), ("attr", ast.Attribute), ("name", ast.alias))
        if isinstance(node, kind)
    )
    return "__getattr__" in hooks or not {"import_module", "__import__"}.isdisjoint(named)
