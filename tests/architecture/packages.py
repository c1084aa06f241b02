"""The packages of this repository, and what their ``pyproject.toml`` declare."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(file.parent for file in ROOT.glob("examples/*/pyproject.toml"))
PUBLISHED = [ROOT, *sorted(file.parent for file in ROOT.glob("plugins/*/pyproject.toml"))]
PACKAGES = [*PUBLISHED, *EXAMPLES]
DEVELOPMENT = {"dev", "examples", "fuzz", "release", "test", "test-core"}
"""Optional groups of those who work on a package; the others are of those who use it."""


def label(package: Path) -> str:
    """Return the distribution of a package."""
    return "mplang-core" if package == ROOT else package.name.replace("_", "-")


def source_of(package: Path) -> Path:
    """Return the folder of a package's modules."""
    return package / "mplang_core" if package == ROOT else package / "src"


@functools.cache
def pyproject(package: Path) -> dict[str, Any]:
    """Return the ``pyproject.toml`` of a package."""
    return tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))


def extras(package: Path) -> dict[str, list[str]]:
    """Return the optional groups of a package that its users may ask for."""
    groups = pyproject(package)["project"].get("optional-dependencies", {})
    return {name: lines for name, lines in groups.items() if name not in DEVELOPMENT}
