"""Each package declares the distributions that it imports, and no others."""

from __future__ import annotations

import ast
import itertools
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from packages import PACKAGES, extras, label, pyproject, source_of
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

DISTRIBUTIONS = {
    "grpc": "grpcio",
    "ibis": "ibis-framework",
    "pyspark": "pyspark-client",
    "jaxlib": "jax",  # each release of jax pins its own
    "heu": "sf-heu",
    "yaml": "pyyaml",
}
"""Distributions that are not named like their modules."""

STUBS = {"mplang-core-stubs": "has the names that it adds to mp, for type checkers"}
WITHOUT_IMPORT = {
    **dict.fromkeys(
        (
            "mplang-analysis",
            "mplang-data",
            "mplang-dp",
            "mplang-guard",
            "mplang-joins",
            "mplang-match",
            "mplang-phe",
            "mplang-tee",
            "mplang-simulator",
        ),
        STUBS,
    ),
    "mplang-trace": STUBS,
    "mplang-cli": {"mplang-trace": "mp.watch and mp.record, of mplang run", **STUBS},
    "mplang-http": STUBS,
    "mplang-ibis": STUBS,
    "mplang-worker": {"mplang-cli": "the command mplang, of which worker and up are a part"},
    "mplang-he": {"mplang-jax": "compiles functions of arrays to StableHLO", **STUBS},
    "mplang-spu": {"mplang-jax": "compiles functions of arrays to StableHLO"},
}
"""What a package requires and does not import, each with its reason."""


def imports_in(tree: ast.AST, late: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield the top-level modules that code imports, and whether it loads without them.

    Imports in functions and in a ``try`` are late; those for type checkers are left out.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((each.name.partition(".")[0], late) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0], late
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            is_late = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Try)
            yield from imports_in(node, late or is_late)


def command_files(package: Path) -> set[Path]:
    """Return the files of a package that only the command ``mplang`` imports."""
    points = pyproject(package)["project"].get("entry-points", {}).get("mplang.commands", {})
    modules = (value.partition(":")[0] for value in points.values())
    return {source_of(package) / (each.replace(".", "/") + ".py") for each in modules}


def imports_of(package: Path) -> dict[str, bool]:
    """Return the distributions that a package imports, and whether all imports are late.

    Those of files that only the command line loads are.
    """
    found: dict[str, bool] = {}
    commands = command_files(package)
    for file in source_of(package).rglob("*.py"):
        of_commands = file in commands
        for module, late in imports_in(ast.parse(file.read_text(encoding="utf-8")), of_commands):
            if module not in sys.stdlib_module_names:
                name = canonicalize_name(DISTRIBUTIONS.get(module, module))
                found[name] = found.get(name, True) and late
    return {name: late for name, late in found.items() if name != label(package)}


def names(lines: Iterable[str]) -> set[str]:
    """Return the distributions of requirements."""
    return {canonicalize_name(Requirement(line).name) for line in lines}


@pytest.mark.parametrize("package", PACKAGES, ids=label)
def test_what_is_imported_is_declared(package):
    """In an optional group, if each import of it is in a function or in a ``try``."""
    found = imports_of(package)
    required = names(pyproject(package)["project"]["dependencies"])
    optional = names(itertools.chain(*extras(package).values()))
    assert {name for name, late in found.items() if not late} - required == set()
    assert set(found) - required - optional == set()


@pytest.mark.parametrize("package", PACKAGES, ids=label)
def test_what_is_required_is_imported(package):
    required = names(pyproject(package)["project"]["dependencies"])
    assert required - set(imports_of(package)) == set(WITHOUT_IMPORT.get(label(package), ()))


def test_all_packages_have_the_same_bounds():
    bounds = defaultdict(set)
    for package in PACKAGES:
        project = pyproject(package)["project"]
        groups = project.get("optional-dependencies", {}).values()
        for line in itertools.chain(project["dependencies"], *groups):
            found = Requirement(line)
            if found.specifier:
                bounds[canonicalize_name(found.name)].add(str(found.specifier))
    assert {name: found for name, found in bounds.items() if len(found) > 1} == {}


@pytest.mark.parametrize("package", PACKAGES, ids=label)
def test_what_is_required_has_bounds(package):
    lines = pyproject(package)["project"]["dependencies"]
    assert [line for line in lines if not Requirement(line).specifier] == []
