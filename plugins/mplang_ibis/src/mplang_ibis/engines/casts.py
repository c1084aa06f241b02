"""Casts: those that a query says, and those that DuckDB makes by itself."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_ibis.engines import constants
from mplang_ibis.engines.context import Context
from mplang_ibis.engines.expression import Expression
from mplang_ibis.engines.types import (
    BOOL,
    DATE,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    SqlType,
    common_type,
    fits,
    is_exact,
    is_integer,
    is_number,
)

_TIMES = (DATE, TIMESTAMP, TIMESTAMPTZ)


def cast(ctx: Context, value: Expression, kind: SqlType) -> Expression:
    """Return a value of a type.

    Raises:
        NotTranslatedError: the engine would give another value.
    """
    source = value.type
    if source == kind:
        return value
    name = ctx.dialect.type_name(kind)
    if name is None:
        ctx.refuse("type", f"the type {kind}")
    if source == STRING and isinstance(value.value, str) and kind != STRING:
        return constants.read(ctx, value.value, kind)
    if value.is_literal and is_integer(kind) and fits(value.value, kind):
        return constants.made(ctx, value.value, kind)
    sql = value.sql
    if not _is_same(ctx, source, kind):
        ctx.refuse("cast", f"a cast of {source} to {kind}")
    if kind == BOOL and is_integer(source):
        return Expression(f"({sql} <> 0)", BOOL)
    if source == BOOL and is_number(kind):
        return Expression(f"CAST(CAST({sql} AS {ctx.dialect.type_name(INT32)}) AS {name})", kind)
    if kind == STRING and source.name == "decimal":  # as many digits as its type says
        value = value._replace(sql=f"CAST({sql} AS {ctx.dialect.type_name(source)})")
    made = ctx.dialect.cast(value, kind)
    if made is None:
        ctx.refuse("single" if kind == FLOAT else "cast", f"a cast of {source} to {kind}")
    return Expression(made, kind)


def _is_same(ctx: Context, source: SqlType, kind: SqlType) -> bool:
    """Return whether engines cast values as DuckDB does; refuse those with rows of their own."""
    if source == NULL:
        return True
    if kind == STRING:
        if source in (FLOAT, DOUBLE):
            ctx.refuse("float-to-text", f"a cast of {source} to {kind}")
        return is_exact(source) or source in (BOOL, DATE)
    if source == STRING:
        ctx.refuse("text-to-value", f"a cast of VARCHAR to {kind}")
    if source == BOOL or kind == BOOL:
        return is_integer(source) or is_integer(kind)
    if source in (FLOAT, DOUBLE) and kind.name == "decimal":
        ctx.refuse("float-to-decimal", f"a cast of {source} to {kind}")
    return (is_number(source) and is_number(kind)) or (source in _TIMES and kind in _TIMES)


def unify(ctx: Context, values: Sequence[Expression]) -> tuple[list[Expression], SqlType]:
    """Return values cast to the type that DuckDB gives them together, and that type.

    Raises:
        NotTranslatedError: they have none that is known.
    """
    kind = together(ctx, values)
    return [cast(ctx, value, kind) for value in values], kind


def together(ctx: Context, values: Sequence[Expression]) -> SqlType:
    """Return the type that DuckDB gives values together.

    A text that is a constant takes the type of the others, and so does a small integer.
    """
    texts = [each for each in values if each.type == STRING and each.value is not None]
    others = [each for each in values if each not in texts]
    firm = [each for each in others if not each.is_literal and each.type != NULL]
    if not firm:
        firm, loose = [each for each in others if each.type != NULL], []
    else:
        loose = [each for each in others if each.is_literal]
    if not firm:
        return STRING if texts else INT32
    result: SqlType | None = firm[0].type
    for each in firm[1:]:
        result = result and common_type(result, each.type)
    for each in loose:
        if result and not (is_integer(result) and fits(each.value, result)):
            result = common_type(result, each.type)
    if result is None:
        kinds = ", ".join(dict.fromkeys(str(each.type) for each in values))
        ctx.refuse("single" if "FLOAT" in kinds else "mixed", f"values of {kinds} together")
    return result


def as_double(ctx: Context, value: Expression) -> Expression:
    """Return a number as a double."""
    if not is_number(value.type) and value.type != NULL:
        ctx.refuse("mixed", f"a value of {value.type} as a number")
    return cast(ctx, value, DOUBLE)


def as_int64(ctx: Context, value: Expression) -> Expression:
    """Return an integer as an int64."""
    if not is_integer(value.type):
        ctx.refuse("mixed", f"a value of {value.type} as a whole number")
    return cast(ctx, value, INT64)
