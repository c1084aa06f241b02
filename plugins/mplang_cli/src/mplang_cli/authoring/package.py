"""Generator of plugin packages from templates."""

from __future__ import annotations

import keyword
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from string import Template
from typing import Any

from importlib_metadata import version
from packaging.utils import canonicalize_name
from packaging.version import Version

from mplang_core.ext import KNOWN, ConfigError, op_defs, plugin_manager, type_classes

CORE = "mplang-core"
SUFFIX = ".in"  # tools must not treat templates as Python files
NAME = re.compile(r"[a-z](_?[a-z0-9])*")
LONGEST = 30

_ABOUT = {
    "README.md": "what it is for, with an example that is tested",
    "pyproject.toml": "entry points, dependencies, tools",
    "__init__.py": "what users import",
    "code.py": "what programs consist of",
    "compiler.py": "from a function to a program",
    "formula.py": "what records a function",
    "kernels.py": "what the ops do at a party",
    "ops.py": "the ops: what they take and give",
    "plugin.py": "what mplang is told of it",
    "types.py": "a type, its values, its codec",
    "test_conformance.py": "what mplang asks of every plugin",
    "test_program.py": "programs of several parties",
}


@dataclass(frozen=True, slots=True)
class NewPlugin:
    """Files written for a new plugin.

    Attributes:
        name: the family of its feops.
        distribution: what pip calls it.
        path: its folder.
        files: its files, below the folder, with ``/``.
    """

    name: str
    distribution: str
    path: Path
    files: tuple[str, ...]

    @property
    def next(self) -> tuple[str, str]:
        """The two commands that install and test it, from the current folder."""
        path = os.path.relpath(self.path)
        here = path if path.startswith(os.curdir) else os.path.join(os.curdir, path)
        return f"pip install -e {shlex.quote(here + '[test]')}", f"pytest {shlex.quote(here)}"

    def __rich__(self) -> Any:
        """Return what ``rich.print`` shows: the tree, and what to do next."""
        from rich.console import Group
        from rich.text import Text
        from rich.tree import Tree

        tree = Tree(Text(str(self.path), "bold"), guide_style="dim")
        folders = {"": tree}
        for file in self.files:
            for folder in reversed(PurePosixPath(file).parents[:-1]):
                above = folders[str(folder.parent).removeprefix(".")]
                if str(folder) not in folders:
                    folders[str(folder)] = above.add(Text(f"{folder.name}/", "bold"))
            home, _, name = file.rpartition("/")
            folders[home].add(Text.assemble(f"{name:20} ", (_ABOUT.get(name, ""), "dim")))
        commands = [Text(f"    {command}", "bold") for command in self.next]
        return Group(tree, "", "Now install and test it:", "", *commands)


def new_plugin(
    name: str, path: str | os.PathLike[str] = ".", *, compiler: bool = False
) -> NewPlugin:
    """Write a package with a feop, a kernel, a type, its tests and its README.

    Args:
        name: the family of its feops; the package is ``mplang_NAME``.
        path: the folder to put it in.
        compiler: whether its feop compiles Python functions; it has no type of its own then.

    Raises:
        ConfigError: the name cannot be one, or is taken; the folder is not there, or has
            a ``mplang_NAME`` already.

    Example:
        >>> import tempfile
        >>> made = new_plugin("weather", tempfile.mkdtemp())
        >>> made.path.name, made.distribution
        ('mplang_weather', 'mplang-weather')
        >>> (made.path / "src/mplang_weather/ops.py").exists()
        True
    """
    check_name(name)
    values, template = _values(name, compiler), files(__package__) / "template"
    parts = ("both", "compiler" if compiler else "feop")
    texts = dict(sorted(file for part in parts for file in _render(template / part, values)))
    folder = Path(path) / values["package"]
    try:
        folder.mkdir()
    except FileExistsError:
        raise ConfigError(f"{folder} exists already; nothing was written", code="C006") from None
    except OSError as error:
        raise ConfigError(f"cannot make {folder}: {error.strerror}", code="C005") from error
    try:
        for file, text in texts.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)  # all of it, or nothing
        raise ConfigError(f"cannot write {folder}: {error.strerror}", code="C005") from error
    return NewPlugin(name, values["distribution"], folder, tuple(texts))


def check_name(name: str) -> None:
    """Check that a new plugin can have a name.

    Raises:
        ConfigError: it is not a name, or another one has it; says who.

    Example:
        >>> check_name("weather")
        >>> check_name("My-Ops")
        Traceback (most recent call last):
        mplang_core.errors.ConfigError: a plugin's name is ... got 'My-Ops'; try 'my_ops'
        mplang explain C006
    """
    likely = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    likely = re.sub(r"^(mplang_)+", "", likely)
    hint = f"; try {likely!r}" if _is_name(likely) else ""
    if not _is_name(name):
        raise ConfigError(
            f"a plugin's name is made of at most {LONGEST} lower-case letters, digits and single "
            f"underscores, not a word of Python, and begins with a letter, got {name!r:.60}{hint}",
            code="C006",
        )
    if name.startswith("mplang_"):
        raise ConfigError(
            f"a plugin NAME has the package mplang_NAME: give its name alone, got {name!r}{hint}",
            code="C006",
        )
    owner = _owner(name)
    if owner:
        raise ConfigError(f"the name {name!r} is taken by {owner}; choose another", code="C006")


def _is_name(name: str) -> bool:
    fits = NAME.fullmatch(name) and len(name) <= LONGEST
    return bool(fits) and not keyword.iskeyword(name)


def _owner(name: str) -> str | None:
    """Return who has a name, or would be mistaken for its owner."""
    distribution = f"mplang-{canonicalize_name(name)}"
    for record in plugin_manager.records():
        if name == record.name or distribution == canonicalize_name(record.distribution):
            return f"{record.distribution} {record.version}, which is installed"
    own = op_defs.provided_by({CORE}) | type_classes.provided_by({CORE}) | {"core"}
    if name in {each.partition(".")[0] for each in own}:
        return CORE
    if name in KNOWN:
        return f"{KNOWN[name]}, a plugin of mplang's own"
    spec = find_spec(f"mplang_{name}")
    return str(spec.origin) if spec is not None and spec.origin else None


def _values(name: str, compiler: bool) -> dict[str, str]:
    core = Version(version(CORE))
    above = f"0.{core.minor + 1}" if core.major == 0 else f"{core.major + 1}"
    needs = [f"{each}>={core.major}.{core.minor},<{above}" for each in _needed(compiler)]
    return {
        "name": name,
        "package": f"mplang_{name}",
        "distribution": f"mplang-{name.replace('_', '-')}",
        "dependencies": ", ".join(f'"{each}"' for each in [*needs, "numpy>=2.0"]),
    }


def _needed(compiler: bool) -> list[str]:
    return ["mplang-cache", CORE] if compiler else [CORE]


def _render(
    folder: Traversable, values: dict[str, str], below: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield each file below a folder of templates, and its text."""
    for item in folder.iterdir():
        if item.is_dir():
            part = values.get(item.name, item.name)  # src/package
            yield from _render(item, values, f"{below}{part}/")
        elif item.name.endswith(SUFFIX):
            text = Template(item.read_text(encoding="utf-8")).substitute(values)
            yield below + item.name.removesuffix(SUFFIX), text
