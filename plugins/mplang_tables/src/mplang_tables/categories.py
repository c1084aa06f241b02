"""Ops between values of a public list and numbers: codes, and one column for each value."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_analysis import Interval, OpRanges, RangeRule

from mplang_core import TableType, simple_op
from mplang_core.ext import Operation
from mplang_tables.columns import DTYPES, check_table, is_integer, replaced, type_of_column
from mplang_tables.replacing import KEEPS_OTHERS, beside

_TABLE = {"kind": "Table"}
NOT_LISTED = -1
"""Code of other values, where the program names none."""


def code_of_others(others: bool | int) -> int | None:
    """Return the code of values that are not in the list; ``None`` if there may be none.

    Example:
        >>> code_of_others(False), code_of_others(True), code_of_others(0), code_of_others(2)
        (None, -1, 0, 2)
    """
    if isinstance(others, bool):
        return NOT_LISTED if others else None
    return others


def _encoded(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    codes = Interval(0, len(op.attrs["values"]) - 1)
    other = code_of_others(op.attrs["others"])
    if other is not None:
        codes |= Interval(other, other)
    return OpRanges([beside(op, operands[0], codes)])


@simple_op(
    "table.encode",
    interfaces=[RangeRule(_encoded), KEEPS_OTHERS],
    reads=(),
    inputs=(_TABLE,),
    outputs=(_TABLE,),
)
def encode(
    x: TableType, *, column: str, values: tuple[str | int, ...], others: bool | int = False
) -> TableType:
    """Replace the values of a column by their positions in a public list.

    Args:
        x: a table.
        column: a column of strings, integers or bools.
        values: the values that it may have, such as those that the owner of a data set publishes:
            :func:`mplang_data.published_values`.
        others: whether it may have others, and nulls, which become -1; or the number that they
            become, such as ``len(values)``.

    Returns:
        The table, with positions from 0 as ``int64`` in that column.

    Raises:
        TraceError: there is no such column, or the list is empty, or is not of distinct values.
        KernelError: the column has a value that is not in the list; names the column, no value.
            Raised at the party that has the table.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_tables import encode, table
        >>> def program():
        ...     x = mp.device("P0")(table({"sex": ["f", "m", "f"]}))()
        ...     return mp.device("P0")(encode)(x, column="sex", values=("f", "m"))
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).to_pydict()
        {'sex': [0, 1, 0]}
    """
    check_values(x, column, values)
    if not fits(code_of_others(others) or 0, "int64"):
        raise TypeError(f"codes are of the type int64, got {others}")
    return replaced(x, column, (column, "int64"))


def _decoded(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    values = op.attrs["values"]
    made = None if isinstance(values[0], str) else Interval(int(min(values)), int(max(values)))
    return OpRanges([beside(op, operands[0], made)])


@simple_op(
    "table.decode",
    interfaces=[RangeRule(_decoded), KEEPS_OTHERS],
    reads=(),
    total=lambda op: op.attrs["others"] is True,
    inputs=(_TABLE,),
    outputs=(_TABLE,),
)
def decode(
    x: TableType,
    *,
    column: str,
    values: tuple[str | int, ...],
    type: str = "string",
    others: bool = False,
) -> TableType:
    """Replace positions in a public list by its values, as :func:`encode` made them.

    Args:
        x: a table.
        column: a column of integers.
        values: the list.
        type: the type of the values: string, an integer or bool.
        others: whether there may be other numbers than positions, which become null.

    Returns:
        The table, with values in that column.

    Raises:
        TraceError: there is no such column, or the list is empty, or is not of distinct values of
            the type.
        KernelError: the column has a number that is not a position, or a null; names the column, no
            value. Raised at the party that has the table.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_tables import decode, table
        >>> def program():
        ...     x = mp.device("P0")(table({"sex": [0, 1, 0]}))()
        ...     return mp.device("P0")(decode)(x, column="sex", values=("f", "m"))
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).to_pydict()
        {'sex': ['f', 'm', 'f']}
    """
    check_table(x)
    kind = type_of_column(x, column)
    if not is_integer(kind):
        raise TypeError(f"column {column!r} is of the type {kind}; positions are integers")
    check_values(TableType(((column, type),)), column, values)
    return replaced(x, column, (column, type))


def _one_hot(op: Operation, operands: Sequence[Interval]) -> OpRanges:
    return OpRanges([beside(op, operands[0], Interval(0, 1))])


@simple_op(
    "table.one_hot",
    interfaces=[RangeRule(_one_hot), KEEPS_OTHERS],
    reads=(),
    inputs=(_TABLE,),
    outputs=(_TABLE,),
)
def one_hot(
    x: TableType,
    *,
    column: str,
    values: tuple[str | int, ...],
    others: bool | str = False,
    type: str = "int64",
) -> TableType:
    """Replace a column by one for each value of a public list, which is 1 where it was that value.

    Args:
        x: a table.
        column: a column of strings, integers or bools.
        values: the values that it may have, such as those that the owner of a data set publishes:
            :func:`mplang_data.published_values`.
        others: whether it may have others, and nulls, which are 0 in all of them; or the name of
            one more column, such as ``"other"``, which is 1 for them.
        type: the type of the new columns: bool, an integer or a float.

    Returns:
        The table, with columns such as ``sex_f`` and ``sex_m`` in place of ``sex``, and
        ``sex_other`` behind them.

    Raises:
        TraceError: there is no such column, or the list is empty, or is not of distinct values.
        KernelError: the column has a value that is not in the list; names the column, no value.
            Raised at the party that has the table.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_tables import one_hot, table
        >>> def program():
        ...     x = mp.device("P0")(table({"sex": ["f", "m"], "age": [44, 17]}))()
        ...     return mp.device("P0")(one_hot)(x, column="sex", values=("f", "m"))
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).to_pydict()
        {'sex_f': [1, 0], 'sex_m': [0, 1], 'age': [44, 17]}
    """
    check_values(x, column, values)
    if type not in DTYPES:
        raise TypeError(f"expected a type of numbers, such as double, got {type!r}")
    names = [*values, others] if isinstance(others, str) else values
    return replaced(x, column, *((f"{column}_{name}", type) for name in names))


def check_values(x: TableType, column: str, values: Sequence[str | int]) -> None:
    """Check that a list names values that a column may have.

    Args:
        x: the type of the table.
        column: the column.
        values: the list.

    Raises:
        TypeError: there is no such column, or the list is empty, or is not of distinct values of
            its type.
    """
    check_table(x)
    kind = type_of_column(x, column)
    wanted: type = str if kind == "string" else bool if kind == "bool" else int
    if kind not in ("string", "bool") and not is_integer(kind):
        raise TypeError(f"column {column!r} is of the type {kind}; strings and integers are listed")
    if not values or len(set(values)) != len(values):
        raise TypeError("the list has at least one value, and each of them once")
    wrong = [value for value in values if type(value) is not wanted or not fits(value, kind)]
    if wrong:
        raise TypeError(f"column {column!r} is of the type {kind}, got {str(wrong[0])[:40]!r}")


def fits(value: str | int, kind: str) -> bool:
    """Return whether a string, an integer or a bool is one of a column of its type.

    Example:
        >>> fits(300, "int8"), fits(-1, "uint8"), fits("Bern", "string")
        (False, False, True)
    """
    if isinstance(value, str):
        return value == value.encode(errors="replace").decode()
    if kind == "bool":
        return True
    bits, low = int(kind.lstrip("uint")), 0 if kind[0] == "u" else -1
    return low << (bits - 1) <= value < 1 << (bits + low)
