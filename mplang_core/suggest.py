"""Suggestions for unknown names: similar names, or the package to install."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

CORE = "mplang-core"

KNOWN = {
    "simulator": "mplang-simulator",
    "simulation": "mplang-simulator",
    "http": "mplang-http",
    "jax": "mplang-jax",
    "spu": "mplang-spu",
    "ibis": "mplang-ibis",
    "crypto": "mplang-crypto",
    "passes": "mplang-passes",
    "testing": "mplang-testing",
    "analysis": "mplang-analysis",
    "guard": "mplang-guard",
    "dp": "mplang-dp",
    **dict.fromkeys(("dataset", "catalogue"), "mplang-data"),
    **dict.fromkeys(("cli", "artifact", "introspect", "parse"), "mplang-cli"),
    **dict.fromkeys(("trace", "record", "watch", "Recording", "Span"), "mplang-trace"),
}
"""Distributions of mplang by the names that they provide; no third-party package is suggested."""


def install_hint(name: str, there: Iterable[str] = ()) -> str:
    """Return advice for an unknown name: the package to install, or a similar name.

    Args:
        name: the unknown name.
        there: the names that exist.

    Returns:
        One clause for the end of an error message.

    Example:
        >>> install_hint("simulater", ["simulator"])
        "did you mean 'simulator'?"
        >>> install_hint("jax")
        'try: pip install mplang-jax'
    """
    names = list(there)
    lower = {each.lower(): each for each in names}
    if name.lower() in KNOWN:
        return f"try: pip install {KNOWN[name.lower()]}"
    close = difflib.get_close_matches(name.lower(), lower, n=1)
    if close:
        return f"did you mean {lower[close[0]]!r}?"
    return f"there are: {', '.join(sorted(names)) or 'none'}; no package of mplang brings it"
