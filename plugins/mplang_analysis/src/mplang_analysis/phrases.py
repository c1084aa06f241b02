"""Phrases: types, counts and frequencies of a disclosure table in words."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from mplang_analysis.disclosure_row import DisclosureRow
from mplang_analysis.party_names import quoted, quoted_line
from mplang_analysis.readers import type_in
from mplang_analysis.words import BETWEEN_CONDITIONS, phrase_of
from mplang_core import TableType, TensorType
from mplang_core.ext import printable

MOST_COLUMNS = 12
"""Columns of a table that are named; of others the number is told."""


@runtime_checkable
class Worded(Protocol):
    """Interface of a type that says in words what its values are."""

    def in_words(self) -> str:
        """Return what a value is, as in ``51 tokens``."""

    def size_in_words(self, owner: str) -> str:
        """Return what the size of a value tells, as in ``how many keys bank has``.

        Args:
            owner: what the party is called that has made it.
        """


def listed(items: Iterable[str]) -> str:
    """Return an enumeration.

    Example:
        >>> listed(["a", "b", "c"])
        'a, b and c'
    """
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last


@functools.lru_cache(maxsize=1024)
def amount(kind: str) -> str:
    """Return what a value of a type is, in words.

    Args:
        kind: the type as text; one that cannot be read is named.

    Example:
        >>> print(amount("f32[455, 15]"), amount("f32[]"), amount("bool[3]"), sep="; ")
        455 × 15 numbers; 1 number; 3 yes-or-no answers
        >>> print(amount('table<["id", "int64"], ["pay", "float64"]>'))
        a table of columns id, pay
    """
    match type_in(kind):
        case TensorType(shape=shape) as found:
            noun = "yes-or-no answer" if found.dtype.value == "bool" else "number"
            if found.dtype.value.startswith("c"):
                noun = "complex number"
            counted = " × ".join(map(str, shape)) or "1"
            return f"{counted} {noun}" + ("" if counted == "1" else "s")
        case TableType(columns=columns):
            names = [quoted(name) for name, _ in columns[:MOST_COLUMNS]]
            more = len(columns) - len(names)
            names += [f"and {more} more"] * bool(more)
            return "a table of columns " + ", ".join(names) if columns else "a table"
        case Worded() as found:
            return printable(found.in_words())
    return f"a value of type {quoted(kind)}"


def sizes_of(kinds: Sequence[str], owner: str) -> str:
    """Return what the sizes of values tell, of which else nothing is read.

    Args:
        kinds: their types as text.
        owner: what the party is called that has made them.

    Example:
        >>> sizes_of(["f32[3]", "f32[4]"], "bank")
        'the size of what bank sends it'
    """
    types = map(type_in, kinds)
    texts = [
        printable(each.size_in_words(owner))
        if isinstance(each, Worded)
        else f"the size of what {owner} sends it"
        for each in types
    ]
    return listed(dict.fromkeys(texts))


def amounts(kinds: Sequence[str]) -> str:
    """Return what several values are; equal ones once, with their number.

    Example:
        >>> amounts(["f32[3]", "i64[]", "f32[3]"])
        '2 times 3 numbers, and 1 number'
    """
    counted = Counter(map(amount, kinds))
    return ", and ".join(text if n == 1 else f"{n} times {text}" for text, n in counted.items())


def protected(form: str, kinds: Sequence[str]) -> str:
    """Return what values of a form other than plain are.

    Example:
        >>> protected("share", ["f32[3]"]), protected("share", ["f32[3]", "f32[3]"])
        ('1 share of 3 numbers', '2 shares of 3 numbers')
    """
    counted = Counter(map(amount, kinds)).items()
    return ", and ".join(f"{n} {quoted(form)}{'s' * (n > 1)} of {text}" for text, n in counted)


def in_seconds(seconds: float) -> str:
    """Return a duration with two digits or more.

    Example:
        >>> in_seconds(0.0451), in_seconds(1.34), in_seconds(0.5), in_seconds(0)
        ('45 ms', '1.3 s', '500 ms', '0 s')
    """
    if seconds >= 10:
        return f"{seconds:,.0f} s"
    if seconds >= 1:
        return f"{seconds:.1f} s"
    if seconds < 1e-6:
        return "0 s"
    return f"{seconds * 1e3:.0f} ms" if seconds >= 0.01 else f"{seconds * 1e3:.2g} ms"


def frequency(when: str) -> str:
    """Return how often, in words; nothing for once.

    Example:
        >>> frequency("in a branch, per iteration"), frequency("once")
        ('in a branch, each time around a loop, however often', '')
    """
    return BETWEEN_CONDITIONS.join(filter(None, map(phrase_of, when.split(BETWEEN_CONDITIONS))))


def place(rows: Sequence[DisclosureRow]) -> str:
    """Return the line of some rows, and the number of other lines that they stand for."""
    first = rows[0].line
    more = len({line for row in rows for line in row.lines} - {first})
    others = f" and {more} other line{'s' * (more > 1)}" if more else ""
    return f" ({quoted_line(first)}{others})" if first else ""
