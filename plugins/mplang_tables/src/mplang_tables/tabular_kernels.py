"""Kernels of ops from tables to tables, part by part. Import Arrow when they run.

Error messages are public: they may contain columns, never values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np

from mplang_core import TableType
from mplang_core.ext import KernelContext, KernelError
from mplang_tables.arrow_types import Column, DataType, Table
from mplang_tables.categories import code_of_others
from mplang_tables.scan import Scan
from mplang_tables.units import step_of_unit, steps_per_unit


def _kind(ctx: KernelContext) -> TableType:
    """Return the type of the operand."""
    kind = ctx.op.inputs[0].type
    assert isinstance(kind, TableType)
    return kind


def _converted(ctx: KernelContext, x: Table, convert: Callable[[Table], Table]) -> Table:
    """Return a table of converted parts, so that what is read is not in memory as a whole.

    Args:
        ctx: of the op.
        x: a table or a scan.
        convert: takes a table and returns one.

    Raises:
        KernelError: the operand is not the table that the program says.
    """
    import pyarrow as pa  # type: ignore[import-untyped]

    from mplang_tables import arrow

    kind = _kind(ctx)
    arrow.check_is(kind, x, "the operand")
    parts = [convert(part) for part in (x.tables() if isinstance(x, Scan) else [x])]
    return pa.concat_tables(parts) if parts else convert(arrow.schema(kind).empty_table())


def _replace(x: Table, column: str, convert: Callable[[Column], Column]) -> Table:
    """Return a table with one column converted."""
    return x.set_column(x.column_names.index(column), column, convert(x.column(column)))


def _positions(
    ctx: KernelContext, cells: Column, values: Sequence[str | int], others: bool
) -> Column:
    """Return the positions of cells in a list; null for others and nulls.

    Raises:
        KernelError: there are such, and others are not expected.
    """
    import pyarrow as pa
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    positions = pc.index_in(cells, pa.array(list(values), cells.type))
    if positions.null_count and not others:
        raise KernelError(
            f"{ctx.op.opcode}: column {ctx.op.attrs['column']!r} has nulls, or values that are not "
            "in the list",
            code="R008",
        )
    return positions


def encode(
    ctx: KernelContext, x: Table, *, column: str, values: Sequence[str | int], others: bool | int
) -> Table:
    """Replace a column by the positions of its values in a list.

    Args:
        ctx: of the op.
        x: an Arrow table or a scan.
        column: the column.
        values: the list.
        others: whether there may be others, and nulls; or their code.

    Returns:
        An Arrow table.

    Raises:
        KernelError: a value is not in the list.
    """
    import pyarrow as pa

    code = code_of_others(others)

    def convert(cells: Column) -> Column:
        positions = _positions(ctx, cells, values, code is not None).cast(pa.int64())
        return positions if code is None else positions.fill_null(code)

    return _converted(ctx, x, lambda part: _replace(part, column, convert))


def decode(
    ctx: KernelContext,
    x: Table,
    *,
    column: str,
    values: Sequence[str | int],
    type: str,
    others: bool,
) -> Table:
    """Replace positions in a list by its values.

    Args:
        ctx: of the op.
        x: an Arrow table or a scan.
        column: the column.
        values: the list.
        type: the type of the values.
        others: whether there may be other numbers, and nulls.

    Returns:
        An Arrow table.

    Raises:
        KernelError: a number is not a position, or null.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    listed = pa.array(list(values), pa.type_for_alias(type))

    def convert(cells: Column) -> Column:
        positions = pc.index_in(cells, pa.array(_numbers_within(cells.type, len(values))))
        if positions.null_count and not others:
            raise KernelError(
                f"{ctx.op.opcode}: column {column!r} has nulls, or numbers that are not positions "
                f"in the list of {len(values)}",
                code="R008",
            )
        return pa.chunked_array([listed.take(each) for each in positions.chunks], listed.type)

    return _converted(ctx, x, lambda part: _replace(part, column, convert))


def _numbers_within(kind: DataType, count: int) -> Column:
    """Return the numbers from 0 that are positions in a list and in a type."""
    dtype = np.dtype(kind.to_pandas_dtype())
    return np.arange(min(count, np.iinfo(dtype).max + 1)).astype(dtype)


def one_hot(
    ctx: KernelContext,
    x: Table,
    *,
    column: str,
    values: Sequence[str | int],
    others: bool | str,
    type: str,
) -> Table:
    """Replace a column by one for each value of a list.

    Args:
        ctx: of the op.
        x: an Arrow table or a scan.
        column: the column.
        values: the list.
        others: whether there may be others, and nulls; or the name of a column for them.
        type: the type of the columns.

    Returns:
        An Arrow table.

    Raises:
        KernelError: a value is not in the list.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    names = [*values, others] if isinstance(others, str) else values

    def convert(part: Table) -> Table:
        positions = _positions(ctx, part.column(column), values, others is not False)
        positions = positions.fill_null(len(values))
        i = part.column_names.index(column)
        part = part.remove_column(i)
        for number, name in enumerate(names):
            here = pc.equal(positions, number).cast(pa.type_for_alias(type))
            part = part.add_column(i + number, f"{column}_{name}", here)
        return part

    return _converted(ctx, x, convert)


def fill_nulls(
    ctx: KernelContext, x: Table, *, columns: Sequence[str], value: bool | int | float | str
) -> Table:
    """Put a value in place of the nulls of some columns.

    Args:
        ctx: of the op.
        x: an Arrow table or a scan.
        columns: the columns.
        value: the value.

    Returns:
        An Arrow table.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    def convert(part: Table) -> Table:
        for column in columns:
            kind = part.schema.field(column).type
            cell = pa.scalar(float(value) if pa.types.is_floating(kind) else value, kind)
            part = _replace(part, column, partial(pc.fill_null, fill_value=cell))
        return part

    return _converted(ctx, x, convert)


def to_integers(ctx: KernelContext, x: Table, *, column: str, unit: str) -> Table:
    """Convert a column to integers in a unit.

    Args:
        ctx: of the op.
        x: an Arrow table or a scan.
        column: the column.
        unit: the unit.

    Returns:
        An Arrow table.

    Raises:
        KernelError: a value is not a whole number of the unit, or beyond 64 bits.
    """
    import pyarrow as pa

    kind = dict(_kind(ctx).columns)[column]

    def convert(cells: Column) -> Column:
        try:
            if pa.types.is_decimal(cells.type):
                return _of_decimals(cells, step_of_unit(unit).size)
            steps = cells.cast(pa.int32()) if pa.types.is_date32(cells.type) else cells
            return _times(steps.cast(pa.int64()), 1 / steps_per_unit(column, kind, unit))
        except pa.ArrowInvalid:  # whose text has a value
            raise KernelError(
                f"{ctx.op.opcode}: column {column!r} has values that are not a whole number of the "
                f"unit {unit!r}, or beyond 64 bits",
                code="R008",
            ) from None

    return _converted(ctx, x, lambda part: _replace(part, column, convert))


def from_integers(ctx: KernelContext, x: Table, *, column: str, type: str, unit: str) -> Table:
    """Convert a column of integers in a unit to another type.

    Args:
        ctx: of the op.
        x: an Arrow table or a scan.
        column: the column.
        type: the other type.
        unit: the unit.

    Returns:
        An Arrow table.

    Raises:
        KernelError: a number is none of that type.
    """
    import pyarrow as pa

    from mplang_tables import arrow

    wanted = arrow.schema(TableType(((column, type),))).field(column).type

    def convert(cells: Column) -> Column:
        try:
            if pa.types.is_decimal(wanted):
                return _to_decimals(cells, step_of_unit(unit).size).cast(wanted)
            steps = _times(cells.cast(pa.int64()), steps_per_unit(column, type, unit))
            return _of_steps(steps, wanted)
        except pa.ArrowInvalid:  # whose text has a value
            raise KernelError(
                f"{ctx.op.opcode}: column {column!r} has numbers that, in the unit {unit!r}, are "
                f"outside of the type {type}",
                code="R008",
            ) from None

    return _converted(ctx, x, lambda part: _replace(part, column, convert))


def _of_decimals(cells: Column, size: Fraction) -> Column:
    """Return decimals as integers in a unit; refuse others as Arrow does."""
    import pyarrow as pa
    import pyarrow.compute as pc

    digits = len(str(size.denominator)) - 1
    wide = cells.cast(pa.decimal256(76 - digits - 2, cells.type.scale))  # leaves room for a product
    factor = pa.scalar(Decimal(size.denominator), pa.decimal256(digits + 1, 0))
    return pc.multiply(wide, factor).cast(pa.int64())


def _to_decimals(cells: Column, size: Fraction) -> Column:
    """Return integers in a unit as decimals with the digits that these need."""
    import pyarrow as pa
    import pyarrow.compute as pc

    digits = len(str(size.denominator)) - 1
    factor = pa.scalar(Decimal(1).scaleb(-digits), pa.decimal256(digits + 1, digits))
    return pc.multiply(cells.cast(pa.decimal256(20, 0)), factor)


def _times(cells: Column, factor: Fraction) -> Column:
    """Return integers times a factor that is whole, or one over a whole number.

    Raises:
        pa.ArrowInvalid: a product is not whole, or beyond 64 bits.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if factor.denominator == 1:
        return pc.multiply_checked(cells, factor.numerator)
    quotients = pc.divide(cells, factor.denominator)
    whole = pc.equal(pc.multiply(quotients, factor.denominator), cells)
    if not pc.all(whole, min_count=0).as_py():
        raise pa.ArrowInvalid("a quotient is not whole")
    return quotients


def _of_steps(steps: Column, kind: DataType) -> Column:
    """Return integers as what they count: days, parts of seconds, ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_date32(kind):
        return steps.cast(pa.int32()).cast(kind)
    if pa.types.is_time64(kind):
        day = 86_400 * 10 ** {"us": 6, "ns": 9}[kind.unit]
        within = pc.and_(pc.greater_equal(steps, 0), pc.less(steps, day))
        if not pc.all(within, min_count=0).as_py():
            raise pa.ArrowInvalid("it is beyond a day")
    return (_of_ones(steps) if pa.types.is_boolean(kind) else steps).cast(kind)


def _of_ones(cells: Column) -> Column:
    """Return numbers that are all 0 or 1.

    Raises:
        pa.ArrowInvalid: they are not.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pc.all(pc.or_(pc.equal(cells, 0), pc.equal(cells, 1)), min_count=0).as_py():
        raise pa.ArrowInvalid("it is neither 0 nor 1")
    return cells


def cast(ctx: KernelContext, x: Table, *, type: TableType) -> Table:
    """Cast columns of numbers, without rounding or truncation.

    Args:
        ctx: of the op.
        x: an Arrow table or a scan.
        type: the type of the result.

    Returns:
        An Arrow table.

    Raises:
        KernelError: a number is none of its column's type.
    """
    import pyarrow as pa

    from mplang_tables import arrow

    def convert(part: Table) -> Table:
        columns = []
        for (name, kind), cells in zip(type.columns, part.columns, strict=True):
            try:
                columns.append(_cast(cells, arrow.schema(type).field(name).type))
            except pa.ArrowInvalid:  # whose text has a value
                raise KernelError(
                    f"{ctx.op.opcode}: column {name!r} has numbers outside of the type {kind}",
                    code="R008",
                ) from None
        return pa.Table.from_arrays(columns, schema=arrow.schema(type))

    return _converted(ctx, x, convert)


def _cast(cells: Column, wanted: DataType) -> Column:
    """Return numbers in a type that holds all of them.

    Raises:
        pa.ArrowInvalid: it does not.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if wanted == pa.bool_() != cells.type:
        cells = _of_ones(cells)
    made = cells.cast(wanted)
    if pa.types.is_floating(cells.type) and wanted == pa.float32():  # which Arrow rounds to
        same = pc.or_(pc.equal(made.cast(cells.type), cells), pc.is_nan(cells))
        if not pc.all(same, min_count=0).as_py():
            raise pa.ArrowInvalid("a number has more digits")
    return made


KERNELS = (cast, encode, decode, one_hot, fill_nulls, to_integers, from_integers)
