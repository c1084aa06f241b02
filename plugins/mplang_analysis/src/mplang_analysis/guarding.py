"""Interface of guards, the ops that aggregate private data so that no row of it is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple, Protocol, runtime_checkable

from mplang_analysis.words import Function
from mplang_core.ext import Operation

EPSILON = Decimal("1e-6")
"""The part in which epsilons are counted, so that their sums are exact."""

DELTA = Decimal("1e-12")
"""The part in which deltas are counted."""

WHOLE = 1_000_000
"""A whole number's share of itself: shares are counted in millionths."""


class Spend(NamedTuple):
    """Budget of a data set that a differentially private op uses.

    Attributes:
        party: whose data set it is.
        data_set: its name.
        epsilon: the epsilon, in parts of ``EPSILON``.
        delta: the delta, in parts of ``DELTA``.
        line: the user's line.
    """

    party: int
    data_set: str
    epsilon: int
    delta: int
    line: str


class Guarding(NamedTuple):
    """Effect of a guard.

    Attributes:
        units: columns of its table by whose distinct values it counts or clips.
        uses: for each column of its table what it is used for: ``by``, or functions.
        k: how many distinct units are at least in what it tells.
        epsilon: what it uses up, in parts of ``EPSILON``; 0 if it adds no noise.
        delta: likewise, in parts of ``DELTA``.
        max_share: the largest part of a number that is one unit's, in millionths.
    """

    units: Sequence[str]
    uses: Mapping[str, Sequence[str]]
    k: int = 0
    epsilon: int = 0
    delta: int = 0
    max_share: int = WHOLE


@runtime_checkable
class Declassifies(Protocol):
    """Interface of a guard: an op that aggregates a table so that no row of it is told."""

    def guarding(self, op: Operation) -> Guarding:
        """Return what the op does with its first operand."""


@dataclass(frozen=True, slots=True)
class GuardRule:
    """A function as the interface :class:`Declassifies`, for ``OpDef(interfaces=[…])``.

    Attributes:
        rule: ``rule(op)``.
        functions: what ``uses`` may name beside ``by``; rules of owners name them too, if the
            package's entry point of the group ``mplang.words`` declares the same.
    """

    rule: Callable[[Operation], Guarding]
    functions: Sequence[Function] = ()

    def guarding(self, op: Operation) -> Guarding:
        """Return what the function does."""
        return self.rule(op)


class Prepared(NamedTuple):
    """Table that an op prepared for a guard on shares.

    Attributes:
        family: the family of that guard, which rules name.
        unit: the column by which rows of several parties are joined, whose values it counts.
        uses: for each column of the table what it is used for: ``by``, or functions.
        waits: the form of what it makes: that guard names the same.
    """

    family: str
    unit: str
    uses: Mapping[str, Sequence[str]]
    waits: str


@runtime_checkable
class Prepares(Protocol):
    """Interface of an op that makes of a table, at its party, what a guard on shares takes."""

    def prepared(self, op: Operation) -> Prepared:
        """Return what it makes of its operand that is a table."""


@dataclass(frozen=True, slots=True)
class PrepareRule:
    """A function as the interface :class:`Prepares`, for ``OpDef(interfaces=[…])``.

    Attributes:
        rule: ``rule(op)``.
    """

    rule: Callable[[Operation], Prepared]

    def prepared(self, op: Operation) -> Prepared:
        """Return what the function does."""
        return self.rule(op)


@runtime_checkable
class Splits(Protocol):
    """Interface of an op whose results are shares of its operand, with nothing changed in it."""

    def splits(self, op: Operation) -> bool:
        """Return whether they are."""


@dataclass(frozen=True, slots=True)
class SplitRule:
    """Rule that results are shares of the operand; the interface :class:`Splits`."""

    def splits(self, op: Operation) -> bool:
        """Return that they are."""
        return True


class ShareGuard(NamedTuple):
    """Effect of a guard on shares.

    Attributes:
        waits: for each operand the form of what a party made of a table.
        k: how many distinct units are at least in what it tells; 0 if it counts none, as noise of
            each party is in what it tells.
        max_share: the largest part of a number that is one unit's, in millionths.
        epsilon: what it uses up of each data set, in parts of ``EPSILON``; 0 if no noise is in it.
        delta: likewise, in parts of ``DELTA``.
    """

    waits: Sequence[str]
    k: int
    max_share: int = WHOLE
    epsilon: int = 0
    delta: int = 0


@runtime_checkable
class GuardsShares(Protocol):
    """Interface of an op on shares that aggregates what parties made of tables for it."""

    def share_guard(self, op: Operation) -> ShareGuard:
        """Return what the op does."""


@dataclass(frozen=True, slots=True)
class ShareGuardRule:
    """A function as the interface :class:`GuardsShares`, for ``OpDef(interfaces=[…])``.

    Attributes:
        rule: ``rule(op)``.
    """

    rule: Callable[[Operation], ShareGuard]

    def share_guard(self, op: Operation) -> ShareGuard:
        """Return what the function does."""
        return self.rule(op)


@runtime_checkable
class Matches(Protocol):
    """Interface of an op among parties that matches tables of one party each.

    Each operand is a table, and its messages tell of it which of its keys are in others, and no
    more. An output has rows of one operand, which stay at their party, and some of its columns.
    """

    def keys(self, op: Operation) -> Sequence[Sequence[str]]:
        """Return for each operand the columns that it is matched on."""

    def bounds(self, op: Operation) -> Sequence[tuple[int, int]]:
        """Return for each operand what bounds that which is told of it.

        Returns:
            How many keys others bring at most, 0 if nothing bounds it; and how many keys have to be
            in common, or nothing is told.
        """
