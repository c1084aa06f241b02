"""``mp.dp``: differentially private aggregates of a table of one party."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import mplang_core as mp
from mplang_core.ext import TraceError, at


@runtime_checkable
class TakesNoise(Protocol):
    """Units that are aggregated elsewhere than at one party, such as on secret shares."""

    def noised(
        self, function: str, *, epsilon: float, delta: float, column: str = "", low: float = 0.0,
        high: float = 0.0, values: Sequence[str | int | bool] = (), per_unit: int = 1,
    ) -> Any:  # fmt: skip
        """Return a noisy aggregate; arguments are those of the function of that name."""


def count(
    table: Any, *, unit: str = "", epsilon: float, delta: float = 0.0, per_unit: int = 1
) -> Any:
    """Return a noisy number of units, or of rows of which each unit has some.

    Args:
        table: a table of one party, of rows as a data set gives them; or what several parties have
            in common, as ``mp.overlap`` of the package mplang-joins gives it.
        unit: the column that tells whose rows these are. Rows without it are left out. An overlap
            has its own.
        epsilon: how much a result may tell of one unit, above 0 and at most 20; it is taken from
            the budget of the data set.
        delta: 0 for noise of a Laplace distribution; else that of a Gaussian one, for this delta.
        per_unit: how many rows of a unit count, at most; with 1 it is the number of units.

    Returns:
        An ``i64[]`` at the party, which may be negative: the number, and discrete noise of scale
        ``per_unit / epsilon``. Of an overlap groups on secret shares, with a column ``count``.

    Raises:
        TraceError: a column is not there or has no numbers, or a bound, epsilon or delta is none.

    Example:
        >>> def program():
        ...     return mp.dp.count(mp.dataset("bank", "people"), unit="id", epsilon=0.5)
    """
    return _run("count", table, unit, epsilon, delta, per_unit=per_unit)


def sum(
    table: Any,
    column: str,
    *,
    low: float,
    high: float,
    unit: str = "",
    epsilon: float,
    delta: float = 0.0,
) -> Any:
    """Return a noisy sum of a column, to which each unit adds between ``low`` and ``high``.

    Args:
        table: a table of one party, of rows as a data set gives them; or what several parties have
            in common, as ``mp.overlap`` of the package mplang-joins gives it.
        unit: the column that tells whose rows these are. Rows without it are left out. An overlap
            has its own.
        column: a column of numbers; nulls add nothing.
        low: what a unit adds at least, by all of its rows together; its sum is clipped.
        high: what it adds at most.
        epsilon: how much a result may tell of one unit, above 0 and at most 20; it is taken from
            the budget of the data set.
        delta: 0 for noise of a Laplace distribution; else that of a Gaussian one, for this delta.

    Returns:
        An ``f64[]`` at the party: the sum, and noise of scale ``max(|low|, |high|) / epsilon``.
        Both are multiples of ``max(|low|, |high|) / 2**20``, so the noise has no gaps that tell.
        Of an overlap groups on secret shares, with a column ``sum``.

    Raises:
        TraceError: a column is not there or has no numbers, or a bound, epsilon or delta is none.

    Example:
        >>> def program():
        ...     t = mp.dataset("bank", "people")
        ...     return mp.dp.sum(t, "pay", low=0, high=10_000, unit="id", epsilon=0.5)
    """
    bounds = {"low": _number("low", low), "high": _number("high", high)}
    return _run("sum", table, unit, epsilon, delta, column=column, **bounds)


def mean(
    table: Any,
    column: str,
    *,
    low: float,
    high: float,
    unit: str = "",
    epsilon: float,
    delta: float = 0.0,
) -> Any:
    """Return a noisy mean of a column over units, each with the mean of its rows.

    Half of epsilon, and of delta, is for the sum, half for the number of units.

    Args:
        table: a table of one party, of rows as a data set gives them; or what several parties have
            in common, as ``mp.overlap`` of the package mplang-joins gives it.
        unit: the column that tells whose rows these are. Rows without it are left out. An overlap
            has its own.
        column: a column of numbers; nulls are left out.
        low: the smallest mean of a unit; it is clipped.
        high: the largest one.
        epsilon: how much a result may tell of one unit, above 0 and at most 20; it is taken from
            the budget of the data set.
        delta: 0 for noise of a Laplace distribution; else that of a Gaussian one, for this delta.

    Returns:
        An ``f64[]`` at the party, between ``low`` and ``high``. Of an overlap groups on secret
        shares, with a column ``mean``.

    Raises:
        TraceError: a column is not there or has no numbers, or a bound, epsilon or delta is none.

    Example:
        >>> def program():
        ...     t = mp.dataset("bank", "people")
        ...     return mp.dp.mean(t, "pay", low=0, high=10_000, unit="id", epsilon=0.5)
    """
    bounds = {"low": _number("low", low), "high": _number("high", high)}
    return _run("mean", table, unit, epsilon, delta, column=column, **bounds)


def histogram(
    table: Any,
    column: str,
    values: Sequence[str | int | bool],
    *,
    unit: str = "",
    epsilon: float,
    delta: float = 0.0,
    per_unit: int = 1,
) -> Any:
    """Return noisy numbers of units by the values of a column.

    Args:
        table: a table of one party, of rows as a data set gives them; or what several parties have
            in common, as ``mp.overlap`` of the package mplang-joins gives it.
        unit: the column that tells whose rows these are. Rows without it are left out. An overlap
            has its own.
        column: a column of strings, integers or bools.
        values: the values that are counted, a public list; others are not.
        epsilon: how much a result may tell of one unit, above 0 and at most 20; it is taken from
            the budget of the data set.
        delta: 0 for noise of a Laplace distribution; else that of a Gaussian one, for this delta.
        per_unit: for how many values a unit counts, at most: the first ones of the list.

    Returns:
        An ``i64[values]`` at the party; numbers may be negative. Of an overlap groups on secret
        shares, with the column and one ``count``.

    Raises:
        TraceError: a column is not there or has no numbers, or a bound, epsilon or delta is none.

    Example:
        >>> def program():
        ...     t = mp.dataset("bank", "people")
        ...     return mp.dp.histogram(t, "city", ["Bern", "Basel"], unit="id", epsilon=0.5)
    """
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise TraceError(
            f"{at()}dp: values are a list, such as ['Bern'], got {str(values)[:40]!r}", code="T015"
        )
    given = {"column": column, "values": tuple(values), "per_unit": per_unit}
    return _run("histogram", table, unit, epsilon, delta, **given)


def _run(function: str, table: Any, unit: str, epsilon: float, delta: float, **attrs: Any) -> Any:
    """Run an op where its table is."""
    from mplang_dp import ops  # which its plugin registers, and takes back if it fails

    if not isinstance(attrs.get("column", ""), str):
        raise TraceError(f"{at()}dp: it is of one column, got {attrs['column']!r:.40}", code="T015")
    attrs |= {"epsilon": _number("epsilon", epsilon), "delta": _number("delta", delta)}
    if isinstance(table, TakesNoise):
        if unit:
            raise TraceError(
                f"{at()}dp: units in common have their own column; leave unit={unit!r} out",
                code="T015",
            )
        return table.noised(function, **attrs)
    if not unit:
        raise TraceError(
            f"{at()}dp: unit is the column that tells whose rows these are", code="T015"
        )
    run = {"sum": ops.sum_, "count": ops.count, "mean": ops.mean, "histogram": ops.histogram}
    return mp.device()(run[function])(table, unit=unit, **attrs)


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise TraceError(f"{at()}dp: {name} is a number, got {str(value)[:40]!r}", code="T015")
    try:
        return float(value)
    except OverflowError:
        raise TraceError(f"{at()}dp: {name} is beyond what a float holds", code="T015") from None
