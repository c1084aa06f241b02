"""Split of a query over several parties into the work of each owner. Imports sqlglot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from sqlglot import exp
from sqlglot.expressions import Expr

from mplang_joins.across.block import QueryBlock, QuerySource
from mplang_joins.across.refused import QueryRefusedError
from mplang_joins.published import Label
from mplang_joins.rows import How

Kind: TypeAlias = Literal["rows", "there", "has", "sum", "min", "max", "value"]
Function: TypeAlias = Literal[
    "sum", "count", "mean", "min", "max", "var_samp", "var_pop", "stddev_samp", "stddev_pop"
]
"""The aggregates that there are."""

SPREADS: Mapping[type[Expr], Function] = {
    exp.Variance: "var_samp", exp.VariancePop: "var_pop", exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp", exp.StddevPop: "stddev_pop",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Factor:
    """A number that an owner makes of its rows of one key, and of one of its groups.

    Attributes:
        kind: ``rows`` counts them, ``there`` is 1 if there are any, ``has`` if there are any of
            some conditions; ``sum`` adds a value, ``min`` and ``max`` choose one; ``value`` is
            that of the only row.
        value: the value.
        conditions: of a row, without which it counts for nothing.
    """

    kind: Kind
    value: Expr | None = None
    conditions: tuple[Expr, ...] = ()


@dataclass(slots=True)
class OwnerPart:
    """Work of one owner.

    Attributes:
        owner: its rank among the owners.
        how: how its rows are joined with those of the first part.
        keeps: whether rows without a key count, as a left or an anti join keeps them.
        sources: what it reads.
        where: conditions of its rows.
        keys: the columns of the key.
        groups: what it groups by beside the key.
        labels: the values of each of them.
        factors: the numbers that it makes.
    """

    owner: int
    how: How = "inner"
    keeps: bool = False
    sources: list[QuerySource] = field(default_factory=list)
    where: list[Expr] = field(default_factory=list)
    keys: list[Expr] = field(default_factory=list)
    groups: list[Expr] = field(default_factory=list)
    labels: list[tuple[Label, ...]] = field(default_factory=list)
    factors: list[Factor] = field(default_factory=list)

    @property
    def width(self) -> int:
        """In how many groups its rows are."""
        return math.prod(len(each) for each in self.labels)

    def position(self, factor: Factor) -> int:
        """Return the position of a factor, which is made if it is not there."""
        if factor not in self.factors:
            self.factors.append(factor)
        return self.factors.index(factor)


class FactorTerm(NamedTuple):
    """A product of one factor of each part, which is added over all keys.

    Attributes:
        sign: 1 or -1.
        factors: the position of the factor by part.
    """

    sign: int
    factors: tuple[int, ...]


class Aggregate(NamedTuple):
    """An aggregate of the joined rows.

    Attributes:
        function: what it is.
        total: what is added; of ``min`` and ``max`` the values of one owner, among which it is.
        known: how many values are not nulls; nothing if it is never null. Of ``min`` and ``max``
            whether there are any.
        squares: of a variance or its root the squares, which are added as well.
    """

    function: Function
    total: tuple[FactorTerm, ...]
    known: tuple[FactorTerm, ...] = ()
    squares: tuple[FactorTerm, ...] = ()


class KeyValue(NamedTuple):
    """A number that one owner has of each key, one row of which it has.

    Attributes:
        side: the position of its owner's part.
        value: the position of the factor that is it.
        known: that of the factor that says whether it is not null.
    """

    side: int
    value: int
    known: int


@dataclass(frozen=True, slots=True)
class Split:
    """A query, split by owner.

    Attributes:
        block: the query.
        parts: what each owner does; the first one leads the join.
        aggregates: all aggregates that the query names.
        rows: how many rows a group has.
        where: conditions of keys, between columns of several owners.
        values: what these are made of: of one owner each.
        union: whether the parts' rows are one below the other, and not joined: all have factors of
            the same positions then.
    """

    block: QueryBlock
    parts: Sequence[OwnerPart]
    aggregates: Mapping[Expr, Aggregate]
    rows: tuple[FactorTerm, ...]
    where: tuple[Expr, ...] = ()
    values: Mapping[Expr, KeyValue] = field(default_factory=dict)
    union: bool = False


class Owners:
    """Owners of the data in an expression.

    Args:
        tables: the owner of each table by its name.
        sources: what a query reads.
    """

    def __init__(self, tables: Mapping[str, int], sources: Sequence[QuerySource]) -> None:
        self._tables = {name.lower(): owner for name, owner in tables.items()}
        self._sources = {each.name: self._of_source(each) for each in sources}

    def _of_source(self, source: QuerySource) -> int:
        owners = {self._tables[each.name.lower()] for each in source.tree.find_all(exp.Table)}
        if len(owners) != 1:
            raise QueryRefusedError(
                "nested",
                "a query within reads tables of one party; join those of several in the outermost "
                "query, which aggregates them",
                source.tree,
            )
        return owners.pop()

    def of_source(self, source: QuerySource) -> int:
        """Return the owner of a source."""
        return self._sources[source.name]

    def of(self, tree: Expr) -> set[int]:
        """Return the owners of what an expression reads."""
        columns = {self._sources.get(each.table, -1) for each in tree.find_all(exp.Column)}
        within = {self._tables.get(each.name.lower(), -1) for each in tree.find_all(exp.Table)}
        return (columns | within) - {-1}


def there(value: Expr) -> Expr:
    """Return the condition that a value is not null."""
    return exp.Not(this=exp.Is(this=value.copy(), expression=exp.null()))


def square(value: Expr) -> Expr:
    """Return the square of a value."""
    return exp.Mul(this=exp.paren(value.copy()), expression=exp.paren(value.copy()))


def root_of(value: Expr) -> Expr | None:
    """Return of what a value is the square, if :func:`square` made it."""
    if not isinstance(value, exp.Mul) or value.left != value.right:
        return None
    return value.left.unnest() if isinstance(value.left, exp.Paren) else None
