"""Kernels of the dialect ``dp``. Import Arrow, DuckDB and OpenDP when they run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from mplang_core import TableType
from mplang_core.ext import KernelContext
from mplang_dp.noise import noisy

STEPS = 1 << 20  # of the largest contribution, in which sums are counted

_NUMBER = TableType((("n", "int64"),))
_VALUES = TableType((("n", "double"),))


def count(
    ctx: KernelContext, table: Any, *, unit: str, epsilon: float, delta: float, per_unit: int
) -> Any:
    """Count units, or some rows of each.

    Args:
        ctx: of the op.
        table: an Arrow table.
        unit: the column that tells whose rows these are.
        epsilon: how much the result may tell of one unit.
        delta: 0 for Laplace noise.
        per_unit: how many rows of a unit count.

    Returns:
        An int64.

    Raises:
        KernelError: the table is not of its type.
    """
    rows = f"SELECT least(count(*), {per_unit}) AS n FROM rows {_by(ctx, unit)}"
    found = _ask(ctx, table, f"SELECT coalesce(sum(n), 0) AS n FROM ({rows})", _NUMBER)
    (told,) = noisy([int(found[0])], per_unit, per_unit, epsilon, delta)
    return np.int64(told)


def sum_(
    ctx: KernelContext, table: Any, *, unit: str, epsilon: float, delta: float, column: str,
    low: float, high: float,
) -> Any:  # fmt: skip
    """Sum a column.

    Args:
        ctx: of the op.
        table: an Arrow table.
        unit: the column that tells whose rows these are.
        epsilon: how much the result may tell of one unit.
        delta: 0 for Laplace noise.
        column: what is added.
        low: what a unit adds at least.
        high: what it adds at most.

    Returns:
        A float64.

    Raises:
        KernelError: the table is not of its type.
    """
    values = _per_unit(ctx, table, "sum", unit, column)
    largest = max(abs(low), abs(high))
    return np.float64(_noisy_sum(np.clip(values, low, high), largest, epsilon, delta))


def mean(
    ctx: KernelContext, table: Any, *, unit: str, epsilon: float, delta: float, column: str,
    low: float, high: float,
) -> Any:  # fmt: skip
    """Return the mean over units.

    Args:
        ctx: of the op.
        table: an Arrow table.
        unit: the column that tells whose rows these are.
        epsilon: how much the result may tell of one unit.
        delta: 0 for Laplace noise.
        column: of what the mean is.
        low: the smallest mean of a unit.
        high: the largest one.

    Returns:
        A float64 between the bounds.

    Raises:
        KernelError: the table is not of its type.
    """
    values = _per_unit(ctx, table, "avg", unit, column)
    middle, reach = (low + high) / 2, (high - low) / 2
    total = _noisy_sum(values - middle, reach, epsilon / 2, delta / 2)
    (units,) = noisy([len(values)], 1, 1.0, epsilon / 2, delta / 2)
    return np.float64(np.clip(middle + total / max(units, 1), low, high))


def histogram(
    ctx: KernelContext, table: Any, *, unit: str, epsilon: float, delta: float, column: str,
    values: Sequence[str | int], per_unit: int,
) -> Any:  # fmt: skip
    """Count units by the values of a column.

    Args:
        ctx: of the op.
        table: an Arrow table.
        unit: the column that tells whose rows these are.
        epsilon: how much the result may tell of one unit.
        delta: 0 for Laplace noise.
        column: whose values are counted.
        values: the values.
        per_unit: for how many values a unit counts.

    Returns:
        An int64 for each value.

    Raises:
        KernelError: the table is not of its type.
    """
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.compute as pc  # type: ignore[import-untyped]
    from mplang_ibis.ext import run_sql
    from mplang_tables.ext import loaded

    _check(ctx, table)
    there = loaded(table)
    bins = pc.index_in(there[column], pa.array(values, there[column].type))
    given = pa.table({"unit": there[unit], "n": bins})
    ranked = "row_number() OVER (PARTITION BY unit ORDER BY n) AS place"
    whose = _known(there.schema.field(unit).type, "unit")
    rows = f"SELECT DISTINCT unit, n FROM rows WHERE {whose} AND n IS NOT NULL"
    sql = f"SELECT n FROM (SELECT n, {ranked} FROM ({rows})) WHERE place <= {per_unit}"
    found = run_sql(sql, {"rows": given}, _NUMBER, op=ctx.op.opcode)["n"].to_numpy()
    counts = np.bincount(found.astype(np.int64), minlength=len(values))
    most = min(per_unit, len(values))
    return np.array(noisy(counts.tolist(), most, math.sqrt(most), epsilon, delta), np.int64)


def _noisy_sum(values: Any, largest: float, epsilon: float, delta: float) -> float:
    """Return a noisy sum of values, each of which counts for at most ``STEPS`` steps.

    The steps are clipped, and not the values before: what is rounded there would be more.
    """
    step = largest / STEPS
    steps = np.clip(np.rint(np.clip(values, -largest, largest) / step), -STEPS, STEPS)
    total = int(steps.astype(np.int64).sum())
    (told,) = noisy([total], STEPS, float(STEPS), epsilon, delta)
    return float(told * step)


def _per_unit(ctx: KernelContext, table: Any, function: str, unit: str, column: str) -> Any:
    """Return for each unit the sum or the mean of its numbers; NaN is missing, as null is.

    A unit without numbers is left out, and so is one whose infinities cancel out.
    """
    from mplang_ibis.ext import quoted

    number = f"{function}(CAST({quoted(column)} AS DOUBLE))"
    found = _ask(ctx, table, f"SELECT {number} AS n FROM rows {_by(ctx, unit, column)}", _VALUES)
    return found[~np.isnan(found)]


def _ask(ctx: KernelContext, table: Any, sql: str, gives: TableType) -> Any:
    from mplang_ibis.ext import run_sql

    _check(ctx, table)
    return run_sql(sql, {"rows": table}, gives, op=ctx.op.opcode)["n"].to_numpy()


def _check(ctx: KernelContext, table: Any) -> None:
    from mplang_tables import arrow

    arrow.check_is(cast(TableType, ctx.op.inputs[0].type), table, "table")


def _by(ctx: KernelContext, unit: str, *columns: str) -> str:
    """Return SQL that groups rows by unit, without those where the unit or a column is missing."""
    from mplang_ibis.ext import quoted

    kinds = dict(cast(TableType, ctx.op.inputs[0].type).columns)
    there = " AND ".join(_known(kinds[name], quoted(name)) for name in (unit, *columns))
    return f"WHERE {there} GROUP BY {quoted(unit)}"


def _known(kind: Any, name: str) -> str:
    """Return SQL of whether there is a value: neither null nor NaN."""
    is_float = str(kind) in ("float", "double")
    return f"{name} IS NOT NULL" + (f" AND NOT isnan({name})" if is_float else "")
