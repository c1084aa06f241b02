"""Stub of the names that installed packages add to ``mplang_core``, for type checkers and editors.

``mplang stubs`` writes it where type checkers look: into the stub package ``mplang-core-stubs``,
whose own stub has the names of mplang's packages.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import Any

from mplang_core.ext import BACKENDS, ConfigError, backends, plugin_manager

FILE = Path("mplang_core-stubs", "_installed.pyi")
GROUP = "mplang.api"
HEAD = '''"""Names that installed packages add to ``mplang_core``; written by ``mplang stubs``."""

# ruff: noqa: I001, N812
'''


def stub(distributions: Collection[str] | None = None) -> str:
    """Return the stub as text.

    Args:
        distributions: the packages whose names it has; all that are installed by default.

    Raises:
        PluginLoadError: a package did not load.

    Example:
        >>> print(stub(["mplang-trace"]).splitlines()[4])
        from mplang_trace import Recording as Recording
    """
    lines = {}
    for record in plugin_manager.records():
        if record.status == "disabled" or (
            distributions and record.distribution not in distributions
        ):
            continue
        if record.group == GROUP:
            module, _, name = record.module.partition(":")
            lines[record.name] = _imported(module, name, record.name)
        elif record.group == BACKENDS and (backend := backends.get(record.name)) is not None:
            host: Any = backend.host
            exported = record.name.capitalize()
            lines[exported] = _imported(host.__module__, host.__qualname__, exported)
    imports = "\n".join(lines[name] for name in sorted(lines))
    names = "\n".join(f'    "{name}",' for name in sorted(lines))
    return f"{HEAD}\n{imports}\n\n__all__ = [\n{names}\n]\n"


def _imported(module: str, name: str, exported: str) -> str:
    """Return the import of an object, from its package if that exports it."""
    if not name:
        return f"import {module} as {exported}"
    package = import_module(module.partition(".")[0])
    if getattr(package, name, None) is getattr(import_module(module), name):
        module = package.__name__
    return f"from {module} import {name} as {exported}"


def installed_file() -> Path:
    """Return the stub that type checkers read in this environment.

    Raises:
        ConfigError: the stub package is not installed.
    """
    for folder in sys.path:
        if (file := Path(folder or ".", FILE)).exists():
            return file
    raise ConfigError(
        "there is no stub package to write into; try: pip install mplang-core-stubs", code="C006"
    )
