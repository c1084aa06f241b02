"""Effort of an analysis, by ops and what flows into them, with one limit for all parties."""

from __future__ import annotations

from collections.abc import Iterable

from mplang_analysis.labels import Label

MAX_EFFORT = 2_500_000
"""The effort at which a program is refused; ``mplang review`` takes some two seconds up to it.

It is a setting of workers, compared before a program runs: what one refuses, no other takes."""

PER_OP = 100  # as much as a hundred entries of labels
PER_STEP = 4  # characters of a type that a row tells


def effort(labels: Iterable[Label], characters: int = 0) -> int:
    """Return the effort of an op or an event: its own, and one for each entry of its labels.

    Args:
        labels: labels of what flows in.
        characters: of the type that the row of an event tells, as of a table with many columns.

    Example:
        >>> from mplang_analysis import own
        >>> effort([own(0, "input 0") | own(1, "input 1")])
        102
    """
    found = PER_OP + characters // PER_STEP
    for label in labels:  # a loop takes half the time of a sum, for each op
        found += len(label.sources) + len(label.keys)
        if label.pieces or label.derived or label.changers:
            found += len(label.pieces) + len(label.derived) + len(label.changers)
        if label.lineage is not None:
            found += len(label.lineage.columns)
    return found
