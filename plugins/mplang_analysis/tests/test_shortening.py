"""Shortening: a foreign text takes little room, and different ones stay different."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st
from mplang_analysis.shortening import MAX_SHORTENED, shortened

TEXTS = st.text(max_size=3 * MAX_SHORTENED) | st.builds(
    lambda text: text * 50, st.text(max_size=20)
)
MORE = 100  # bytes of a length and a SHA-256, in words


@given(TEXTS)
def test_a_text_takes_no_more_bytes_than_the_limit_and_its_hash(text):
    found = shortened(text)
    assert len(json.dumps(found)) <= MAX_SHORTENED + MORE + 2
    assert found == text or found.startswith(text[:1])


@given(TEXTS, TEXTS)
def test_different_texts_stay_different(one, other):
    assert (shortened(one) == shortened(other)) == (one == other)


def test_no_text_can_be_taken_for_one_that_was_cut():
    long = "x" * 1000
    assert shortened(shortened(long)) != shortened(long)


def test_a_wide_letter_counts_as_it_is_written():
    assert shortened("\U00010000" * 16) == "\U00010000" * 16
    assert shortened("\U00010000" * 17).startswith("\U00010000" * 16 + "… (17 characters")
