"""The command ``mplang``: program artifacts, what is installed, new plugins.

``mp.artifact``, ``mp.introspect`` and ``mp.parse`` are found here, where this package is installed.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # found by __getattr__
    from mplang_cli.text import parse as parse

__all__ = ["artifact", "introspect", "parse"]


def __getattr__(name: str) -> Any:
    """Return what imports the core, when it is used: ``mplang --version`` does not."""
    if name == "parse":
        from mplang_cli.text import parse

        return parse
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
