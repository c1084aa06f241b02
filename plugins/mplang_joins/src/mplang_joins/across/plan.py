"""Plan of the computation on shares of the owners' reduced rows. Imports no sqlglot and no JAX."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from mplang_joins.published import Label
from mplang_joins.rows import How, Tensor

Condition: TypeAlias = tuple[Any, ...]
"""A condition of groups: an operator, such as ``ge``, and its operands; see :mod:`.conditions`."""


class Reduced(NamedTuple):
    """Reduced rows of one owner, one for each key.

    Attributes:
        tokens: of its keys; ``[rows]``. ``None`` if all owners' rows are in one order.
        there: whether a row is there; ``[rows]``.
        factors: of each factor the numbers by group, and behind them the limbs of their absolute
            values, if it has any; ``[1 + limbs, groups, rows]``.
    """

    tokens: Tensor
    there: Tensor
    factors: tuple[Tensor, ...]


class Product(NamedTuple):
    """A product of one factor of each side, which is added over all keys.

    Attributes:
        times: an integer that it is multiplied by.
        factors: the position of the factor by side.
    """

    times: int
    factors: tuple[int, ...]


class Total(NamedTuple):
    """A sum of products.

    Attributes:
        products: these.
        scale: by which power of ten it is multiplied, to be an integer; ``None`` of floats.
    """

    products: tuple[Product, ...]
    scale: int | None


class AggregatePlan(NamedTuple):
    """An aggregate of the query.

    Attributes:
        function: ``sum``, ``count``, ``mean``, ``min``, ``max``, ``var_samp`` or ``var_pop``; of a
            standard deviation it is its square, of which whoever reads it takes the root.
        total: what is added; of ``min`` and ``max`` the values, one product, among which it is.
        known: how many values are not nulls; ``None`` if it is never null. Of ``min`` and ``max``
            whether there are any, one product of bits.
        beyond: of ``min`` and ``max`` the bits that their values have at most.
        squares: of a variance what is added of squares.
    """

    function: Literal["sum", "count", "mean", "min", "max", "var_samp", "var_pop"]
    total: Total
    known: Total | None
    beyond: int = 0
    squares: Total | None = None


class KeyNumber(NamedTuple):
    """A number that one side has of each key.

    Attributes:
        side: the position of the side.
        value: that of the factor that is it.
        known: that of the factor that says whether it is not null.
        scale: by which power of ten it is multiplied; ``None`` if it is a float.
    """

    side: int
    value: int
    known: int
    scale: int | None


class RankKey(NamedTuple):
    """A key by which groups are in order on shares.

    Attributes:
        aggregate: the position of the aggregate among those that the result has.
        labels: in place of one the places of the groups in order, which are public.
        descending: whether the largest is first.
        nulls_first: whether null is first.
    """

    aggregate: int
    labels: tuple[int, ...]
    descending: bool
    nulls_first: bool


class FirstGroups(NamedTuple):
    """The groups that come first, which are told alone.

    Attributes:
        most: how many they are at most.
        order: by what groups are in order; of equal ones those with the lower number are first.
    """

    most: int
    order: tuple[RankKey, ...]


class SharePlan(NamedTuple):
    """Computation on shares.

    Attributes:
        hows: how each side is joined with the first one.
        absent: of each factor of a side what it is where a left join finds no row.
        wanted: the aggregates.
        shown: the positions of those that the result has; nobody gets the others.
        rows: how many rows a group has; ``None`` if there is one group, which is always there.
        width: the bits of a limb.
        most: the bits that a total of integers may have; a mean's may be fewer.
        having: conditions of groups, all of which hold.
        first: which groups are told, of those that are there; ``None`` if all are.
        union: whether the sides' rows are one below the other, and not joined.
        where: conditions of keys, all of which hold.
        values: the numbers that these compare.
    """

    hows: tuple[How, ...]
    absent: tuple[tuple[int, ...], ...]
    wanted: tuple[AggregatePlan, ...]
    shown: tuple[int, ...]
    rows: Total | None
    width: int
    most: tuple[int, int]
    having: tuple[Condition, ...] = ()
    first: FirstGroups | None = None
    union: bool = False
    where: tuple[Condition, ...] = ()
    values: tuple[KeyNumber, ...] = ()


Labels: TypeAlias = tuple[Label, ...]
"""The value of a column of groups in each group."""
