"""Kernels of the dialect ``ibis``. Imports Arrow and DuckDB when they run.

Messages of admission are public: they may contain columns, never values. The reason of a failure
may contain values; it stays in a simulator and in the log of the party.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from mplang_tables.ext import AtSource

from mplang_core import TableType
from mplang_core.ext import AdmissionError, KernelContext
from mplang_ibis.sql import read_sql


def run(
    ctx: KernelContext, *tables: Any, code: bytes, names: Sequence[str], gives: TableType, ibis: str
) -> Any:
    """Run one SELECT on tables.

    Args:
        ctx: of the op.
        *tables: Arrow tables, or tables that are all at one source, where the SQL is run then.
        code: the compressed SQL.
        names: the names of the tables in the SQL.
        gives: the type of the result.
        ibis: the version of Ibis that made the code; unused.

    Returns:
        An Arrow table of the declared type.

    Raises:
        AdmissionError: the SQL is not allowed.
        KernelError: a table is not of its type, the query took too long, or the result does not fit
            in its type.
    """
    from mplang_tables import arrow

    from mplang_ibis import query

    if tables and isinstance(tables[0], AtSource):
        named = dict(zip(names, tables, strict=True))
        return tables[0].place.query(_read(code), named, gives, op="ibis.run")
    for value, name, table in zip(ctx.op.inputs, names, tables, strict=True):
        arrow.check_is(cast(TableType, value.type), table, name)
    return query.run_sql(_read(code), dict(zip(names, tables, strict=True)), gives)


def _read(code: bytes) -> str:
    try:
        return read_sql(code)
    except ValueError as error:
        raise AdmissionError(f"ibis.run: {error}", code="A005") from error
