"""Traffic of a run: sizes of messages by link, compared with those of another run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from mplang_trace import Recording

Traffic: TypeAlias = Mapping[tuple[int, int], Sequence[int]]
"""Sizes of the messages by sender and receiver, sorted."""

NOISE = 0.002
"""Part by which all bytes of a link may vary where two runs on the same data differ already;
those of SPU's CHEETAH vary by a thousandth."""


def traffic(recording: Recording) -> Traffic:
    """Return what was sent while it was recorded."""
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    for span in recording.spans:
        if span.kind == "send" and span.party is not None:
            found[span.party, int(span.facts["peer"])].append(int(span.facts.get("bytes", 0)))
    return {link: sorted(sizes) for link, sizes in sorted(found.items())}


def alike(one: Traffic, other: Traffic, noisy: bool) -> bool:
    """Return whether two runs sent as many messages, of the same sizes.

    Args:
        one: what one run sent.
        other: what the other one sent.
        noisy: whether runs on the same data differ in sizes.

    Example:
        >>> alike({(0, 1): [8]}, {(0, 1): [16]}, noisy=False)
        False
    """
    if not noisy:
        return one == other
    return one.keys() == other.keys() and all(
        len(mine) == len(other[link]) and abs(sum(mine) - sum(other[link])) <= NOISE * sum(mine)
        for link, mine in one.items()
    )
