"""The public names and their signatures are those of a reviewed file."""

from __future__ import annotations

import ast
import enum
import inspect
import os
from importlib import import_module
from pathlib import Path
from types import ModuleType

import mplang_core
from mplang_core import ext

FILE = Path(__file__).parent / "public_api.txt"


PLAIN = (type(None), bool, int, float, str, tuple)


def signature(thing: object) -> str:
    """Return the parameters of a callable; annotations as written, defaults if they are plain."""
    try:
        found = inspect.signature(thing)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""

    def plain(each: inspect.Parameter) -> inspect.Parameter:
        note = each.annotation if isinstance(each.annotation, str) else each.empty
        has_default = each.default is not each.empty
        default = each.default if isinstance(each.default, PLAIN) else Ellipsis
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


def exported(module: ModuleType) -> set[str]:
    """Return what a module gives to others: what it imports ``as`` the same name, or as a whole."""
    names = set()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom):
            names |= {each.name for each in node.names if each.asname == each.name}
            if node.names[0].name == "*" and node.module != "mplang_core._installed":
                names |= {name for name in vars(import_module(node.module)) if name[0].isupper()}
    return names


def public_api() -> str:
    """Return all public names with their signatures."""
    lines = []
    for module, where in ((mplang_core, "mp"), (ext, "mp.ext")):
        for name in sorted(exported(module)):
            lines += described(where, name, getattr(module, name))
    return "\n".join(lines) + "\n"


def test_public_names_and_signatures_are_those_that_were_reviewed():
    """A change of this file is a change of the interface: run with MPLANG_WRITE_GOLDEN=1."""
    if os.environ.get("MPLANG_WRITE_GOLDEN"):
        FILE.write_text(public_api())
    assert public_api() == FILE.read_text()
