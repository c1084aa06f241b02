"""Entries of a log as the gate records them: nothing that a coordinator writes is long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mplang_analysis.ext import MAX_SHORTENED, shortened

from mplang_policy.decision import Decision
from mplang_policy.ledger import canonical, digest_of
from mplang_policy.request import told

MAX_WHY = 2000  # bytes of the reason of a refusal
MAX_ROWS = 3000  # bytes of the rows that are refused, all together
MAX_LISTED = 8  # columns of a row that is refused


def shortened_fields(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an entry is about, with no long text."""
    limits = {"why": MAX_WHY}
    return {
        name: shortened(value, limits.get(name, MAX_SHORTENED)) if isinstance(value, str) else value
        for name, value in about.items()
    }


def refusal_of(decision: Decision) -> dict[str, Any]:
    """Return which rows of a program are refused, as many as fit, for the log.

    Returns:
        As ``refused`` the rows, as ``more`` how many others there are, as ``sha256`` the SHA-256
        of all rows that the decision names, whole.
    """
    rows = [
        {**told(each.request), "code": each.why.code, "rules": [r.shown for r in each.why.rules]}
        for each in decision.refused
    ]
    kept, size = list[dict[str, Any]](), 0
    for row in map(_listed, rows):
        size += len(canonical(row))
        if size > MAX_ROWS:
            break
        kept.append(row)
    more = decision.more + len(rows) - len(kept)
    return {"refused": kept, "more": more, "sha256": digest_of(rows)}


def _listed(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with the first of many columns, and how many others there are."""
    return {
        name: [*value[:MAX_LISTED], f"and {len(value) - MAX_LISTED} more"]
        if isinstance(value, list) and len(value) > MAX_LISTED
        else value
        for name, value in row.items()
    }
