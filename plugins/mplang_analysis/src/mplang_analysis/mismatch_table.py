"""Table of settings that differ between parties and must be equal."""

from __future__ import annotations

from collections.abc import Mapping

MAX_ROWS = 50


def differences(told: Mapping[str, Mapping[str, str]]) -> str:
    """Return a table of what parties have in common by name, but not by value; empty if nothing.

    What one of them does not have counts for nothing: it may not need it.

    Args:
        told: by name of the party, what it has, by name.

    Example:
        >>> differences({"alice": {"jax": "0.8.0"}, "bob": {"jax": "0.8.0"}, "carol": {}})
        ''
        >>> print(differences({"alice": {"jax": "0.8.0", "spu": "1"}, "bob": {"jax": "0.9.0"}}))
             alice  bob
        jax  0.8.0  0.9.0
    """
    names = dict.fromkeys(name for each in told.values() for name in each)
    differing = [
        name for name in names if len({each[name] for each in told.values() if name in each}) > 1
    ]
    if not differing:
        return ""
    shown, left_out = differing[:MAX_ROWS], differing[MAX_ROWS:]
    rows = [["", *told]]
    rows += [[name, *(each.get(name, "-") for each in told.values())] for name in shown]
    rows += [[f"and {len(left_out)} more", *("" for _ in told)]] if left_out else []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
