"""Public tiers of packages: what their users import, and what other packages build on.

A package exports names from itself (``mplang_x``) and from its extension interface
(``mplang_x.ext``). The modules are read and not imported, since some import an engine.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from packages import PACKAGES, ROOT, source_of

CORE = "mplang_core"


@functools.cache
def sources() -> Mapping[str, Path]:
    """Return the folders of all packages of this repository, by the packages' names."""
    folders = [source_of(each) for each in PACKAGES if each != ROOT]
    inits = [file for folder in folders for file in folder.glob("mplang_*/__init__.py")]
    return {file.parent.name: file.parent for file in [ROOT / CORE / "__init__.py", *inits]}


@functools.cache
def tiers(package: str) -> Mapping[str, frozenset[str]]:
    """Return the public modules of a package of this repository, with their names."""
    return tiers_of(sources()[package])


def tiers_of(folder: Path) -> Mapping[str, frozenset[str]]:
    """Return the public modules of a package, ``mplang_x`` and ``mplang_x.ext``, with their names.

    Args:
        folder: that of its modules; a package that is not there has none.
    """
    return {name: exports(file.read_text()) for name, file in _public_modules(folder).items()}


def _public_modules(folder: Path) -> Mapping[str, Path]:
    files = {folder.name: folder / "__init__.py", f"{folder.name}.ext": folder / "ext.py"}
    return {name: file for name, file in files.items() if file.exists()}


class Deprecation(NamedTuple):
    """Name that a module still has, though it is called otherwise now.

    Attributes:
        new: the new name, with its module.
        until: the release that has the old one no more.
    """

    new: str
    until: str


def deprecations(folder: Path, module: str) -> Mapping[str, Deprecation]:
    """Return the deprecated names of a public module, as it gives them to ``deprecated_names``."""
    file = _public_modules(folder).get(module)
    found: dict[str, Deprecation] = {}
    for node in ast.walk(ast.parse(file.read_text())) if file else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("deprecated_names"):
            (until,) = [ast.literal_eval(each.value) for each in node.keywords]
            names = ast.literal_eval(node.args[1])
            found |= {old: Deprecation(new, until) for old, new in names.items()}
    return found


def exports(source: str) -> frozenset[str]:
    """Return the names that a module exports: its ``__all__``, or what it imports ``X as X``.

    Example:
        >>> sorted(exports("from a import b as b, c as d, e"))
        ['b']
        >>> sorted(exports("__all__ = ['x']"))
        ['x']
    """
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return frozenset(ast.literal_eval(node.value))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom | ast.Import)]
    names = [each for node in imports for each in node.names]
    return frozenset(each.name for each in names if each.asname == each.name)


def inner_names(source: str, package: str) -> Iterator[tuple[int, str]]:
    """Yield what a module takes of other packages that these do not export, by line.

    Args:
        source: the module.
        package: the package that it belongs to, which may import its own modules.
    """
    taken: list[tuple[str, str | None]]
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module=str(module), names=names, level=0):
                taken = [(module, each.name) for each in names]
            case ast.Import(names=names):
                taken = [(each.name, None) for each in names]
            case ast.Constant(value=str(text)) if _is_module(text):  # imported by its name
                taken = [(text, None)]
            case _:
                continue
        for module, name in taken:
            owner = module.partition(".")[0]
            if owner in sources() and owner != package and not _exports(owner, module, name):
                yield node.lineno, f"{module}.{name}" if name else module


def _exports(owner: str, module: str, name: str | None) -> bool:
    """Return whether a package exports a module, or a name of it."""
    public = tiers(owner)
    if name is None:
        parent, _, name = module.rpartition(".")
        return module in public or name in public.get(parent, ())
    if owner == CORE and module in public and not _is_module(f"{module}.{name}"):
        return True  # names that other packages add, as `Simulator`; Python looks the others up
    return name in public.get(module, ())


def _is_module(text: str) -> bool:
    """Return whether a text is the name of a module of one of the packages."""
    owner, _, rest = text.partition(".")
    if not owner.startswith("mplang_") or owner not in sources():
        return False
    if not rest.replace(".", "").isidentifier():
        return False
    file = sources()[owner].joinpath(*rest.split("."))
    return file.is_dir() or file.with_suffix(".py").exists()
