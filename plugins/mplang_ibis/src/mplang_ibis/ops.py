"""Ops of the dialect ``ibis``. Imports no Ibis, DuckDB or Arrow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mplang_tables import check_table

from mplang_core import Mask, TableType
from mplang_core.ext import AnyType, Attr, OpDef, Operation, unpack

MAX_SQL = 256 << 10  # bytes; DuckDB takes quadratic time for long conditions, holding the GIL

NAME = re.compile(r"(?!(t\d|pg_|duckdb_|sqlite_|pragma_|information_schema))[a-z][a-z0-9_]{0,62}")
"""Pattern of table names, which excludes names that Ibis generates, and DuckDB's catalog."""


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


def _list(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))
