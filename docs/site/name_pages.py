"""Reference of names: a page for each package, and for each part of the core.

The names are those of ``tests/architecture/public_api``, which holds what every package promises.
"""

from __future__ import annotations

import functools
import inspect
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

import griffe

PROMISED = Path(__file__).parents[2] / "tests" / "architecture" / "public_api"
CORE = "mplang_core"
PARTS = {
    "Programs and values": ("edsl", "driver", "device.api", "primitives", "control"),
    "Clusters and devices": ("device", "cluster"),
    "Runs": ("simp", "runtime", "interp"),
    "Errors": ("errors", "refusal"),
    "Types and the program": ("ir", "types", "mask"),
    "Frontends and packages": ("feop", "plugins"),
}
OTHERS = "Everything else"


def pages() -> Mapping[str, str]:
    """Return the pages of names, and the one that lists them, by file name."""
    found: dict[str, str] = {}
    titles: list[str] = []
    known: dict[int, str] = {}
    for file in sorted(PROMISED.glob("*.txt"), key=lambda file: (file.stem != CORE, file.stem)):
        names = names_of(file)
        plain = [name for name in names if ".ext." not in name]
        extra = [name for name in names if ".ext." in name]
        for title, listed in _parts(file.stem, plain, extra).items():
            stem = title.lower().replace(": ", "-").replace(" ", "-").replace(".", "-")
            found[f"{stem}.rst"] = _page(title, listed, known)
            titles.append(stem)
    found["index.rst"] = _index(["commands", "worker", "errors", *titles])
    return found


def names_of(file: Path) -> Sequence[str]:
    """Return the public names of a package, each with its module."""
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith(" ")]
    heads = [line.split("(")[0].split(":")[0] for line in lines]
    return [f"{CORE}.{head.removeprefix('mp.')}" if head.startswith("mp.") else head
            for head in heads]  # fmt: skip


def _parts(package: str, plain: Sequence[str], extra: Sequence[str]) -> Mapping[str, Sequence[str]]:
    if package != CORE:
        parts = {package: plain, f"{package}.ext": extra}
        return {title: names for title, names in parts.items() if names}
    grouped: dict[str, list[str]] = defaultdict(list)
    for name in plain:
        grouped[_part_of(name)].append(name)
    ordered = {title: grouped[title] for title in (*PARTS, OTHERS) if grouped[title]}
    return {**{f"mplang_core: {title}": names for title, names in ordered.items()},
            f"{CORE}.ext": extra}  # fmt: skip


def _part_of(name: str) -> str:
    home = str(getattr(_object(name), "__module__", "")).removeprefix(f"{CORE}.")
    for title, prefixes in PARTS.items():
        if any(home == each or home.startswith(f"{each}.") for each in prefixes):
            return title
    return OTHERS


def _object(name: str) -> object:
    module, _, attribute = name.rpartition(".")
    found = getattr(import_module(module), attribute, None)
    return import_module(name) if found is None else found


def _page(title: str, names: Sequence[str], known: dict[int, str]) -> str:
    """Return a page: a table of what it has, and then each of these.

    Args:
        title: of the page.
        names: what it has.
        known: the names of what other pages have, by identity; completed.
    """
    module = names[0].rpartition(".")[0]
    lines = [title, "=" * len(title), "", f".. currentmodule:: {module}", "", ".. autosummary::",
             "   :nosignatures:", ""]  # fmt: skip
    lines += [f"   {name.rpartition('.')[2]}" for name in names if not _is_data(_object(name))]
    for name in names:
        lines += ["", *_entry(name, known)]
    return "\n".join([*lines, ""])


def _entry(name: str, known: dict[int, str]) -> Sequence[str]:
    thing = _object(name)
    if _is_data(thing):
        text = _told(name).splitlines()
        return [f".. py:data:: {name}", f"   :type: {type(thing).__name__}", "",
                *(f"   {line}".rstrip() for line in text)]  # fmt: skip
    other = known.setdefault(id(thing), name)
    if other != name:
        return [f"``{name.rpartition('.')[2]}`` is :obj:`{other}`."]
    if inspect.ismodule(thing):
        return [f".. automodule:: {thing.__name__}", "   :no-members:", "   :no-index:"]
    if inspect.isclass(thing):
        kind = "autoexception" if issubclass(thing, BaseException) else "autoclass"
        return [f".. {kind}:: {name}"]
    return [f".. autofunction:: {name}"]


def _is_data(thing: object) -> bool:
    is_code = inspect.isclass(thing) or inspect.ismodule(thing) or inspect.isroutine(thing)
    return not is_code and not inspect.isroutine(inspect.unwrap(thing))  # type: ignore[arg-type]


def _told(name: str) -> str:
    """Return the docstring of a constant, which stands beneath its assignment."""
    package, _, path = name.partition(".")
    try:
        found = _read(package)[path]
        docstring = (found.final_target if found.is_alias else found).docstring
    except (griffe.AliasResolutionError, KeyError):  # assigned with others, or by a call
        return ""
    return inspect.cleandoc(docstring.value) if docstring else ""


@functools.cache
def _read(package: str) -> griffe.Object | griffe.Alias:
    return griffe.load(package, resolve_aliases=True, resolve_external=True)


def _index(stems: Sequence[str]) -> str:
    head = ["Reference", "=========", "", ".. toctree::", "   :maxdepth: 1", ""]
    return "\n".join([*head, *(f"   {stem}" for stem in stems), ""])
