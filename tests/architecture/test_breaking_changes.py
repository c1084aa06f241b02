"""Breaking changes of public names are found, and compatible ones are not."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("griffe")

from breaking_changes import Break, breaks_of, unnamed

INIT = """
from mplang_acme.inner import Base, Table, old, scale

__all__ = ["Base", "Table", "old", "scale"]
"""
EXT = "from mplang_acme.inner import load as load\n"
INNER = """
class Base:
    def rows(self): ...

class Table(Base):
    def head(self, count: int = 5) -> int: ...
    def _own(self): ...

def scale(x, by=2): ...
def load(path, *, lazy=False): ...
def old(): ...
def hidden(x): ...
"""


def tree(folder: Path, init: str = INIT, ext: str = EXT, inner: str = INNER) -> Path:
    """Make a tree with a package, which its users import and others build on."""
    package = folder / "plugins/mplang_acme/src/mplang_acme"
    package.mkdir(parents=True)
    for name, text in (("__init__", init), ("ext", ext), ("inner", inner)):
        (package / f"{name}.py").write_text(text)
    return folder


def found(tmp_path: Path, **now: str) -> list[str]:
    """Return the names that break between the package and another version of it."""
    before, after = tree(tmp_path / "before"), tree(tmp_path / "now", **now)
    breaks = breaks_of("mplang_acme", before, after)
    return [each.path.removeprefix("mplang_acme.") for each in breaks]


@pytest.mark.parametrize(
    ("path", "before", "now"),
    [
        ("scale", "def scale(x, by=2)", "def scale(x)"),
        ("scale", "def scale(x, by=2)", "def scale(x, by)"),
        ("scale", "def scale(x, by=2)", "def scale(x, by=3)"),
        ("scale", "def scale(x, by=2)", "def scale(x, y, by=2)"),
        ("ext.load", "*, lazy=False", "*, eager=False"),
        ("Table.head", "def head(", "def first("),
        ("Table", "class Table(Base)", "class Table"),
    ],
)
def test_an_incompatible_change_is_found(tmp_path, path, before, now):
    assert path in found(tmp_path, inner=INNER.replace(before, now))


def test_a_name_that_is_exported_no_more_is_found(tmp_path):
    assert found(tmp_path, init=INIT.replace('"old", ', ""), ext="") == ["old", "ext.load"]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("def scale(x, by=2)", "def scale(x, by=2, *, exact=False)"),
        ("def hidden(x)", "def hidden(y, z)"),
        ("def _own(self): ...", ""),
        ("def rows(self): ...", "def rows(self): ...\n    def more(self): ..."),
    ],
)
def test_a_compatible_change_is_none(tmp_path, before, now):
    assert found(tmp_path, inner=INNER.replace(before, now)) == []


def test_a_name_that_moved_within_its_package_is_where_it_was(tmp_path):
    moved = "class Base:\n    def rows(self): ...\n"
    init = INIT.replace("from mplang_acme.inner import Base,", "from mplang_acme.ext import Base\n"
                        "from mplang_acme.inner import")  # fmt: skip
    inner = "from mplang_acme.ext import Base\n" + INNER.replace(moved, "")
    assert found(tmp_path, init=init, ext=EXT + moved, inner=inner) == []


def test_a_deprecated_name_is_not_gone(tmp_path):
    """It is once its release has come, and the call is removed."""
    renamed = '{"old": "mplang_acme.scale"}'
    call = f'__getattr__ = deprecated_names(__name__, {renamed}, until="9.0")\n'
    without = INIT.replace('"old", ', "").replace("old, ", "")
    assert found(tmp_path, init=without + call) == []
    assert found(tmp_path / "later", init=without) == ["old"]


def test_a_fragment_names_what_breaks():
    breaks = [Break("mplang_x.f", "is removed"), Break("mplang_x.ext.C.m", "is removed")]
    assert unnamed(breaks, ["`mplang_x.f(a)` is gone", "`C.m(x)` too"]) == []
    assert unnamed(breaks, ["f is gone"]) == breaks
