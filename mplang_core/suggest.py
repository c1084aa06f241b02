"""What to do about a name that is not there."""

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
    **dict.fromkeys(("cli", "artifact", "introspect", "parse"), "mplang-cli"),
    **dict.fromkeys(("trace", "record", "watch", "Recording", "Span"), "mplang-trace"),
}
"""Distributions of our own, by what they bring. Of others nothing is guessed."""


def install_hint(name: str, there: Iterable[str] = ()) -> str:
    """Say how to get what has a name: a likely spelling, or the package to install.

    Args:
        name: what was asked for.
        there: the names that exist.

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
