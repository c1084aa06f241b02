"""The public names of each package, and their signatures, are those of a reviewed file."""

from __future__ import annotations

import ast
import enum
import inspect
import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from packaging.version import Version
from public_tiers import CORE, deprecations, sources, tiers

import mplang_core

FOLDER = Path(__file__).parent / "public_api"
PLAIN = (type(None), bool, int, float, str, tuple)
OF_MACHINE = (os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4,)
"""Defaults that depend on the machine: `size` of a data set, in bytes."""


def signature(thing: object) -> str:
    """Return the parameters of a callable; annotations as written, defaults if they are plain."""
    try:
        found = inspect.signature(thing)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""

    def plain(each: inspect.Parameter) -> inspect.Parameter:
        note = each.annotation if isinstance(each.annotation, str) else each.empty
        has_default = each.default is not each.empty
        # a named tuple may have functions, which are shown by their addresses
        is_shown = type(each.default) in PLAIN and each.default not in OF_MACHINE
        default = each.default if is_shown else Ellipsis
        return each.replace(annotation=note, default=default if has_default else each.empty)

    returned = found.return_annotation
    return str(
        found.replace(
            parameters=list(map(plain, found.parameters.values())),
            return_annotation=returned if isinstance(returned, str) else found.empty,
        )
    ).replace("'", "")


def described(where: str, name: str, thing: object) -> list[str]:
    """Return a line for a public name, and one for each public method of a class."""
    if inspect.isclass(thing) and issubclass(thing, enum.Enum):
        return [f"{where}.{name}: {', '.join(thing.__members__)}"]
    if not inspect.isclass(thing):
        kind = "" if callable(thing) else f": {type(thing).__name__}"
        return [f"{where}.{name}{signature(thing) if callable(thing) else kind}"]
    bases = ", ".join(base.__name__ for base in thing.__bases__ if base is not object)
    lines = [f"{where}.{name}({bases}){signature(thing)}"]
    for each, member in sorted(vars(thing).items()):
        found = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if each.startswith("_"):
            continue
        if isinstance(found, property):
            lines.append(f"  {each}: property")
        elif inspect.isfunction(found):
            lines.append(f"  {each}{signature(found)}")
    return lines


def exported(module: str) -> Mapping[str, object]:
    """Return the public names of a module; those of a module that it exports as a whole, too."""
    package = import_module(module)
    names = set(tiers(module.removesuffix(".ext"))[module])
    for node in ast.walk(ast.parse(inspect.getsource(package))):
        is_whole = isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
        if is_whole and node.module != "mplang_core._installed":  # it has stubs alone
            names |= {name for name in vars(import_module(str(node.module))) if name[0].isupper()}
    return {name: _member(package, name) for name in names}


def _member(package: ModuleType, name: str) -> object:
    """Return a name of a module, or the module of that name that it contains."""
    try:
        return getattr(package, name)
    except AttributeError:
        return import_module(f"{package.__name__}.{name}")


def public_api(package: str) -> str:
    """Return all public names of a package with their signatures."""
    lines = []
    for module in sorted(tiers(package)):
        where = module.replace(CORE, "mp")
        for name, thing in sorted(exported(module).items()):
            lines += described(where, name, thing)
        for old, (new, until) in sorted(deprecations(sources()[package], module).items()):
            lines.append(f"{where}.{old}: deprecated until {until}, now {new}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "package",
    [
        pytest.param(each, marks=pytest.mark.needs(each.removeprefix("mplang_")))
        for each in sorted(sources())
    ],
)
def test_public_names_and_signatures_are_those_that_were_reviewed(package):
    """A change of this file is a change of the interface: run with MPLANG_WRITE_GOLDEN=1."""
    file = FOLDER / f"{package}.txt"
    if os.environ.get("MPLANG_WRITE_GOLDEN"):
        file.write_text(public_api(package))
    assert public_api(package) == file.read_text()


@pytest.mark.parametrize("package", sorted(sources()))
def test_deprecated_names_are_there_until_their_release(package):
    """A deprecated name is found by its old name, is none of the others, and goes in time."""
    for module, names in tiers(package).items():
        for old, (_, until) in deprecations(sources()[package], module).items():
            assert old not in names
            assert Version(mplang_core.__version__) < Version(until), f"remove {module}.{old}"
            with pytest.deprecated_call():
                assert getattr(import_module(module), old) is not None
