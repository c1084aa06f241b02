"""Kernel of the dialect ``guard``. Imports Arrow and DuckDB when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from mplang_analysis import WHOLE

from mplang_core import TableType
from mplang_core.ext import KernelContext
from mplang_guard.dominance import Grouping, Number, dominance
from mplang_guard.functions import FUNCTIONS
from mplang_guard.ops import Aggregates


def aggregate(
    ctx: KernelContext,
    table: Any,
    *,
    unit: str,
    k: int,
    by: Sequence[str],
    aggregates: Aggregates,
    max_share: int = WHOLE,
) -> Any:
    """Aggregate a table.

    Args:
        ctx: of the op.
        table: an Arrow table.
        unit: the column that tells whose rows these are.
        k: how many different units each number is made of, at least.
        by: columns to group by.
        aggregates: name, function and column of each aggregate.
        max_share: the largest part of each number that one unit adds, in millionths.

    Returns:
        An Arrow table of the declared type.

    Raises:
        KernelError: the table is not of its type, or a sum does not fit in 64 bits.
    """
    from mplang_ibis.ext import run_sql
    from mplang_tables import arrow

    kind = cast(TableType, ctx.op.inputs[0].type)
    arrow.check_is(kind, table, "table")
    sql = query_of(kind, unit, k, by, aggregates, max_share)
    gives = cast(TableType, ctx.op.outputs[0].type)
    return run_sql(sql, {"rows": table}, gives, op="guard.aggregate")


def query_of(
    kind: TableType,
    unit: str,
    k: int,
    by: Sequence[str],
    aggregates: Aggregates,
    max_share: int = WHOLE,
) -> str:
    """Return the SQL of an aggregate.

    Example:
        >>> kind = TableType((("id", "int64"), ("pay", "int64")))
        >>> print(query_of(kind, "id", 20, (), (("mean", "mean", "pay"),)))
        SELECT avg("pay") AS "mean"
        FROM "rows" WHERE "id" IS NOT NULL
        HAVING count(DISTINCT "id") >= 20 AND count(DISTINCT "id") FILTER ("pay" IS NOT NULL) >= 20
    """
    from mplang_ibis.ext import quoted

    types = dict(kind.columns)
    keys = [quoted(name) for name in by]
    found = [
        f"{_function(function, quoted(unit), column, types.get(column, ''))} AS {quoted(name)}"
        for name, function, column in aggregates
    ]
    units = f"count(DISTINCT {quoted(unit)})"
    enough = [f"{units} >= {k}"]
    for column in dict.fromkeys(column for _, _, column in aggregates if column):
        enough.append(f"{units} FILTER ({_value(column, types[column])} IS NOT NULL) >= {k}")
    rows = f'"rows" WHERE {quoted(unit)} IS NOT NULL'
    if types[unit] in ("float", "double"):  # NaN is nobody, as null is
        rows += f" AND NOT isnan({quoted(unit)})"
    if max_share < WHOLE:
        numbers = [
            Number(FUNCTIONS[function], _value(column, types[column]) if column else "")
            for _, function, column in aggregates
        ]
        names = [*types, *(name for name, _, _ in aggregates)]
        rows, more = dominance(Grouping(rows, quoted(unit), keys), numbers, max_share, names)
        enough += more
    grouped = [f"GROUP BY {', '.join(keys)}"] if keys else []
    ordered = [f"ORDER BY {', '.join(f'{key} NULLS LAST' for key in keys)}"] if keys else []
    return "\n".join(
        [
            f"SELECT {', '.join([*keys, *found])}",
            f"FROM {rows}",
            *grouped,
            f"HAVING {' AND '.join(enough)}",
            *ordered,
        ]
    )


def _function(function: str, unit: str, column: str, kind: str) -> str:
    found = FUNCTIONS[function]
    if not column:
        return found.of_rows.format(unit=unit)
    value = _value(column, kind)
    if found.adds and kind in _AS_NUMBERS:  # it needs numbers
        value = f"CAST({value} AS {_AS_NUMBERS[kind]})"
    return found.sql.format(value=value, unit=unit)


_AS_NUMBERS = {"bool": "TINYINT", "float": "DOUBLE"}


def _value(column: str, kind: str) -> str:
    """Return a column; a float that is not a number counts as missing, so that it tells nothing."""
    from mplang_ibis.ext import quoted

    name = quoted(column)
    if kind not in ("float", "double"):
        return name
    return f"CASE WHEN isfinite({name}) THEN {name} END"
