"""Breaking changes of public names, each of which a news fragment has to name.

``python tests/architecture/breaking_changes.py [REVISION]`` compares the packages with those of a
revision: by default that at which the fragments were last collected. It reads them by griffe, and
imports none.
"""

from __future__ import annotations

import functools
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import griffe
from packages import ROOT
from public_tiers import deprecations, tiers_of

GOLDEN = "tests/architecture/public_api"
FRAGMENTS = ROOT / "changes"


class Break(NamedTuple):
    """Incompatible change of a public name.

    Attributes:
        path: the name, with its module: ``mplang_data.ext.Files.open``.
        what: what has changed.
    """

    path: str
    what: str


def folder_of(root: Path, package: str) -> Path:
    """Return the folder of a package in a tree of this repository."""
    return (
        root / package if package == "mplang_core" else root / "plugins" / package / "src" / package
    )


def breaks_of(package: str, before: Path, now: Path) -> Iterator[Break]:
    """Yield the incompatible changes of a package's public names.

    Args:
        package: its name.
        before: the tree that users have.
        now: the tree that they get.
    """
    old_tiers, new_tiers = (tiers_of(folder_of(root, package)) for root in (before, now))
    old, new = (_loaded(root) for root in (before, now))
    for module, names in old_tiers.items():
        kept = new_tiers.get(module, frozenset())
        for name in sorted(names - deprecations(folder_of(now, package), module).keys()):
            path = f"{module}.{name}"
            if name not in kept:
                yield Break(path, "is removed")
            else:
                yield from _changes(path, _member(old, path), _member(new, path))


@functools.cache
def _loaded(root: Path) -> griffe.GriffeLoader:
    """Return a loader of the packages of a tree, whose sources it reads."""
    return griffe.GriffeLoader(
        search_paths=[root, *root.glob("plugins/*/src")],
        extensions=griffe.load_extensions(),
        allow_inspection=False,
    )


def _member(loader: griffe.GriffeLoader, path: str) -> griffe.Object | None:
    """Return what a name stands for; ``None`` if it is not of this repository."""
    package = path.partition(".")[0]
    if package not in loader.modules_collection:
        loader.load(package)
        loader.resolve_aliases(implicit=True, external=True)
    try:
        found = loader.modules_collection[path]
        return found.final_target if found.is_alias else found
    except (KeyError, griffe.AliasResolutionError, griffe.CyclicAliasError):
        return None


def _changes(path: str, old: griffe.Object | None, new: griffe.Object | None) -> Iterator[Break]:
    """Yield what is incompatible between two objects of one public name."""
    if old is None or new is None or old.is_module:
        return
    old.public = new.public = True
    holders = [SimpleNamespace(all_members={"it": each}, path=path) for each in (old, new)]
    for each in griffe.find_breaking_changes(*holders):
        inner = each.obj.path.removeprefix(old.path).removeprefix(new.path)
        changed = each.old_value or each.new_value
        parameter = f" ({changed.name})" if isinstance(changed, griffe.Parameter) else ""
        yield Break(path + inner, f"{each.kind.value.lower()}{parameter}")


def unnamed(breaks: Sequence[Break], fragments: Sequence[str]) -> list[Break]:
    """Return the changes whose name stands in no fragment, in backticks.

    Example:
        >>> of = [Break("mplang_x.f", "is removed"), Break("mplang_x.C.m", "is removed")]
        >>> [each.path for each in unnamed(of, ["`mp.x.f` is gone; use `g`."])]
        ['mplang_x.C.m']
    """
    said = {
        word
        for text in fragments
        for code in re.findall(r"`([^`]+)`", text)
        for word in re.findall(r"\w+", code)
    }
    return [each for each in breaks if each.path.rpartition(".")[2] not in said]


def _git(*args: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *args], check=True, capture_output=True).stdout


def collected() -> str:
    """Return the revision at which the fragments were last collected, or the goldens were made."""
    added = ["log", "-1", "--no-renames", "--diff-filter=A", "--format=%ct %H", "--"]
    changed = ["log", "-1", "--format=%ct %H", "--"]
    found = [_git(*added, f"{GOLDEN}/mplang_core.txt"), _git(*changed, "CHANGELOG.md")]
    times = [line.decode().split() for line in found if line]
    return max(times, key=lambda each: int(each[0]))[1]


def breaks_since(revision: str) -> list[Break]:
    """Return the incompatible changes since a revision, of packages whose golden has changed."""
    with tempfile.TemporaryDirectory() as folder:
        archive = _git("archive", revision, "--", "mplang_core", "plugins", "tests/architecture")
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
        before = Path(folder)
        packages = ["mplang_core", *(each.name for each in before.glob("plugins/*"))]
        return [
            found
            for package in sorted(packages)
            if not _is_same(before, package)
            for found in breaks_of(package, before, ROOT)
        ]


def _is_same(before: Path, package: str) -> bool:
    """Return whether the golden of a package is what it was, so that nothing is to be compared."""
    files = [root / GOLDEN / f"{package}.txt" for root in (before, ROOT)]
    texts = [file.read_text() for file in files if file.exists()]
    return len(texts) == 2 and texts[0] == texts[1]


def main() -> int:
    """Print the breaking changes that no fragment names; return how many there are."""
    revision = sys.argv[1] if len(sys.argv) > 1 else collected()
    fragments = [file.read_text() for file in FRAGMENTS.glob("*.breaking.md")]
    wrong = unnamed(breaks_since(revision), fragments)
    for each in wrong:
        print(f"{each.path}: {each.what}; name it in backticks in changes/+NAME.breaking.md")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
