"""Suggestions for unknown names: similar names, or the package to install."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

CORE = "mplang-core"

_PLUGINS = "simulator http jax spu ibis crypto passes testing analysis guard dp match"
KNOWN = {
    **{name: f"mplang-{name}" for name in _PLUGINS.split()},
    "simulation": "mplang-simulator",
    **dict.fromkeys(("dataset", "catalogue"), "mplang-data"),
    **dict.fromkeys(("cli", "artifact", "introspect", "parse"), "mplang-cli"),
    **dict.fromkeys(("trace", "record", "watch", "Recording", "Span"), "mplang-trace"),
}
"""Distributions of mplang by the names that they provide; no third-party package is suggested."""


FAILED: dict[str, str] = {}
"""Why a plugin did not load, by the name of its entry point."""


def install_hint(name: str, there: Iterable[str] = ()) -> str:
    """Return advice for an unknown name: the package to install, or a similar name.

    Args:
        name: the unknown name.
        there: the names that exist.

    Returns:
        One clause for the end of an error message; of a plugin that is there and did not load, why.

    Example:
        >>> install_hint("simulater", ["simulator"])
        "did you mean 'simulator'?"
        >>> install_hint("jax")
        'try: pip install mplang-jax'
    """
    if name.lower() in FAILED:
        return FAILED[name.lower()]
    names = list(there)
    if name.lower() in KNOWN and name.lower() not in map(str.lower, names):
        return f"try: pip install {KNOWN[name.lower()]}"
    others = f"there are: {', '.join(sorted(names)) or 'none'}; no package of mplang brings it"
    return similar(name, names) or others


def similar(name: str, there: Iterable[str]) -> str:
    """Return a question for an unknown name, ``"did you mean 'P0'?"``; empty if none is similar.

    Args:
        name: the unknown name.
        there: the names that exist.

    Example:
        >>> similar("p0", ["P0", "P1"])
        "did you mean 'P0'?"
    """
    lower = {each.lower(): each for each in there}
    close = difflib.get_close_matches(name.lower(), lower, n=1)
    return f"did you mean {lower[close[0]]!r}?" if close else ""
