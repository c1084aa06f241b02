"""The line at the end of a run: seconds, bytes, parties, and what is not known."""

from __future__ import annotations

import pytest
from mplang_analysis.shown_runs import _size, summary

from mplang_core.ext import PartyState, Traffic

SEEN = PartyState(links={1: Traffic(sent=3000)})
HIDDEN = PartyState(observable=False)


@pytest.mark.parametrize(
    ("states", "partly", "line"),
    [
        ([SEEN, SEEN], False, "0.64 s, 5.0 kB, 2 parties"),
        ([SEEN, SEEN], True, "0.64 s, 5.0 kB besides what protocols send, 2 parties"),
        ([SEEN], False, "0.64 s, 2.0 kB, 1 party"),
        (
            [SEEN, HIDDEN, HIDDEN], False,
            "0.64 s, 2.0 kB, 3 parties; b, c are not observable, their bytes are not in it",
        ),
        ([HIDDEN] * 2, False, "0.64 s, 2 parties; none is observable, so bytes are not known"),
    ],
)  # fmt: skip
def test_the_line_says_what_is_known_and_what_is_not(states, partly, line):
    assert summary(0.64, 1000, states, "abc"[: len(states)], partly) == line


def test_sizes_have_two_digits_or_more():
    sizes = (0, 999, 1500, 9951, 999_501, 25_000_000, 7e15)
    shown = ["0 bytes", "999 bytes", "1.5 kB", "10 kB", "1.0 MB", "25 MB", "7000 TB"]
    assert [_size(each) for each in sizes] == shown
