"""Search of texts by patterns: whether its work is linear in the text.

Measured with DuckDB 1.5: ``LIKE`` with nothing but percent signs is split at them once, and so is
linear, while all else goes back at each sign. Searching for a text is a product of both lengths, if
a fast one; regular expressions are linear (RE2), but their states and a search that goes on after
each match are not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

MAX_PATTERN = 1024  # characters, or states, of a pattern

OPERATORS = ("~~", "!~~", "~~*", "!~~*", "~~~")
"""Those that take a pattern."""

_LIKE = {"~~", "!~~"}
_BACK = {
    "~~*": "%", "!~~*": "%", "~~~": "*", "like_escape": "%", "not_like_escape": "%",
    "ilike_escape": "%", "not_ilike_escape": "%",
}  # fmt: skip
_NEEDLES = {
    "contains", "instr", "position", "replace", "split", "split_part", "str_split", "string_split",
    "strpos",
}  # fmt: skip
_REGEXES = {
    "regexp_extract", "regexp_full_match", "regexp_matches", "regexp_replace",
    "regexp_split_to_array",
}  # fmt: skip
_COUNT = re.compile(r"([)}]?)\{(\d*),?(\d*)\}")  # and whether a group is repeated
_GOES_ON = re.compile(r"[*+]|\{\d*,\}")  # any number of times
_CHOOSES = re.compile(r"\||\)[*+?{]")


def is_linear(name: str, given: Sequence[Mapping[str, Any]], *, collates: bool) -> bool:
    """Return whether a function is none that searches, or its work is linear in the text.

    Args:
        name: of the function, in lower case.
        given: its operands.
        collates: whether the query has a ``COLLATE``, with which ``LIKE`` goes back, too.

    Example:
        >>> text = {"class": "COLUMN_REF"}
        >>> def like(pattern):
        ...     return {"class": "CONSTANT", "value": {"value": pattern, "is_null": False}}
        >>> is_linear("~~", [text, like("%a%b%")], collates=False)
        True
        >>> is_linear("~~", [text, like("%a_%b%")], collates=False)
        False
    """
    if name not in {*_LIKE, *_BACK, *_NEEDLES, *_REGEXES}:
        return True
    if len(given) < 2 or given[1].get("class") != "CONSTANT":
        return False
    pattern = given[1]["value"].get("value", "")  # of NULL there is none
    if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN:
        return not isinstance(pattern, str)  # such as a number, which DuckDB refuses
    if name in _REGEXES:
        return _is_linear_regex(name, pattern, len(given))
    if name in _NEEDLES or (name in _LIKE and "_" not in pattern and not collates):
        return True
    sign = _BACK.get(name, "%")
    return len(re.findall(rf"{re.escape(sign)}+", pattern.rstrip(sign))) <= 1


def _is_linear_regex(name: str, pattern: str, given: int) -> bool:
    found = [(group, max(1, int(a or 0), int(b or 0))) for group, a, b in _COUNT.findall(pattern)]
    states = len(pattern) + sum(times for group, times in found if not group)
    if states * math.prod(times for group, times in found if group) > MAX_PATTERN:
        return False
    again = name == "regexp_split_to_array" or (name == "regexp_replace" and given > 3)
    return not (again and _GOES_ON.search(pattern) and _CHOOSES.search(pattern))
