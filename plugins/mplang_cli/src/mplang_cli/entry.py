"""Entry point of the command `mplang`: answers `--version` without importing the framework."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version  # its backport is slower to import


def version_text() -> str:
    """Return the versions of the core, of this package and of Python."""
    found = [f"{name} {version(name)}" for name in ("mplang-core", "mplang-cli")]
    return ", ".join([*found, f"Python {platform.python_version()}"])


def main() -> None:
    """Run the command."""
    if sys.argv[1:] == ["--version"]:
        print(version_text())
        return
    from mplang_cli.cli import main as run

    run()
