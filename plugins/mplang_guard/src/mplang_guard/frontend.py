"""``mp.guard.aggregate``: aggregates of a table over at least ``k`` persons."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from mplang_analysis import WHOLE

import mplang_core as mp
from mplang_core import MPObject
from mplang_core.ext import TraceError, at

Wanted: TypeAlias = str | tuple[str, str]
Aggregates: TypeAlias = tuple[tuple[str, str, str], ...]


@runtime_checkable
class HasUnits(Protocol):
    """Units that a guard aggregates elsewhere than at one party, such as on secret shares."""

    def guarded(
        self, *, k: int, by: Sequence[str], aggregates: Aggregates, max_share: int | None
    ) -> Any:
        """Return aggregates over ``k`` units and more.

        Args:
            k: how many different units each number is made of, at least.
            by: columns to group by.
            aggregates: name, function and column of each aggregate.
            max_share: the largest part of a number that one unit adds, in millionths.
        """


def aggregate(
    table: Any,
    *,
    unit: str = "",
    k: int,
    by: Sequence[str] = (),
    max_share: float | None = None,
    **aggregates: Wanted,
) -> Any:
    """Return aggregates of a table of one party, without groups of less than ``k`` persons.

    Rules of owners count on it (``context.declassifiers``, ``context.k``) if the table has rows as
    data sets give them: filters, the choice of columns, ``semi_join`` and ``anti_join`` may come
    before, and nothing that computes a column which is aggregated or grouped by.

    Args:
        table: a table at one party; or what several parties have in common, as ``mp.overlap`` of
            the package mplang-joins gives it.
        unit: the column that tells whose rows these are. Rows without it are left out. An overlap
            has its own.
        k: how many different units each number of the result is made of, at least.
        by: columns to group by; one group of all rows if there are none.
        max_share: the largest part of a number that one unit adds, such as 0.5, to a millionth.
            A unit adds the absolute values of its rows to a ``sum``, ``mean`` or ``std``, to a
            ``std`` their squared distances from the mean as well, and its rows to a ``count``.
        **aggregates: for each column of the result ``(column, function)``, where the function is
            ``count`` (rows with a value), ``sum``, ``mean`` or ``std`` (of a sample); or
            ``"count"`` for the number of rows, ``"units"`` for that of different units. Nulls, and
            floats that are not finite, count as missing.

    Returns:
        A table at that party, or groups of an overlap on secret shares: the columns of ``by``, then
        the aggregates, in the order of the groups. A group is left out if any of its numbers is
        made of less than ``k`` units, or one of them adds more than ``max_share``.

    Raises:
        TraceError: there is no such column or function, or a column has no numbers; shows the line.
        KernelError: a sum does not fit in 64 bits. Raised at the party.

    Example:
        >>> import mplang_core as mp
        >>> people = {"id": [1, 2, 3], "pay": [3.0, 4.0, 8.0]}
        >>> def program():
        ...     t = mp.dataset("bank", "people")
        ...     return mp.guard.aggregate(t, unit="id", k=2, n="units", pay=("pay", "sum"))
        >>> cluster = mp.ClusterSpec([{"name": "bank"}])
        >>> with mp.Simulator(cluster, data={"bank": {"people": people}}) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).to_pylist()
        [{'n': 3, 'pay': 15.0}]
    """
    if isinstance(by, str) or not isinstance(by, Sequence):
        raise TraceError(
            f"{at()}guard.aggregate: by is a list of columns, such as ['city'], got {by!r}",
            code="T015",
        )
    number: Any = k
    k = number.item() if isinstance(number, np.generic) else k
    share = None if max_share is None else _millionths(max_share)
    wanted = tuple((name, *_function(name, given)) for name, given in aggregates.items())
    if isinstance(table, HasUnits):
        if unit:
            raise TraceError(f"{at()}guard.aggregate: units in common have their own column; "
                             f"leave unit={unit!r} out", code="T015")  # fmt: skip
        return table.guarded(k=k, by=tuple(by), aggregates=wanted, max_share=share)
    if not unit:
        raise TraceError(
            f"{at()}guard.aggregate: unit is the column that tells whose rows these are",
            code="T015",
        )
    return _of_table(table, unit, k, by, wanted, share)


def _of_table(
    table: Any, unit: str, k: int, by: Sequence[str], wanted: Aggregates, share: int | None
) -> MPObject:
    """Return aggregates of a table of one party."""
    from mplang_guard.ops import guarded  # which its plugin registers, and takes back if it fails

    bound = {} if share is None else {"max_share": share}
    run = mp.device()(guarded)
    made: MPObject = run(table, unit=unit, k=k, by=tuple(by), aggregates=wanted, **bound)
    return made


def _millionths(part: Any) -> int:
    """Return a part in millionths, rounded down."""
    part = part.item() if isinstance(part, np.generic) else part
    if not isinstance(part, float) or not 1 / WHOLE <= part < 1:
        raise TraceError(
            f"{at()}guard.aggregate: max_share is the part of a number that one unit may add, "
            f"such as 0.5: at least 0.000001 and below 1, got {part!r}",
            code="T015",
        )
    return int(Decimal(repr(part)) * WHOLE)


def _function(name: str, given: Any) -> tuple[str, str]:
    """Return function and column of an aggregate."""
    if isinstance(given, str):
        return given, ""
    pair = isinstance(given, tuple | list) and len(given) == 2
    if not pair or not all(isinstance(each, str) for each in given):
        raise TraceError(
            f"{at()}guard.aggregate: expected {name}=('column', 'mean') or {name}='count', got "
            f"{str(given)[:60]}",
            code="T015",
        )
    column, function = given
    return function, column
