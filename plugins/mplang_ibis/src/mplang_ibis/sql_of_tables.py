"""``Table.sql`` of Ibis within a traced function, where it has no backend. Imports Ibis."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import ibis  # type: ignore[import-untyped]
import ibis.expr.operations as ops  # type: ignore[import-untyped]
from ibis.expr.types import Table  # type: ignore[import-untyped]
from mplang_tables import arrow

from mplang_core import TableType
from mplang_ibis.sql import check_names, quoted

_tables: ContextVar[Mapping[str, TableType] | None] = ContextVar("_tables", default=None)
_sql = Table.sql


@contextmanager
def sql_typed(tables: Mapping[str, TableType]) -> Iterator[None]:
    """Give results of ``Table.sql`` the types that DuckDB gives them, within a traced function.

    Args:
        tables: types of the function's tables by name.

    Example:
        >>> kind = TableType((("age", "int64"),))
        >>> t = ibis.table({"age": "int64"}, name="table0")
        >>> with sql_typed({"table0": kind}):
        ...     t.alias("people").sql("SELECT sum(age) AS s FROM people").schema()
        ibis.Schema {
          s  int64
        }
    """
    token = _tables.set(tables)
    try:
        yield
    finally:
        _tables.reset(token)


@functools.wraps(_sql)
def _sql_typed(self: Any, query: str, /, *, dialect: str | None = None) -> Any:
    tables = _tables.get()
    if tables is None:
        return _sql(self, query, dialect=dialect)
    from mplang_ibis import query as duckdb_query
    from mplang_ibis.dialects import check_dialect, to_duckdb
    from mplang_ibis.generator import to_sql
    from mplang_ibis.result_types import declared

    op = self.op()
    if not isinstance(op, ops.AliasedRelation):
        raise TypeError(
            "SQL has to name the table that it reads; write "
            't.alias("people").sql("SELECT … FROM people")'
        )
    check_names([op.name])
    if op.name in tables:
        raise ValueError(f"a table of the function is called {op.name!r}; choose another alias")
    dialect = dialect or "duckdb"
    check_dialect(dialect)
    parent = arrow.type_of(op.parent.schema.to_pyarrow())
    text = to_duckdb(query, dialect, {op.name: parent}).rstrip().removesuffix(";")
    duckdb_query.parse(text)  # one SELECT, before it stands within another one
    within = to_sql(op.parent.to_expr())
    whole = f"WITH {quoted(op.name)} AS (\n{within}\n)\nSELECT * FROM (\n{text}\n)"
    kind = declared(duckdb_query.types_of(whole, tables))
    schema = ibis.Schema.from_pyarrow(arrow.schema(kind))
    return ops.SQLStringView(parent=op, query=text, schema=schema).to_expr()


Table.sql = _sql_typed
