"""Text of `mplang --version`. Imports nothing of the framework."""

from __future__ import annotations

import platform
from importlib.metadata import version  # its backport is slower to import


def version_text() -> str:
    """Return the versions of the core, of this package and of Python."""
    found = [f"{name} {version(name)}" for name in ("mplang-core", "mplang-cli")]
    return ", ".join([*found, f"Python {platform.python_version()}"])
