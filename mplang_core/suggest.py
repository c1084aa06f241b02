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
    lower = {each.lower(): each for each in names}
    if name.lower() in KNOWN:
        return f"try: pip install {KNOWN[name.lower()]}"
    close = difflib.get_close_matches(name.lower(), lower, n=1)
    if close:
        return f"did you mean {lower[close[0]]!r}?"
    return f"there are: {', '.join(sorted(names)) or 'none'}; no package of mplang brings it"
