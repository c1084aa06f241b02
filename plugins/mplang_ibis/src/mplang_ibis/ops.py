"""Ops of the dialect ``ibis``. Imports no Ibis, DuckDB or Arrow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mplang_tables import check_table

from mplang_core import Mask, TableType, TensorType, simple_op
from mplang_core.ext import AnyType, Attr, OpDef, Operation, unpack

MAX_SQL = 256 << 10  # bytes; DuckDB takes quadratic time for long conditions, holding the GIL

NAME = re.compile(r"(?!(t\d|pg_|duckdb_|sqlite_|pragma_|information_schema))[a-z][a-z0-9_]{0,62}")
"""Pattern of table names, which excludes names that Ibis generates, and DuckDB's catalog."""

_DTYPES = {
    "bool": "bool",
    **{f"{sign}int{n}": f"{sign or 'i'}{n}" for sign in ("", "u") for n in (8, 16, 32, 64)},
    "float": "f32",
    "double": "f64",
}
_ARROW = {dtype: arrow for arrow, dtype in _DTYPES.items()}


def read_sql(code: bytes) -> str:
    """Decompress the SQL of an op; the party's DuckDB decides whether it may run.

    Raises:
        ValueError: it is not compressed text, or too long.
    """
    sql = unpack(code, MAX_SQL)
    if "\0" in sql:
        raise ValueError("the code has a NUL character")
    return sql


# -- ibis.run


def _infer_run(op: Operation, world: Mask) -> Sequence[AnyType]:
    names, gives = op.attrs["names"], op.attrs["gives"]
    check_names(names)
    tables = [value.type for value in op.inputs]
    if len(names) != len(tables):
        raise TypeError(f"the SQL takes {len(names)} tables ({_list(names)}), got {len(tables)}")
    for name, kind in zip(names, tables, strict=True):
        if not isinstance(kind, TableType):
            raise TypeError(f"operand {name} is no table: {kind}")
        check_table(kind)
    check_table(gives)
    read_sql(op.attrs["code"])
    return [gives]


def check_names(names: Sequence[object]) -> None:
    """Refuse ambiguous table names.

    Raises:
        ValueError: a name does not match :data:`NAME`, names are not unique, or there are none.
    """
    for name in names:
        if not isinstance(name, str) or NAME.fullmatch(name) is None:
            raise ValueError(
                f"{name!r} is no name of a table here: letters, digits and underscores, all in "
                "lower case; not t0, t1, … and none of DuckDB's own (duckdb_…, pg_…, sqlite_…)"
            )
    if len(set(names)) != len(names) or not names:
        raise ValueError(f"each table has a name of its own, got ({_list(names)})")


RUN = OpDef(
    "ibis.run",
    _infer_run,
    attrs={
        "code": Attr(bytes, doc="one SELECT in DuckDB's SQL, zlib-compressed"),
        "names": Attr(tuple, doc="what the SQL calls the operands"),
        "gives": Attr(TableType, doc="the columns of the result, to which it is cast"),
        "ibis": Attr(str, doc="the version of Ibis that made it"),
    },
    doc="Runs one SELECT on DuckDB: tables in, a table out. It reaches nothing but its operands.",
    reads=(),
)


# -- tables, tensors, literals

_TABLE = {"kind": "Table"}
_TENSOR = {"kind": "Tensor"}
_TARGETS = ("PPU", "TEE")


@simple_op("ibis.literal", reads=(), inputs=(), outputs=(_TABLE,), targets=_TARGETS)
def literal(*, rows: int, data: tuple[bytes, ...], type: TableType) -> TableType:
    """Return a table that the program itself contains, so all who get the program can read it.

    For examples and tests; :func:`mplang_ibis.table` makes one.

    Args:
        rows: how many rows it has.
        data: its columns' buffers, as :func:`mplang_ibis.arrow.write` gives them.
        type: its columns.

    Returns:
        A table of that type; cells may be null.

    Raises:
        TraceError: Arrow and DuckDB do not share the type of a column.
        AdmissionError: the data is not such a table; raised at the party that reads it.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_core import TableType
        >>> from mplang_ibis import literal
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


@simple_op("ibis.to_tensor", reads=(), inputs=(_TABLE,), outputs=(_TENSOR,), targets=_TARGETS)
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
        >>> from mplang_ibis import table, to_tensor
        >>> def program():
        ...     x = mp.device("P0")(table({"a": [1, 2], "b": [3, 4]}))()
        ...     return mp.device("P0")(to_tensor)(x, rows=2)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program))
        array([[1, 3],
               [2, 4]])
    """
    check_table(x)
    wrong = [f"{name!r} ({type})" for name, type in x.columns if type not in _DTYPES]
    if wrong:
        raise TypeError(f"a tensor has no place for {', '.join(wrong)}; select the others")
    if len({type for _, type in x.columns}) > 1:
        raise TypeError(f"a tensor has one type of numbers, got {x}; cast the columns to one")
    return TensorType(_DTYPES[x.columns[0][1]], (rows, len(x.columns)))


@simple_op(
    "ibis.from_tensor", reads=(), total=True, inputs=(_TENSOR,), outputs=(_TABLE,), targets=_TARGETS
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
        >>> from mplang_ibis import from_tensor
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


def _list(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))
