"""Ops of the dialect ``dp``. Imports no Arrow and no OpenDP."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any

from mplang_analysis import DELTA, EPSILON, Guarding, GuardRule
from mplang_tables import check_table, fits, number_columns

from mplang_core import TableType, TensorType, simple_op
from mplang_core.ext import Feop, Operation
from mplang_dp.functions import WORDS

MAX_EPSILON = 20.0
MIN_EPSILON = 1e-6
MIN_DELTA = 1e-12
MAX_DELTA = 0.01
MAX_PER_UNIT = 1 << 20
MAX_VALUES = 4096
MAX_BOUND = 1e15
MIN_BOUND = 1e-100
MIN_SPAN = 1e-9  # of the largest bound, by which those of a mean differ at least


def parts_of(amount: float, part: Decimal) -> int:
    """Return how many parts of a size an amount is, rounded up.

    Example:
        >>> parts_of(0.1, Decimal("1e-6"))
        100000
    """
    return int((Decimal(repr(amount)) / part).to_integral_value(ROUND_CEILING))


def _guarding(op: Operation) -> Guarding:
    """Return what the column is used for, and what it costs."""
    attrs = op.attrs
    epsilon, delta = parts_of(attrs["epsilon"], EPSILON), parts_of(attrs["delta"], DELTA)
    function = op.opcode.partition(".")[2]
    column = attrs.get("column", attrs["unit"])
    return Guarding([attrs["unit"]], {column: [function]}, 0, epsilon, delta)


def _op(name: str) -> Callable[[Callable[..., Any]], Feop]:
    """Declare an op on a table of one party that adds noise."""
    return simple_op(
        name,
        interfaces=[GuardRule(_guarding, WORDS.functions)],
        reads=(),
        inputs=({"kind": "Table"},),
        outputs=({"kind": "Tensor"},),
    )


@_op("dp.count")
def count(x: TableType, *, unit: str, epsilon: float, delta: float, per_unit: int) -> TensorType:
    """Count units, or rows of which each unit has some; see :func:`mplang_dp.count`.

    Args:
        x: a table.
        unit: the column that tells whose rows these are.
        epsilon: how much the result may tell of one unit.
        delta: 0 for Laplace noise.
        per_unit: how many rows of a unit count.

    Returns:
        ``i64[]``.

    Raises:
        TraceError: the column is not there, or a number is none that it may be.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_dp import ops
        >>> from mplang_tables import table
        >>> people = {"id": list(range(30)), "pay": [3.0] * 30}
        >>> def program():
        ...     x = mp.device("P0")(table(people))()
        ...     return mp.device("P0")(ops.count)(x, unit="id", epsilon=1.0, delta=0.0, per_unit=1)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     abs(int(mp.fetch(sim, mp.evaluate(sim, program))) - 30) < 30
        True
    """
    _check(x, unit, epsilon, delta)
    _check_per_unit(per_unit)
    return TensorType("i64")


@_op("dp.sum")
def sum_(
    x: TableType, *, unit: str, epsilon: float, delta: float, column: str, low: float, high: float
) -> TensorType:
    """Sum a column; see :func:`mplang_dp.sum`.

    Args:
        x: a table.
        unit: the column that tells whose rows these are.
        epsilon: how much the result may tell of one unit.
        delta: 0 for Laplace noise.
        column: what is added.
        low: what a unit adds at least.
        high: what it adds at most.

    Returns:
        ``f64[]``.

    Raises:
        TraceError: a column is not there or has no numbers, or a number is none that it may be.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_dp import ops
        >>> from mplang_tables import table
        >>> people = {"id": list(range(30)), "pay": [3.0] * 30}
        >>> def program():
        ...     x = mp.device("P0")(table(people))()
        ...     return mp.device("P0")(ops.sum_)(
        ...         x, unit="id", epsilon=1.0, delta=0.0, column="pay", low=0.0, high=5.0
        ...     )
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     abs(float(mp.fetch(sim, mp.evaluate(sim, program))) - 90) < 150
        True
    """
    _check(x, unit, epsilon, delta)
    _check_numbers(x, column, low, high)
    return TensorType("f64")


@_op("dp.mean")
def mean(
    x: TableType, *, unit: str, epsilon: float, delta: float, column: str, low: float, high: float
) -> TensorType:
    """Return the mean over units; see :func:`mplang_dp.mean`.

    Args:
        x: a table.
        unit: the column that tells whose rows these are.
        epsilon: how much the result may tell of one unit.
        delta: 0 for Laplace noise.
        column: of what the mean is.
        low: the smallest mean of a unit.
        high: the largest one.

    Returns:
        ``f64[]``.

    Raises:
        TraceError: a column is not there or has no numbers, or a number is none that it may be.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_dp import ops
        >>> from mplang_tables import table
        >>> people = {"id": list(range(30)), "pay": [3.0] * 30}
        >>> def program():
        ...     x = mp.device("P0")(table(people))()
        ...     return mp.device("P0")(ops.mean)(
        ...         x, unit="id", epsilon=1.0, delta=0.0, column="pay", low=0.0, high=5.0
        ...     )
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     abs(float(mp.fetch(sim, mp.evaluate(sim, program))) - 3) < 9
        True
    """
    _check(x, unit, epsilon, delta)
    _check_numbers(x, column, low, high)
    check_span(low, high)
    return TensorType("f64")


@_op("dp.histogram")
def histogram(
    x: TableType,
    *,
    unit: str,
    epsilon: float,
    delta: float,
    column: str,
    values: tuple[str | int, ...],
    per_unit: int,
) -> TensorType:
    """Count units by the values of a column; see :func:`mplang_dp.histogram`.

    Args:
        x: a table.
        unit: the column that tells whose rows these are.
        epsilon: how much the result may tell of one unit.
        delta: 0 for Laplace noise.
        column: whose values are counted.
        values: the values.
        per_unit: for how many values a unit counts.

    Returns:
        ``i64[values]``.

    Raises:
        TraceError: a column is not there, or a number or a value is none that it may be.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_dp import ops
        >>> from mplang_tables import table
        >>> people = {"id": list(range(30)), "pay": [3.0] * 30}
        >>> def program():
        ...     x = mp.device("P0")(table(people))()
        ...     return mp.device("P0")(ops.histogram)(
        ...         x, unit="id", epsilon=1.0, delta=0.0, column="id", values=(1, 2), per_unit=1
        ...     )
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).shape == (2,)
        True
    """
    _check(x, unit, epsilon, delta)
    _check_per_unit(per_unit)
    check_values(_type_of(x, column), column, values)
    return TensorType("i64", (len(values),))


def check_values(kind: str, column: str, values: Sequence[object]) -> None:
    """Refuse values that are counted and that a column of a type cannot have.

    Raises:
        TypeError: one is none, or the type is none that is counted.
    """
    wanted = str if kind == "string" else bool if kind == "bool" else int
    if wanted is int and "int" not in kind:
        raise TypeError(f"column {column!r} is {kind}; strings, integers and bools are counted")
    if not 1 <= len(values) <= MAX_VALUES or len(set(values)) != len(values):
        raise TypeError(f"the values are 1 to {MAX_VALUES}, each of them once")
    wrong = [value for value in values if type(value) is not wanted or not fits(value, kind)]
    if wrong:
        raise TypeError(f"column {column!r} is {kind}, got {str(wrong[0])[:40]!r}")


def _type_of(x: TableType, column: str) -> str:
    types = dict(x.columns)
    if column not in types:
        raise TypeError(f"there is no column {column!r}; there are {', '.join(types)}")
    return types[column]


def _check(x: TableType, unit: str, epsilon: float, delta: float) -> None:
    check_table(x)
    _type_of(x, unit)
    check_amounts(epsilon, delta)


def check_amounts(epsilon: float, delta: float) -> None:
    """Refuse an epsilon or a delta that is none.

    Raises:
        TypeError: it is too small or too large.
    """
    if not MIN_EPSILON <= epsilon <= MAX_EPSILON:
        raise TypeError(f"epsilon is from {MIN_EPSILON:g} to {MAX_EPSILON:g}, got {epsilon:g}")
    if delta and not MIN_DELTA <= delta <= MAX_DELTA:
        raise TypeError(f"delta is 0, or from {MIN_DELTA:g} to {MAX_DELTA:g}, got {delta:g}")


def _check_per_unit(per_unit: int) -> None:
    if not 1 <= per_unit <= MAX_PER_UNIT:
        raise TypeError(f"per_unit is from 1 to {MAX_PER_UNIT}, got {per_unit}")


def _check_numbers(x: TableType, column: str, low: float, high: float) -> None:
    kind = _type_of(x, column)
    if column not in number_columns(x):
        raise TypeError(f"column {column!r} is {kind}, and no numbers")
    check_bounds(low, high)


def check_bounds(low: float, high: float) -> None:
    """Refuse bounds of what a unit adds that are none.

    Raises:
        TypeError: they are in the wrong order, too small or too large.
    """
    largest = max(abs(low), abs(high))
    if not (low <= high and MIN_BOUND <= largest <= MAX_BOUND) or math.isnan(low + high):
        raise TypeError(
            "low and high are bounds of what a unit adds, the larger one from "
            f"{MIN_BOUND:g} to {MAX_BOUND:g}, got {low:g} and {high:g}"
        )


def check_span(low: float, high: float) -> None:
    """Refuse bounds of means that are too close to each other.

    Raises:
        TypeError: they are.
    """
    if high - low < MIN_SPAN * max(abs(low), abs(high)):
        raise TypeError(
            f"low and high differ by at least {MIN_SPAN:g} of them, got {low:g} and {high:g}"
        )
