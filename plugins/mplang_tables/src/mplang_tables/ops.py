"""Ops of the dialect ``table``. Imports no Arrow."""

from __future__ import annotations

from mplang_analysis import ConstantsRule

from mplang_core import TableType, TensorType, simple_op
from mplang_tables.columns import ARROW_TYPES, DTYPES, check_table
from mplang_tables.literal_constants import constants_of_literal
from mplang_tables.padded import Padded
from mplang_tables.ranges import ALIKE, FIRST, PADDED

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
        KernelError: the table has another number of rows, or a column has nulls, which
            :func:`fill_nulls` fills; names the column, no value. Raised at the party that has the
            table.

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
        KernelError: the table has more rows, or a column has nulls, which :func:`fill_nulls` fills
            and :func:`to_masked` takes; names the column, no value. Raised at the party that has
            the table.

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
    return Padded(TensorType(_wide(x), (rows, len(x.columns))), TensorType("bool", (rows,)))


@simple_op("table.to_masked", interfaces=[PADDED], reads=(), inputs=(_TABLE,), outputs=(_TENSOR,))
def to_masked(x: TableType, *, rows: int) -> Padded:
    """Convert a numeric table with nulls to a tensor, and whether each cell of it is there.

    It tells neither how many rows there are nor which cells are null. :meth:`Padded.sum` and its
    like leave both out, column by column.

    Args:
        x: a table; all columns are of one type, bool, an integer or a float.
        rows: a bound of its number of rows, which all parties know.

    Returns:
        A :class:`Padded`: a tensor of shape ``[rows, columns]``, with zeros for nulls and at its
        end, and bools of the same shape. Integers have 64 bits in it, so that sums do not wrap.

    Raises:
        TraceError: a column is of another type, or two differ; cast them in SQL.
        KernelError: the table has more rows. Raised at the party that has the table.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_tables import table, to_masked
        >>> def program():
        ...     x = mp.device("P0")(table({"age": [20, None, 40], "kids": [2, 1, None]}))()
        ...     cells = mp.device("P0")(to_masked)(x, rows=5)
        ...     return mp.device("P0")(lambda cells: (cells.count(), cells.mean()))(cells)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     for each in mp.fetch(sim, mp.evaluate(sim, program)):
        ...         print(each.tolist())
        [2, 2]
        [30.0, 1.5]
    """
    shape = rows, len(x.columns)
    return Padded(TensorType(_wide(x), shape), TensorType("bool", shape))


def _wide(x: TableType) -> str:
    """Return the element type of a tensor whose sums do not wrap."""
    dtype = _dtype(x)
    return "i64" if dtype in ("i8", "i16", "i32", "u8", "u16", "u32") else dtype


def _dtype(x: TableType) -> str:
    """Return the element type of a tensor of a table's columns."""
    check_table(x)
    wrong = [f"{name!r} ({type})" for name, type in x.columns if type not in DTYPES]
    if wrong:
        raise TypeError(f"a tensor has no place for {', '.join(wrong)}; select the others")
    if len({type for _, type in x.columns}) > 1:
        raise TypeError(f"a tensor has one type of numbers, got {x}; cast the columns to one")
    return DTYPES[x.columns[0][1]]


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
    return _table_of(x, columns)


@simple_op(
    "table.from_padded",
    interfaces=[FIRST],
    reads=(),
    total=True,
    inputs=(_TENSOR, _TENSOR),
    outputs=(_TABLE,),
)
def from_padded(values: TensorType, valid: TensorType, *, columns: tuple[str, ...]) -> TableType:
    """Convert a :class:`Padded` to a table of the rows that are there.

    Args:
        values: with ``valid``, a :class:`Padded` of rows, as :func:`to_padded` makes it, or of
            cells, as :func:`to_masked` does.
        valid: which rows or cells are there.
        columns: the names of the columns.

    Returns:
        A table whose columns have the tensor's element type. Of cells, those that are not there
        are null, and rows without any cell are left out, as padding is.

    Raises:
        TraceError: a tensor has another shape or element type, or the names do not differ.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_tables import from_padded, table, to_padded
        >>> def program():
        ...     x = mp.device("P0")(table({"age": [20, 40]}))()
        ...     padded = mp.seal(mp.device("P0")(to_padded)(x, rows=5))
        ...     older = mp.device("SP0")(lambda p: p._replace(values=p.values + 1))(padded)
        ...     return mp.device("P1")(from_padded)(mp.reveal(older, to="P1"), columns=("age",))
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).to_pydict()
        {'age': [21, 41]}
    """
    kind = _table_of(values, columns)
    if valid.dtype.value != "bool" or valid.shape not in (values.shape[:1], values.shape):
        raise TypeError(f"expected bools for the rows or the cells of {values}, got {valid}")
    return kind


def _table_of(x: TensorType, columns: tuple[str, ...]) -> TableType:
    """Return the type of a table of a tensor's columns."""
    if len(x.shape) != 2 or x.shape[1] != len(columns):
        raise TypeError(f"expected a tensor of [rows, {len(columns)}], got {x}")
    if x.dtype.value not in ARROW_TYPES:
        raise TypeError(f"a table has no place for {x}")
    if not all(isinstance(name, str) for name in columns):
        raise TypeError(f"columns are named by strings, got {columns!r}")
    kind = TableType(tuple((name, ARROW_TYPES[x.dtype.value]) for name in columns))
    check_table(kind)
    return kind
