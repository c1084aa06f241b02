"""Each word of the glossary stands there once, in the order of the alphabet."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8")
GROUPS = [
    re.findall(r"^\| \*(.+?)\*.* \| .+ \|$", group, re.MULTILINE)
    for group in PAGE.split("\n## ")[1:]
]


def test_each_word_has_one_meaning():
    words = [word for group in GROUPS for word in group]
    assert len(words) > 80
    assert sorted(words) == sorted(set(words))


def test_words_of_a_group_are_in_order():
    for group in GROUPS:
        assert group == sorted(group, key=str.lower)
