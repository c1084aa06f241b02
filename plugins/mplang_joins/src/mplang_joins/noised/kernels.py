"""Kernels of noisy aggregates on shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from mplang_dp.ext import noisy

from mplang_core import Mask
from mplang_core.ext import KernelContext
from mplang_joins.by_unit import UnitRows
from mplang_joins.noised.form import NoiseForm
from mplang_joins.noised.ops import form_of
from mplang_joins.ops import Kinds
from mplang_joins.published import Label
from mplang_joins.tokens import Array, tokens_of


def noisy_units(
    ctx: KernelContext, salt: Array, x: Any, *, on: Sequence[str], kinds: Kinds, mine: int,
    rows: int, **attrs: Any,
) -> Array:  # fmt: skip
    """Make numbers of units, and noise; see :func:`mplang_joins.noised.ops.noisy_units`.

    Raises:
        KernelError: there are more units.
    """
    form = form_of(attrs)
    table, different, unit = UnitRows.of(ctx.op.opcode, x, on, kinds, rows)
    count = len(different)
    made = np.zeros((form.planes(mine, rows), rows), np.int64)
    made[0] = tokens_of(different, salt.tobytes(), rows=rows, side=mine, sides=form.sides)
    made[1, :count] = 1
    if form.column and mine == form.side:
        made[1 : 1 + form.numbers, :count] = _numbers(table.column(form.column), unit, count, form)
    made[1 + form.own(mine) :].reshape(-1)[: form.numbers] = _noise(form)  # clipped it would tell
    return made


def _numbers(column: Any, unit: Array, count: int, form: NoiseForm) -> Array:
    """Return what each unit adds to each number; ``[numbers, units]``."""
    if form.statistic == "histogram":
        return _first_values(column, unit, count, form.values)
    column = column.combine_chunks()
    numbers = column.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy(zero_copy_only=False)
    known = np.isfinite(numbers)  # as in plain: what is not finite counts as missing
    unit, numbers = unit[known], numbers[known]
    sums, sizes = (np.bincount(unit, each, count) for each in (numbers, np.ones(len(unit))))
    has = sizes > 0
    values = sums / np.maximum(sizes, 1) if form.statistic == "mean" else sums
    with np.errstate(over="ignore"):
        scaled = np.nan_to_num(values) * 10.0**form.digits
    whole = np.rint(np.clip(scaled, -(2.0**62), 2.0**62)).astype(np.int64)
    steps = np.where(has, np.clip(whole, form.low, form.high) - form.middle, 0)
    return steps[None, :] if form.statistic == "sum" else np.stack([steps, has.astype(np.int64)])


def _first_values(column: Any, unit: Array, count: int, values: Sequence[Label]) -> Array:
    """Return of each unit which value it counts for: the first one of the list that it has."""
    indices = pc.index_in(column.combine_chunks(), pa.array(list(values), column.type))
    numbers = indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    first = np.full(count, len(values), np.int64)
    np.minimum.at(first, unit, numbers.astype(np.int64))
    is_value: Array = first[None, :] == np.arange(len(values))[:, None]
    return is_value.astype(np.int64)


def _noise(form: NoiseForm) -> list[int]:
    """Draw the noise of each number that is told."""
    if form.statistic != "mean":
        largest = form.reach if form.statistic == "sum" else 1
        zeros = [0] * form.numbers
        drawn: list[int] = noisy(zeros, largest, float(largest), form.epsilon, form.delta)
        return drawn
    half = form.epsilon / 2, form.delta / 2
    parts = (noisy([0], most, float(most), *half) for most in (form.reach, 1))
    return [number for part in parts for number in part]


def noised(
    ctx: KernelContext, *shares: Any, parties: Mask, config: Mapping[str, Any], **attrs: Any
) -> Any:
    """Aggregate units on shares, by code that this worker makes of the op's attributes.

    Args:
        ctx: of the op.
        *shares: of what each party made of its units.
        parties: who runs it together.
        config: protocol, field, precision.
        **attrs: the form.

    Returns:
        This member's share of the numbers.
    """
    from mplang_spu.ext import run_function

    from mplang_joins.noised.on_shares import noised as add_noise

    return run_function(ctx, partial(add_noise, form=form_of(attrs)), shares, parties, config)
