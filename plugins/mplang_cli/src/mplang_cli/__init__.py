"""The command ``mplang``: program artifacts, what is installed, new plugins.

``mp.artifact``, ``mp.introspect`` and ``mp.parse`` are found here, where this package is installed.
"""

from mplang_cli.text import parse

__all__ = ["artifact", "introspect", "parse"]
