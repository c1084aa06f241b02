"""Compiler ``ibis.compile``: from a Python function of tables and a signature to a program."""

from __future__ import annotations

import functools
import linecache
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mplang_cache import compiled_once, packages_of
from mplang_tables import check_table

from mplang_core import BaseType, FeProgram, FeSignature, MPLangError, PFunction, TableType, feop
from mplang_core.ext import (
    AdmissionError,
    Caching,
    Capabilities,
    TraceError,
    flatten,
    is_skipped,
    pack,
    raised,
    skip_package,
)
from mplang_ibis.advice import advice_for, reason_of
from mplang_ibis.result_types import declared
from mplang_ibis.sql import check_names

for package in ("ibis", "sqlglot"):
    skip_package(package)


_RETURNED = {
    "GroupedTable": "say how to aggregate each group, as t.group_by('a').agg(n=t.count())",
    "NoneType": "write `return` before it",
    "dict": "call it once for each of them",
    "list": "call it once for each of them",
    "tuple": "call it once for each of them",
}
"""What to write instead of a result that is not a table, by its class."""

MAX_SHOWN = 200  # characters of the types of tables in a message


def _understands(fn: Callable[..., Any], types: tuple[BaseType, ...]) -> bool | None:
    """Return ``True`` for a function that names Ibis; Ibis may take any other."""
    return "ibis" in packages_of(fn) or None


@feop(
    name="ibis.compile",
    op_kind="compiler",
    dialects=("sql",),
    execution_model="single_rank",
    inputs=({"kind": "Table"},),
    outputs=({"kind": "Table"},),
    understands=_understands,
    state_scope="process",
    capabilities=Capabilities(caching=Caching(scope="process")),
)
def ibis_compile(
    fn: Callable[..., Any], signature: FeSignature, names: Sequence[str] | None = None
) -> FeProgram:
    """Compile a function of Ibis tables to SQL, without data.

    The same function and signature give the same bytes in every process. A function is compiled
    once per signature, and again after something that it reads has changed.

    Args:
        fn: takes Ibis tables without data, returns one Ibis table.
        signature: its arguments; a :class:`TableType` stands for a table, whose columns are all
            nullable.
        names: the names of the tables in the SQL; ``table0``, ``table1``, … by default.

    Returns:
        A program of the op ``ibis.run``. Its result is a table with the columns that Ibis infers,
        of the types that DuckDB gives them.

    Raises:
        TraceError: Ibis refuses the function, or its SQL is not allowed at a party (random numbers,
            the time, other tables, Python functions, …).

    Example:
        >>> from mplang_core import FeSignature, TableType
        >>> people = TableType((("name", "string"), ("age", "int64")))
        >>> program = ibis_compile(lambda t: t.filter(t.age > 17)[["name"]], FeSignature((people,)))
        >>> print(program.pfunc.fn_type, *program.pfunc.outs_info)
        ibis.run table<["name", "string"]>
    """
    make = functools.partial(_compile, fn, signature, names)
    called = None if names is None else tuple(names)
    return compiled_once(ibis_compile, fn, signature, make, depends_on=called)


def _compile(
    fn: Callable[..., Any], signature: FeSignature, names: Sequence[str] | None
) -> FeProgram:
    import ibis  # type: ignore[import-untyped]

    from mplang_ibis import query
    from mplang_ibis.generator import to_sql

    shown = f"{getattr(fn, '__name__', type(fn).__name__)}({_list(signature.operands)})"
    try:
        tables = _tables(signature.operands)
        called = [f"table{i}" for i in range(len(tables))] if names is None else list(names)
        check_names(called)
        if len(called) != len(tables):
            raise ValueError(f"expected {len(tables)} names of tables, got {len(called)}")
        expr = _trace(fn, signature, dict(zip(called, tables, strict=True)))
        sql = to_sql(expr)
        described = query.types_of(sql, dict(zip(called, tables, strict=True)))
        gives = declared(described, {name: str(kind) for name, kind in expr.schema().items()})
        check_table(gives)
    except AdmissionError as error:
        reason = str(error).removeprefix("ibis.run: ")
        raise TraceError(f"{raised(error)}{shown}: {reason}", code="T010") from error
    except MPLangError:
        raise
    except Exception as error:
        raise TraceError(
            f"{raised(error)}Ibis cannot trace {shown}: {_told(error)}", code="T010"
        ) from error
    attrs = {"code": pack(sql), "names": tuple(called), "gives": gives, "ibis": ibis.__version__}
    return FeProgram(
        PFunction("ibis.run", tables, (gives,), attrs),
        in_tree=flatten(signature.args)[1],
        out_tree=flatten(0)[1],
        meta={"name": "ibis.compile", "dialect": "sql", "version": "1"},
    )


def _told(error: Exception) -> str:
    """Return the reason of an error, or what to write if a table is where JAX takes an array."""
    if "as an abstract array" in str(error):
        return (
            "a function of jnp takes arrays, and not tables; write what a table has, as "
            "t.agg(x=t.x.mean()), or make its numbers a tensor first: "
            "mp.device(...)(mplang_tables.to_tensor)(t, rows=...)"
        )
    advice = advice_for(error, _line_of(error))
    return f"{reason_of(error)}{f' Hint: {advice}' if advice else ''}"


def _line_of(error: Exception) -> str:
    """Return the text of the innermost line of the user; empty if there is none."""
    text = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if not is_skipped(frame.f_globals.get("__name__", "")):
            text = linecache.getline(frame.f_code.co_filename, line)
    return text


def _tables(operands: tuple[BaseType, ...]) -> tuple[TableType, ...]:
    tables = tuple(kind for kind in operands if isinstance(kind, TableType))
    if not tables or len(tables) != len(operands):
        raise TypeError(f"it works on tables, got operands of ({_list(operands)})")
    for kind in tables:
        check_table(kind)
    return tables


def _trace(fn: Callable[..., Any], signature: FeSignature, tables: Mapping[str, TableType]) -> Any:
    import ibis
    import ibis.expr.operations as ops  # type: ignore[import-untyped]
    from mplang_tables import arrow

    from mplang_ibis.kept_casts import casts_kept
    from mplang_ibis.sql_of_tables import sql_typed

    unbound = [
        ibis.table(ibis.Schema.from_pyarrow(arrow.schema(kind)), name=name)
        for name, kind in tables.items()
    ]
    with casts_kept(), sql_typed(tables):
        expr = fn(*signature.fill(unbound), **signature.kwargs)
    if not isinstance(expr, ibis.expr.types.Table):
        kind = type(expr).__name__
        is_column = kind.endswith("Column")
        other = "t.select('a')" if is_column else "a single value becomes one by .as_table()"
        advice = _RETURNED.get(kind, f"a column is one as {other}" if is_column else other)
        raise TypeError(f"it returns a {kind}, expected one Ibis table; {advice}")
    if expr.op().find(ops.InMemoryTable):
        raise TypeError("it contains a table (a memtable); pass it as an argument")
    own = {table.op() for table in unbound}
    if others := [each.name for each in expr.op().find(ops.UnboundTable) if each not in own]:
        raise TypeError(f"it reads another table, {others[0]!r}; pass it as an argument")
    called = expr.op().find((ops.ScalarUDF, ops.AggUDF))
    if any(each.__input_type__ != ops.udf.InputType.BUILTIN for each in called):
        raise TypeError(
            "it calls a Python function of yours (a UDF), which cannot run at a party; write it "
            "with the methods of columns, as t.a * 2"
        )
    return expr


def _list(types: Sequence[object]) -> str:
    text = ", ".join(map(str, types))
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
