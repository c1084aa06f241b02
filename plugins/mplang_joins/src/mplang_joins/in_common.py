"""``mp.overlap``: units that several parties have in common, for a guard. Imports no JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from mplang_match.ext import key_columns

import mplang_core as mp
from mplang_core import MPObject, TableType, TensorType
from mplang_core.ext import TraceError, at
from mplang_joins.across.groups import JoinedGroups, ResultColumn, ResultOrder
from mplang_joins.guarded.form import (
    FUNCTIONS,
    Functions,
    UnitAggregate,
    UnitForm,
    digits_of,
    is_float,
    room_of,
    room_of_means,
)
from mplang_joins.guarded.ops import By, has_sum, units
from mplang_joins.on_shares import check_field, run_op, salts
from mplang_joins.ops import MAX_GROUPS
from mplang_joins.published import Label, published_column
from mplang_joins.sides import JoinSides, On, OwnedTable

LEAST_FRACTION = 34
"""Bits of a fraction that a millionth takes, so that means of floats are right."""


def overlap(
    *tables: MPObject, on: On, rows: Mapping[str, int] | None = None, to: str | None = None
) -> Overlap:
    """Return the units that tables of several parties have in common, for ``mp.guard.aggregate``.

    Nobody learns which units these are, nor how many; only aggregates over ``k`` of them and more
    are told, and rules of owners count on it (``context.declassifiers``, ``context.k``) if the
    tables have rows as data sets give them.

    Args:
        *tables: two or more, each at another party, with any number of rows for each unit.
        on: the column that tells whose rows these are; columns with different names as a tuple with
            one of each table, ``[("id", "customer")]``. Rows without it are left out.
        rows: by party how many units its table has at most, as ``{"bank": 1200}``. By default the
            number that its owner publishes of the data set, ``keys:`` of the column or ``rows:``.
        to: the SPU; by default the only one of the cluster.

    Returns:
        What ``mp.guard.aggregate(…, k=20, by=[…], …)`` takes in place of a table.

    Raises:
        TraceError: the tables are not at one party each, a column is not there, two have types of
            which no values are equal, or a bound is missing; shows the line.

    Example:
        >>> import mplang_core as mp
        >>> data = {
        ...     "bank": {"people": {"id": [1, 2, 3, 4], "pay": [10, 20, 30, 40]}},
        ...     "shop": {"sales": {"person": [4, 2, 2, 7, 1]}},
        ... }
        >>> def program():
        ...     people, sales = mp.dataset("bank", "people"), mp.dataset("shop", "sales")
        ...     both = mp.overlap(people, sales, on=[("id", "person")], rows={"bank": 5, "shop": 5})
        ...     told = mp.guard.aggregate(both, k=3, pay=("pay", "sum"), n="units")
        ...     return mp.reveal(told, to="P0").table()
        >>> cluster = mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])
        >>> with mp.Simulator(cluster, data=data) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).to_pylist()
        [{'pay': 70, 'n': 3}]
    """
    columns = key_columns(on, len(tables)) or ()
    if len(columns) > 1:
        raise TraceError(
            f"{at()}overlap: units differ by one column, got {len(columns)}; a person of several "
            "columns has one as well in the data set that its owner offers",
            code="T015",
        )
    return Overlap(JoinSides.of("overlap", tables, on, rows, to))


@dataclass(frozen=True, slots=True)
class Overlap:
    """Units that tables of several parties have in common.

    Attributes:
        sides: the tables, and the SPU.
    """

    sides: JoinSides

    def guarded(
        self,
        *,
        k: int,
        by: Sequence[str],
        aggregates: Sequence[tuple[str, str, str]],
        max_share: int | None,
    ) -> JoinedGroups:
        """Return aggregates of the units; ``mp.guard.aggregate`` calls it.

        A unit counts once in a number, with what its column's owner has of it, in each of its
        groups: rows of other owners do not multiply it.

        Args:
            k: how many units each number is made of, at least.
            by: columns to group by, of any owner; their values are published.
            aggregates: name, function and column of each aggregate.
            max_share: the largest part of a number that one unit adds, in millionths.

        Returns:
            The groups, on the SPU: zeros where one is made of fewer units, which nothing tells from
            one that has none.

        Raises:
            TraceError: there is no such column or function, a column has no numbers, or the values
                of a column that is grouped by are not published; shows the line.
        """
        asked = _Asked(self.sides, by, aggregates, k, max_share)
        drawn = salts([each.device for each in self.sides.owned])
        shared = [asked.made(i, salt) for i, salt in enumerate(drawn)]
        return asked.result(shared)

    def noised(
        self, function: str, *, epsilon: float, delta: float, column: str = "", low: float = 0.0,
        high: float = 0.0, values: Sequence[str | int | bool] = (), per_unit: int = 1,
    ) -> JoinedGroups:  # fmt: skip
        """Return a noisy aggregate of the units; functions of ``mp.dp`` call it.

        Each owner draws the noise on its own, and it is added on shares: who has the result knows
        no more than the noise of itself.

        Args:
            function: ``count``, ``sum``, ``mean`` or ``histogram``.
            epsilon: how much it may tell of one unit; it is taken from the budgets of all tables.
            delta: 0 for noise of a Laplace distribution, else that of a Gaussian one.
            column: of which column, of any owner.
            low: what a unit adds at least; of a mean its smallest one.
            high: what it adds at most.
            values: of a histogram the values that are counted.
            per_unit: for how many values a unit counts: 1, the first one of the list.

        Returns:
            The numbers, on the SPU.

        Raises:
            TraceError: there is no such column, it has no numbers, or a bound, epsilon or delta is
                none; shows the line.
        """
        from mplang_joins.noised.asked import noised

        if per_unit != 1:
            raise TraceError(
                f"{at()}dp.{function}: a unit in common counts once, got per_unit={per_unit!r}",
                code="T015",
            )
        bounds = (low, high) if function in ("sum", "mean") else (0.0, 0.0)
        return noised(self.sides, function, column, bounds, tuple(values), (epsilon, delta))


class _Asked:
    """Aggregates that are asked for of units."""

    def __init__(
        self, sides: JoinSides, by: Sequence[str], aggregates: Sequence[tuple[str, str, str]],
        k: int, max_share: int | None,
    ) -> None:  # fmt: skip
        self._sides, self._k, self._max_share = sides, k, max_share
        check_field(sides.spu)
        self._by = [(name, sides.side_of("guard.aggregate", name)) for name in by]
        self._names = [name for name, _, _ in aggregates]
        self._wanted = [self._aggregate(*each) for each in aggregates]
        if not aggregates:
            raise TraceError(
                f"{at()}guard.aggregate: it has no aggregate, such as n='units'", code="T015"
            )

    def made(self, side: int, salt: MPObject) -> MPObject:
        """Return the shares of what an owner makes of its units."""
        owned, form = self._sides.owned[side], self._form(side)
        made = mp.device(owned.device)(units)(
            salt, owned.table, on=tuple(self._sides.keys[side]), kinds=self._sides.kinds,
            by=self._groups(side), functions=form.functions, bits=form.bits, counts=form.counts,
            bounded=form.bounded, side=side,
            sides=len(self._sides.owned), rows=self._sides.bounds[side],
        )  # fmt: skip
        return mp.seal(made, to=self._sides.spu.name)

    def result(self, shared: Sequence[MPObject]) -> JoinedGroups:
        """Return the groups."""
        forms = [self._form(i) for i in range(len(shared))]
        bound = {} if self._max_share is None else {"max_share": self._max_share}
        attrs = {
            "sides": tuple(map(tuple, forms)), "wanted": tuple(map(tuple, self._wanted)),
            "k": self._k, **bound,
        }  # fmt: skip
        total = len(self._labels())
        plain = [TensorType("bool", (total,))]
        plain += [
            TensorType("f64" if w.function == "mean" else "i64", (total,)) for w in self._wanted
        ]
        tells, *numbers = run_op("joins.guarded", shared, plain, attrs, self._sides.spu)
        return JoinedGroups(
            tells, tuple(numbers), (None,) * len(numbers), None, self._columns(), self._type(),
            tuple(ResultOrder(i, False, False) for i in range(len(self._by))), self._k,
        )  # fmt: skip

    # -- what is asked

    def _aggregate(self, name: str, function: str, column: str) -> UnitAggregate:
        if function not in FUNCTIONS or (not column and function != "units"):
            of_columns = " and ".join(each for each in FUNCTIONS if each != "units")
            raise TraceError(
                f"{at()}guard.aggregate: {name}={(column, function) if column else function!r} is "
                f"not there over units in common, but 'units', and of columns {of_columns}",
                code="T015",
            )
        if function == "units":
            if column:
                raise TraceError(
                    f"{at()}guard.aggregate: units are counted as {name}='units'", code="T015"
                )
            return UnitAggregate("units", 0, self._sides.keys[0][0])
        side = self._sides.side_of("guard.aggregate", column)
        kind = self._sides.owned[side].columns[column]
        if function != "count" and not has_sum(kind):
            raise TraceError(
                f"{at()}guard.aggregate: column {column!r} is {kind}, and has no {function}",
                code="T015",
            )
        return UnitAggregate(function, side, column)

    def _functions(self, side: int) -> Functions:
        """Return what is computed of the columns of a side."""
        computed: dict[str, dict[str, None]] = {}
        for each in self._wanted:
            if each.function == "units":
                computed.setdefault(self._sides.keys[side][0], {})["units"] = None
            elif each.side == side:
                computed.setdefault(each.column, {})[each.function] = None
        return tuple((column, tuple(functions)) for column, functions in computed.items())

    def _form(self, side: int) -> UnitForm:
        groups, functions = self._groups(side), self._functions(side)
        kinds = self._sides.owned[side].columns
        return UnitForm(
            prod(len(labels) for _, labels in groups),
            functions,
            tuple(kinds[column] for column, _ in functions),
            *self._bits(side),
            self._max_share is not None,
            side,
            len(self._sides.owned),
        )

    def _bits(self, side: int) -> tuple[int, int]:
        """Return how many bits sums and counts of one unit have at most, so that all fit."""
        rows, spu = self._sides.bounds[side], self._sides.spu
        sums = counts = room_of(rows, bounded=self._max_share is not None)
        for each in self._wanted:
            if each.function == "mean" and each.side == side:
                kind = self._sides.owned[side].columns[each.column]
                fraction: int = spu.config.fxp_fraction_bits
                room = room_of_means(rows, spu.config.bits, fraction, kind)
                sums, counts = min(sums, room[0]), min(counts, room[1])
                if counts < 1 or (is_float(kind) and fraction < LEAST_FRACTION):
                    raise TraceError(
                        f"{at()}guard.aggregate: {spu.name} has no room for the mean of "
                        f"{each.column!r}, which is {kind}, over {rows} units; take the field "
                        "FM128",
                        code="T015",
                    )
        return sums, counts

    def _groups(self, side: int) -> By:
        return tuple((name, self._values(name, side)) for name, owner in self._by if owner == side)

    def _values(self, column: str, side: int) -> tuple[Label, ...]:
        owned: OwnedTable = self._sides.owned[side]
        published = published_column(owned.table, owned.party, column)
        if published.values:
            return tuple(published.values)
        if published.range is not None and published.whole:
            low, high = (int(end) for end in published.range)
            if high - low < MAX_GROUPS:
                return tuple(range(low, high + 1))
        raise TraceError(
            f"{at()}guard.aggregate: which values {column!r} may have is not known beforehand, and "
            f"which there are may be private: let {owned.party} publish values: or ranges: of it",
            code="T015",
        )

    # -- the result

    def _labels(self) -> list[dict[str, Label]]:
        """Return the values of the columns of groups in each of them, in the order of numbers."""
        of_sides = [each for side in range(len(self._sides.owned)) for each in self._groups(side)]
        names = [name for name, _ in of_sides]
        return [dict(zip(names, each, strict=True)) for each in product(*(v for _, v in of_sides))]

    def _columns(self) -> tuple[ResultColumn, ...]:
        labels = self._labels()
        made = [ResultColumn(tuple(each[name] for each in labels)) for name, _ in self._by]
        for i, each in enumerate(self._wanted):
            made.append(ResultColumn(None, i, self._digits(each)))
        return tuple(made)

    def _digits(self, wanted: UnitAggregate) -> int | None:
        """Return by which power of ten a number of the result is multiplied, if it is."""
        kind = self._sides.owned[wanted.side].columns.get(wanted.column, "")
        if wanted.function == "sum":
            return digits_of(kind)
        divided = wanted.function == "mean" and not is_float(kind)
        return digits_of(kind) or None if divided else None

    def _type(self) -> TableType:
        owned = self._sides.owned
        types = [(name, owned[side].columns[name]) for name, side in self._by]
        for name, each in zip(self._names, self._wanted, strict=True):
            kind = owned[each.side].columns.get(each.column, "")
            types.append((name, _type_of(each.function, kind)))
        return TableType(tuple(types))


def _type_of(function: str, kind: str) -> str:
    """Return the type of an aggregate, as guards of one table have it."""
    if function == "mean" or (function == "sum" and is_float(kind)):
        return "double"
    if function == "sum" and kind.startswith("decimal"):
        return f"decimal128(38, {digits_of(kind)})"
    return "uint64" if function == "sum" and kind.startswith("u") else "int64"
