"""Entry point of the command `mplang`: answers `--version` without importing the framework."""

from __future__ import annotations

import sys

from mplang_cli.version import version_text


def main() -> None:
    """Run the command."""
    if sys.argv[1:] == ["--version"]:
        print(version_text())
        return
    from mplang_cli.cli import main as run
    from mplang_core.ext import skip_package

    for module in ("typer", "click", "runpy", "__main__"):
        skip_package(module)  # where the command begins is not a line of the user's
    run()
