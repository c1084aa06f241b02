"""Packages go by what devices are: none names a kind that another one brings."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from packages import PUBLISHED, label, source_of

from mplang_core import registry
from mplang_core.ext import device_kinds

DESCRIPTIONS = {
    "mplang_core/device/cluster.py": {"SPU"},  # bare nodes have the same devices, whatever is there
    "mplang_testing/refusals.py": {"PPU"},
}
"""Files with a description of a cluster, in which users name kinds."""

COMPARES = {"mplang_testing/devices.py"}  # a suite is of one kind, which its author names


def parsed() -> Iterator[tuple[str, str, ast.AST]]:
    """Yield for each source file its distribution, its name, and its syntax tree."""
    for package in PUBLISHED:
        root = source_of(package)
        for file in sorted(root.rglob("*.py")):
            name = file.relative_to(root if root.name == "src" else root.parent).as_posix()
            yield label(package), name, ast.parse(file.read_text(encoding="utf-8"))


def named_in(tree: ast.AST) -> set[str]:
    """Return the whole texts of a file; a document that names a kind is a longer one."""
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str)}


def decisions_in(tree: ast.AST) -> list[int]:
    """Return the lines on which the name of a kind is compared."""
    compares = (node for node in ast.walk(tree) if isinstance(node, ast.Compare))
    return [c.lineno for c in compares if any(map(_is_kinds_name, (c.left, *c.comparators)))]


def _is_kinds_name(node: ast.expr) -> bool:
    inner = node.value if isinstance(node, ast.Attribute) and node.attr == "name" else None
    return isinstance(inner, ast.Attribute) and inner.attr == "kind"


@pytest.mark.needs("spu")
def test_no_package_names_a_device_kind_of_another_one():
    registry.list_ops()
    homes = {name: device_kinds.provider(name) for name, _ in device_kinds}
    assert {"PPU", "SPU"} <= homes.keys()
    wrong = {}
    for distribution, name, tree in parsed():
        others = {kind for kind, home in homes.items() if home != distribution}
        if found := named_in(tree) & others - DESCRIPTIONS.get(name, set()):
            wrong[name] = found
    assert not wrong


def test_nothing_is_decided_by_the_name_of_a_kind():
    """A kind of another package has the same form, and would be left out."""
    found = {name: lines for _, name, tree in parsed() if (lines := decisions_in(tree))}
    assert found.keys() == COMPARES


def test_what_the_review_found_would_be_found():
    tree = ast.parse('if device.kind.name == "SPU" or kind in ("PPU", "TEE"): pass')
    assert decisions_in(tree) == [1]
    assert named_in(tree) == {"PPU", "SPU", "TEE"}
