"""Every example in a docstring, and every Python block of the documents, runs."""

from __future__ import annotations

import doctest
import importlib.util
import pathlib
import pkgutil
import re

import numpy as np
import pytest
from cells import cells

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = [
    "mplang_core",
    *sorted(file.parent.name for file in ROOT.glob("plugins/*/src/*/__init__.py")),
    *sorted(file.parent.name for file in ROOT.glob("examples/*/src/*/__init__.py")),
]
DOCUMENTS = sorted(
    path.relative_to(ROOT)
    for path in [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("plugins/*/README.md"),
        *ROOT.glob("examples/*/README.md"),
    ]
)
LONG = {
    "mplang_phe": "each example makes a key; the kit runs those of ops, too",
    "docs/joins.md": "its blocks sort on two protocols for a minute",
    "docs/tutorials/first-plugin.md": "it installs a package, and runs its tests",
    "docs/tutorials/owner-review.md": "it runs seven commands and a worker",
    "docs/tutorials/three-organizations.md": "it runs nine commands and three workers",
    "docs/tutorials/two-organizations.md": "it runs two workers, and a join on CHEETAH",
}
BLOCK = re.compile(r"^```(?:python|\{code-cell\})\n(.*?)^```", re.MULTILINE | re.DOTALL)
ALL = ("jax", "spu", "crypto", "ibis", "http", "hello", "grpc")

pytestmark = pytest.mark.filterwarnings(
    "error::mplang_core.errors.LiteralWarning",  # data is put outside
    "ignore:acme:DeprecationWarning",  # shown by docs/versioning.md
)


def needs(path: pathlib.Path) -> pytest.MarkDecorator:
    """Return what the blocks of a document need: what its line says that one installs, or all."""
    text = (ROOT / path).read_text(encoding="utf-8")
    line = re.search(r"^    pip install (mplang-.+)$", text, re.MULTILINE)
    named = ALL if line is None else re.findall(r"mplang-(\w+)", line[1])
    return pytest.mark.needs(*named)


def long(what):
    """Return the marks of what takes long."""
    return [pytest.mark.long(LONG[what])] if what in LONG else []


def modules(package):
    yield package
    path = importlib.import_module(package).__path__
    yield from (found.name for found in pkgutil.walk_packages(path, package + "."))


@pytest.mark.needs(*ALL)
@pytest.mark.parametrize(
    "package",
    [pytest.param(each, marks=long(each)) for each in filter(importlib.util.find_spec, PACKAGES)],
)
def test_examples_in_docstrings(package):
    with np.printoptions(legacy=False):
        failed = [
            name
            for name in modules(package)
            if doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed
        ]
    assert failed == []


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[needs(path), *long(str(path))]) for path in DOCUMENTS],
    ids=str,
)
def test_python_blocks_in_documents(path, tmp_path, tmp_path_factory, monkeypatch):
    """Blocks of one document run in order, in one namespace."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / path).read_text(encoding="utf-8")
    with cells(tmp_path_factory.mktemp("commands")) as running:
        for found in BLOCK.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            running.run(found[1], str(path), line)
