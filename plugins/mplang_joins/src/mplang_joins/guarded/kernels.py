"""Kernels of a guard on shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from mplang_core import Mask, TableType
from mplang_core.ext import OPTIONAL, KernelContext, KernelError
from mplang_joins.by_unit import UnitRows
from mplang_joins.guarded.form import Part, UnitForm, digits_of
from mplang_joins.guarded.ops import By, forms_of, unit_form, wanted_of
from mplang_joins.ops import Kinds
from mplang_joins.tokens import Array, tokens_of

_OTHER_GROUP = (
    "joins.units: a row is in a group that is not published; list all groups in values: or ranges: "
    "of the data set, or leave out rows without one"
)


def units(
    ctx: KernelContext, salt: Array, x: Any, *, on: Sequence[str], kinds: Kinds, by: By,
    side: int, sides: int, rows: int, **attrs: Any,
) -> Array:  # fmt: skip
    """Make numbers of each unit of a table; see :func:`mplang_joins.guarded.ops.units`.

    Raises:
        KernelError: there are more units, a row is in a group that is none of those that there may
            be, or a number has more bits.
    """
    kind = ctx.op.inputs[1].type
    assert isinstance(kind, TableType)
    form = unit_form(kind, {"by": by, "side": side, "sides": sides, **attrs})
    table, different, unit = UnitRows.of(ctx.op.opcode, x, on, kinds, rows)
    made = np.zeros((form.planes, rows), np.int64)
    made[0] = tokens_of(different, salt.tobytes(), rows=rows, side=side, sides=sides)
    places = _Places(unit, _groups(table, by), (form.groups, rows))
    made[1 : 1 + form.groups] = places.present(np.ones(table.num_rows, bool))
    for part, column in form.parts:
        first = form.first(part, column)
        values = _Values(table.column(column), digits_of(form.type_of(column)))
        made[first : first + form.groups] = values.number(part, places, form)
    return made


class _Places:
    """Positions of rows: at their units, in their groups."""

    def __init__(self, unit: Array, group: Array, shape: tuple[int, int]) -> None:
        self._at = (group, unit)
        self._shape = shape

    def added(self, numbers: Array) -> Array:
        """Return the sums of numbers of rows; ``[groups, units]``."""
        made = np.zeros(self._shape, numbers.dtype)
        np.add.at(made, self._at, numbers)
        return made

    def present(self, rows: Array) -> Array:
        """Return whether one of some rows is there; ``[groups, units]``."""
        return self.added(rows.astype(np.int64)) > 0


class _Values:
    """The values of a column, as integers of a power of ten."""

    def __init__(self, column: Any, scale: int) -> None:
        column = column.combine_chunks()
        kind = column.type
        self.there = np.asarray(column.is_valid())
        if pa.types.is_floating(kind):
            numbers = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
            self.there &= np.isfinite(numbers)  # as in plain: what is not finite counts as missing
            self._floats = np.where(self.there, numbers, 0.0) * 10.0**scale
        elif pa.types.is_decimal(kind):
            filled = column.fill_null(0).cast(pa.decimal256(kind.precision, kind.scale))
            self._floats = filled.cast(pa.float64()).to_numpy() * 10.0**scale
            factor = pa.scalar(10**scale, pa.decimal256(scale + 1, 0))
            self._exact = pc.multiply(filled, factor)
        self._column, self._kind, self._scale = column, kind, scale

    def number(self, part: Part, places: _Places, form: UnitForm) -> Array:
        """Return a number of each unit in each group."""
        if part == "has":
            return places.present(self.there)
        if part == "count":
            counts = places.added(self.there.astype(np.int64))
            return _within(counts, counts, form.counts)
        numbers = self._integers(form.bits)
        sizes = places.added(np.abs(numbers.astype(np.float64)))  # exact enough to tell how large
        return _within(
            places.added(np.abs(numbers) if part == "size" else numbers), sizes, form.bits
        )

    def _integers(self, bits: int) -> Array:
        """Return the values as integers, 0 where there is none."""
        numbers: Array
        if pa.types.is_floating(self._kind):
            _within(self._floats, np.abs(self._floats), bits)
            numbers = np.rint(self._floats).astype(np.int64)
            return numbers
        if pa.types.is_decimal(self._kind):
            _within(self._floats, np.abs(self._floats), bits)
            numbers = self._exact.cast(pa.decimal256(76, 0)).cast(pa.int64()).to_numpy()
            return numbers
        whole = self._column.cast(pa.int64()) if pa.types.is_boolean(self._kind) else self._column
        filled = whole.fill_null(0).to_numpy(zero_copy_only=False)
        _within(filled, np.abs(filled.astype(np.float64)) * 10.0**self._scale, bits)
        numbers = filled.astype(np.int64) * 10**self._scale
        return numbers


def _within(numbers: Array, sizes: Array, bits: int) -> Array:
    """Return numbers none of which has more bits.

    Raises:
        KernelError: one has.
    """
    if sizes.size and not float(sizes.max()) < 2.0**bits:
        raise KernelError(
            f"joins.units: a number of one unit has more than {bits} bits, so what is summed on "
            "shares may not fit; take a larger unit of measure, or a larger field",
            code="R007",
        )
    return numbers


def _groups(table: Any, by: By) -> Array:
    """Return the number of each row's group."""
    group = np.zeros(table.num_rows, np.int64)
    for name, labels in by:
        column = table.column(name)
        try:
            values = pa.array(list(labels)).cast(column.type)
        except pa.ArrowException as error:
            raise KernelError(_OTHER_GROUP, code="R009") from error
        numbers = pc.index_in(column, values).combine_chunks()
        if column.null_count or numbers.null_count:
            raise KernelError(_OTHER_GROUP, code="R009")
        group = group * len(labels) + numbers.to_numpy()
    return group


def guarded(
    ctx: KernelContext, *shares: Any, parties: Mask, config: Mapping[str, Any], k: int,
    max_share: int = OPTIONAL, **attrs: Any,
) -> Any:  # fmt: skip
    """Aggregate units on shares, by code that this worker makes of the op's attributes.

    Args:
        ctx: of the op.
        *shares: of what each party made of its units.
        parties: who runs it together.
        config: protocol, field, precision.
        k: how many units each number is made of, at least.
        max_share: the largest part of one unit, in millionths.
        **attrs: its other attributes.

    Returns:
        This member's share of each result: whether a group is told, and the aggregates by group.
    """
    from mplang_spu.ext import run_function

    from mplang_joins.guarded.on_shares import guard

    fn = partial(
        guard,
        forms=forms_of(attrs),
        wanted=wanted_of(attrs),
        k=k,
        max_share=None if max_share is OPTIONAL else max_share,
    )
    return run_function(ctx, fn, shares, parties, config)
