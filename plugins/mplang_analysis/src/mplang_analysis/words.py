"""Words of reports and rules: kinds of rows, conditions, roles of columns, functions of guards.

Rules of owners, reports and the kit take them from here. A package that brings conditions of
messages or functions of guards declares them by an entry point of the group ``mplang.words``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from mplang_core.ext import PluginError, PluginLoadError, plugin_manager

GROUP_OF_WORDS = "mplang.words"
"""Entry points that name the :class:`Words` of a package."""

FRONTENDS = "mplang.frontends"
"""Entry points that name the families of ops."""

BETWEEN_CONDITIONS = ", "
"""What stands between the conditions of a row."""


class Word(StrEnum):
    """Word of an enumeration; reports, rules and tests have it as plain text."""

    def __repr__(self) -> str:
        return repr(self.value)


class What(Word):
    """Kinds of rows of a disclosure table; the analysis alone makes rows."""

    MOVE = "move"
    REVEAL = "reveal"
    PREDICATE = "predicate"
    INDEX = "index"
    MATCH = "match"
    RESULT = "result"
    SIZE = "size"
    DURATION = "duration"
    FAILURE = "failure"
    CHANGE = "change"


class When(Word):
    """Conditions of rows: how often, or when, something is told."""

    ONCE = "once"
    PER_ITERATION = "per iteration"
    IN_A_BRANCH = "in a branch"
    IF_ASKED_FOR = "if asked for"
    IF_AN_OP_FAILS = "if an op fails"
    ANY_NUMBER = "any number of times"
    IF_IT_DEVIATES = "if it deviates"


WorkerMode: TypeAlias = Literal["production", "development"]
"""Whether workers run whole programs only, or standard mode and eager calls, too."""


class Role(Word):
    """Uses of a column by which rows are made or grouped; any other use is a function."""

    BY = "by"
    FILTER = "filter"
    MATCH = "match"
    UNIT = "unit"


def any_type(kind: str) -> bool:
    """Return whether a function is of columns of a type, for one that is of all."""
    return True


@dataclass(frozen=True, slots=True)
class Function:
    """Function that a guard computes of a column, such as ``mean`` in ``mean(people.pay)``.

    Attributes:
        name: its name, a word.
        of: whether it is of columns of a type, as data sets declare types.
        of_unit: whether it is of the unit of a data set alone.

    Example:
        >>> Function("longest", of=lambda kind: kind == "string").offers("string", is_unit=False)
        True
    """

    name: str
    of: Callable[[str], bool] = any_type
    of_unit: bool = False

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or self.name in set(Role):
            raise ValueError(f"a function of a guard is a word, and no role, got {self.name!r}")

    def offers(self, kind: str, *, is_unit: bool) -> bool:
        """Return whether it is worth naming it of a column.

        Args:
            kind: the type of the column; empty if it is unknown.
            is_unit: whether units of its data set differ by it.
        """
        return is_unit if self.of_unit else not kind or self.of(kind)


@dataclass(frozen=True, slots=True)
class Words:
    """Vocabulary of a package; an entry point of ``mplang.words`` names one of its family.

    Its module is light: the process of a worker that faces the network imports it.

    Attributes:
        functions: what its guards compute.
        times: conditions of its messages (``Message.when``), each as sentences of reports say it.
        reads: what its ops read of a party's data besides operands and data sets (``reads=`` of an
            op), so that rules can name it.

    Raises:
        ValueError: a condition is one of :class:`When`, or has a comma, which rows put between.

    Example:
        >>> Words([Function("median")], {"if it rains": "on rainy days"}).times
        {'if it rains': 'on rainy days'}
    """

    functions: Sequence[Function] = ()
    times: Mapping[str, str] = field(default_factory=dict)
    reads: Sequence[str] = ()

    def __post_init__(self) -> None:
        own = set(When)
        wrong = [each for each in self.times if not each.strip() or "," in each or each in own]
        if wrong:
            raise ValueError(f"a condition is of this package, and has no comma, got {wrong[0]!r}")


def installed() -> Iterator[tuple[str, Words]]:
    """Yield the words of each installed package, with its family.

    A package that does not load has none; :func:`unloaded_words` tells why.
    """
    for family in plugin_manager.names(GROUP_OF_WORDS):
        try:
            yield family, words_of(family)
        except PluginError:
            continue


def words_of(family: str) -> Words:
    """Return the words that the package of a family declares, or none.

    Raises:
        PluginError: its module does not load, or names no :class:`Words`.
    """
    found = plugin_manager.entry(GROUP_OF_WORDS, family)
    if found is None:
        return Words()
    if not isinstance(found, Words):
        raise PluginLoadError(
            f"the entry point {family!r} of {GROUP_OF_WORDS} is not a Words object, got {found!r}"
        )
    return found


def unloaded_words() -> list[str]:
    """Return why the words of packages did not load."""
    records = [each for each in plugin_manager.records() if each.group == GROUP_OF_WORDS]
    return [f"{r.distribution} did not load: {r.reason}" for r in records if r.status == "failed"]


def guard_functions() -> dict[str, list[Function]]:
    """Return what installed guards compute, by name."""
    found: dict[str, list[Function]] = {}
    for _, words in installed():
        for each in words.functions:
            found.setdefault(each.name, []).append(each)
    return found


def guard_families() -> list[str]:
    """Return the families of installed guards, which rules name as declassifiers."""
    return [family for family, words in installed() if words.functions]


def has_family(family: str) -> bool:
    """Return whether ops of a family are installed; no module of it is imported."""
    return family in plugin_manager.names(FRONTENDS)


def may_have_guards(family: str) -> bool:
    """Return whether ops of a family are installed: their guards may declare no functions."""
    return has_family(family)


def declared_reads() -> set[str]:
    """Return the private data that installed packages declare to read, beside data sets."""
    return {name for _, words in installed() for name in words.reads}


def declared_times() -> dict[str, str]:
    """Return the conditions that installed packages declare, each as sentences say it."""
    return {when: said for _, words in installed() for when, said in words.times.items()}


def is_condition(text: str) -> bool:
    """Return whether a text is a condition of rows, of this package or an installed one.

    Example:
        >>> is_condition("if asked for"), is_condition("if it rains")
        (True, False)
    """
    return text in _SAID or text in declared_times()


def phrase_of(when: str) -> str:
    """Return a condition as sentences say it; nothing for once.

    Example:
        >>> phrase_of("per iteration"), phrase_of("in a branch")
        ('each time around a loop, however often', 'in a branch')
    """
    return _SAID[when] if when in _SAID else declared_times().get(when, when)


_SAID: dict[str, str] = {each.value: each.value for each in When} | {
    When.ONCE: "",
    When.PER_ITERATION: "each time around a loop, however often",
}
