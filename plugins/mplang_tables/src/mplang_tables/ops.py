"""Ops of the dialect ``table``. Imports no Arrow."""

from __future__ import annotations

from mplang_analysis import ConstantsRule

from mplang_core import TableType, TensorType, simple_op
from mplang_tables.columns import check_table
from mplang_tables.literal_constants import constants_of_literal
from mplang_tables.padded import Padded
from mplang_tables.ranges import ALIKE, ENCODED, ONE_HOT, PADDED

_DTYPES = {
    "bool": "bool",
    **{f"{sign}int{n}": f"{sign or 'i'}{n}" for sign in ("", "u") for n in (8, 16, 32, 64)},
    "float": "f32",
    "double": "f64",
}
_ARROW = {dtype: arrow for arrow, dtype in _DTYPES.items()}

_TABLE = {"kind": "Table"}
_TENSOR = {"kind": "Tensor"}


@simple_op(
    "table.literal",
    interfaces=[ConstantsRule(constants_of_literal)],
    reads=(),
    inputs=(),
    outputs=(_TABLE,),
)
def literal(*, rows: int, data: tuple[bytes, ...], type: TableType) -> TableType:
    """Return a table that the program itself contains, so all who get the program can read it.

    For examples and tests; :func:`mplang_tables.table` makes one.

    Args:
        rows: how many rows it has.
        data: its columns' buffers, as :func:`mplang_tables.arrow.write` gives them.
        type: its columns.

    Returns:
        A table of that type; cells may be null.

    Raises:
        TraceError: Arrow and DuckDB do not share the type of a column.
        AdmissionError: the data is not such a table; raised at the party that reads it.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_core import TableType
        >>> from mplang_tables import literal
        >>> from mplang_tables import arrow
        >>> kind = TableType((("age", "int64"),))
        >>> rows, buffers = arrow.write(arrow.normalize({"age": [17, None]}))
        >>> data = tuple(buffer.to_pybytes() for buffer in buffers)
        >>> def program():
        ...     return mp.device("P0")(literal)(rows=rows, data=data, type=kind)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).to_pylist()
        [{'age': 17}, {'age': None}]
    """
    check_table(type)
    return type


@simple_op("table.to_tensor", interfaces=[ALIKE], reads=(), inputs=(_TABLE,), outputs=(_TENSOR,))
def to_tensor(x: TableType, *, rows: int) -> TensorType:
    """Convert a numeric table to a tensor, row by row.

    Args:
        x: a table; all columns are of one type, bool, an integer or a float, without nulls.
        rows: how many rows it has, which the type of the result says, so all parties know it.

    Returns:
        A tensor of shape ``[rows, columns]`` and the element type of the columns.

    Raises:
        TraceError: a column is of another type, or two differ; cast them in SQL.
        KernelError: the table has another number of rows, or a column has nulls; names the
            column, no value. Raised at the party that has the table.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_tables import table, to_tensor
        >>> def program():
        ...     x = mp.device("P0")(table({"a": [1, 2], "b": [3, 4]}))()
        ...     return mp.device("P0")(to_tensor)(x, rows=2)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program))
        array([[1, 3],
               [2, 4]])
    """
    return TensorType(_dtype(x), (rows, len(x.columns)))


@simple_op("table.to_padded", interfaces=[PADDED], reads=(), inputs=(_TABLE,), outputs=(_TENSOR,))
def to_padded(x: TableType, *, rows: int) -> Padded:
    """Convert a numeric table to a tensor that does not tell how many rows it has.

    Args:
        x: a table; all columns are of one type, bool, an integer or a float, without nulls.
        rows: a bound of its number of rows, which all parties know.

    Returns:
        A :class:`Padded`: a tensor of shape ``[rows, columns]``, which ends with zeros, and bools
        of shape ``[rows]``. Integers have 64 bits in it, so that sums do not wrap.

    Raises:
        TraceError: a column is of another type, or two differ; cast them in SQL.
        KernelError: the table has more rows, or a column has nulls; names the column, no value.
            Raised at the party that has the table.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_tables import table, to_padded
        >>> def program():
        ...     x = mp.device("P0")(table({"age": [20, 40]}))()
        ...     ages = mp.device("P0")(to_padded)(x, rows=5)
        ...     return mp.device("P0")(lambda ages: ages.mean())(ages)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).tolist()
        [30.0]
    """
    dtype = _dtype(x)
    wide = "i64" if dtype in ("i8", "i16", "i32", "u8", "u16", "u32") else dtype
    return Padded(TensorType(wide, (rows, len(x.columns))), TensorType("bool", (rows,)))


def _dtype(x: TableType) -> str:
    """Return the element type of a tensor of a table's columns."""
    check_table(x)
    wrong = [f"{name!r} ({type})" for name, type in x.columns if type not in _DTYPES]
    if wrong:
        raise TypeError(f"a tensor has no place for {', '.join(wrong)}; select the others")
    if len({type for _, type in x.columns}) > 1:
        raise TypeError(f"a tensor has one type of numbers, got {x}; cast the columns to one")
    return _DTYPES[x.columns[0][1]]


@simple_op("table.encode", interfaces=[ENCODED], reads=(), inputs=(_TABLE,), outputs=(_TABLE,))
def encode(
    x: TableType, *, column: str, values: tuple[str | int, ...], others: bool = False
) -> TableType:
    """Replace the values of a column by their positions in a public list.

    Args:
        x: a table.
        column: a column of strings, integers or bools.
        values: the values that it may have.
        others: whether it may have others, and nulls, which become -1.

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
    i = _position(x, column, values)
    return TableType((*x.columns[:i], (column, "int64"), *x.columns[i + 1 :]))


@simple_op("table.one_hot", interfaces=[ONE_HOT], reads=(), inputs=(_TABLE,), outputs=(_TABLE,))
def one_hot(
    x: TableType,
    *,
    column: str,
    values: tuple[str | int, ...],
    others: bool = False,
    type: str = "int64",
) -> TableType:
    """Replace a column by one for each value of a public list, which is 1 where it was that value.

    Args:
        x: a table.
        column: a column of strings, integers or bools.
        values: the values that it may have.
        others: whether it may have others, and nulls, which are 0 in all of them.
        type: the type of the new columns: bool, an integer or a float.

    Returns:
        The table, with columns such as ``sex_f`` and ``sex_m`` in place of ``sex``.

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
    i = _position(x, column, values)
    if type not in _DTYPES:
        raise TypeError(f"expected a type of numbers, such as double, got {type!r}")
    made = tuple((f"{column}_{value}", type) for value in values)
    kind = TableType((*x.columns[:i], *made, *x.columns[i + 1 :]))
    check_table(kind)
    return kind


def _position(x: TableType, column: str, values: tuple[str | int, ...]) -> int:
    """Return where a column is, whose values a list may name."""
    check_table(x)
    names = [name for name, _ in x.columns]
    if column not in names:
        raise TypeError(f"there is no column {column!r}; there are {', '.join(names)}")
    kind = x.columns[names.index(column)][1]
    wanted: type = str if kind == "string" else bool if kind == "bool" else int
    if kind not in ("string", "bool") and not kind.lstrip("u").startswith("int"):
        raise TypeError(f"column {column!r} is of the type {kind}; strings and integers are listed")
    if not values or len(set(values)) != len(values):
        raise TypeError("the list has at least one value, and each of them once")
    wrong = [value for value in values if type(value) is not wanted or not fits(value, kind)]
    if wrong:
        raise TypeError(f"column {column!r} is of the type {kind}, got {str(wrong[0])[:40]!r}")
    return names.index(column)


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


@simple_op(
    "table.from_tensor",
    interfaces=[ALIKE],
    reads=(),
    total=True,
    inputs=(_TENSOR,),
    outputs=(_TABLE,),
)
def from_tensor(x: TensorType, *, columns: tuple[str, ...]) -> TableType:
    """Convert a tensor to a table, row by row.

    Args:
        x: a tensor of shape ``[rows, columns]`` of bools, integers, or floats of 32 or 64 bits.
        columns: the names of the columns.

    Returns:
        A table whose columns have the tensor's element type, without nulls.

    Raises:
        TraceError: the tensor has another shape or element type, or the names do not differ.

    Example:
        >>> import numpy as np
        >>> import mplang_core as mp
        >>> from mplang_tables import from_tensor
        >>> def program():
        ...     x = mp.put("P0", np.float32([[1, 2], [3, 4]]))
        ...     x = mp.device("P0")(from_tensor)(x, columns=("a", "b"))
        ...     return mp.device("P0")(lambda t: t.filter(t.a > 1))(x)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).to_pylist()
        [{'a': 3.0, 'b': 4.0}]
    """
    if len(x.shape) != 2 or x.shape[1] != len(columns):
        raise TypeError(f"expected a tensor of [rows, {len(columns)}], got {x}")
    if x.dtype.value not in _ARROW:
        raise TypeError(f"a table has no place for {x}")
    if not all(isinstance(name, str) for name in columns):
        raise TypeError(f"columns are named by strings, got {columns!r}")
    kind = TableType(tuple((name, _ARROW[x.dtype.value]) for name in columns))
    check_table(kind)
    return kind
