"""Functions of DuckDB that other engines have, by the types of their operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mplang_ibis.allowlist import FUNCTIONS, ROW_WISE
from mplang_ibis.engines import constants
from mplang_ibis.engines.casts import as_double, as_int64, cast, together, unify
from mplang_ibis.engines.comparisons import check_repeatable, comparable
from mplang_ibis.engines.context import Context
from mplang_ibis.engines.expression import Expression
from mplang_ibis.engines.types import (
    BOOL,
    DATE,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    INTERVAL,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    SqlType,
    as_decimal,
    decimal,
    is_exact,
    is_integer,
    product_type,
    sum_type,
)
from mplang_ibis.syntax import Node

AGGREGATES = FUNCTIONS - ROW_WISE - {"unnest"}
"""Functions of several rows; :mod:`mplang_ibis.engines.windows` knows which there are."""

_UNITS = {
    "to_years": ("months", 12), "to_quarters": ("months", 3), "to_months": ("months", 1),
    "to_weeks": ("days", 7), "to_days": ("days", 1), "to_hours": ("seconds", 3600),
    "to_minutes": ("seconds", 60), "to_seconds": ("seconds", 1),
}  # fmt: skip
_FIELDS = {
    "year": "year", "years": "year", "month": "month", "months": "month", "day": "day",
    "days": "day", "dayofmonth": "day", "quarter": "quarter", "quarters": "quarter",
    "week": "week", "weeks": "week", "weekofyear": "week", "dayofweek": "dow", "dow": "dow",
    "weekday": "dow", "isodow": "isodow", "dayofyear": "doy", "doy": "doy", "isoyear": "isoyear",
    "hour": "hour", "hours": "hour", "minute": "minute", "minutes": "minute", "second": "second",
    "seconds": "second",
}  # fmt: skip
_CLOCK = ("hour", "minute", "second")
_TRUNCATED = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_TIMES = (DATE, TIMESTAMP, TIMESTAMPTZ)
_DOUBLES = {
    "acos", "asin", "atan", "cos", "cot", "degrees", "exp", "ln", "radians", "sin", "sqrt", "tan",
    "log", "log10",
}  # fmt: skip
_REGEXPS = (
    "regexp_escape", "regexp_extract", "regexp_full_match", "regexp_matches", "regexp_replace",
    "regexp_split_to_array",
)  # fmt: skip
_KEYS = {
    **dict.fromkeys(_REGEXPS, "regexp"),
    **dict.fromkeys(("lower", "upper", "lcase", "ucase"), "case"),
    **dict.fromkeys(("~~*", "!~~*", "ilike_escape", "not_ilike_escape"), "ilike"),
    **dict.fromkeys(("strftime", "strptime", "try_strptime", "dayname", "monthname"), "format"),
    **dict.fromkeys(("list_value", "unnest", "array_extract", "list_extract"), "list"),
    **dict.fromkeys(("split", "string_split", "str_split", "array_slice"), "list"),
    **dict.fromkeys(("array_contains", "array_length", "array_to_string", "list_contains"), "list"),
    **dict.fromkeys(("century", "decade", "epoch", "epoch_ms", "epoch_us", "epoch_ns"), "field"),
    **dict.fromkeys(("microsecond", "millisecond", "yearweek", "last_day", "time_bucket"), "field"),
    **dict.fromkeys(("~~", "!~~", "like_escape", "not_like_escape"), "pattern"),
    **dict.fromkeys(("md5", "sha1", "sha256", "hash"), "hash"),
}
"""Rows of the table of differences by functions; others have that of functions."""


def interval(ctx: Context, name: str, children: Sequence[Node]) -> Expression | None:
    """Return a constant interval, if a function makes one."""
    if name not in _UNITS or len(children) != 1:
        return None
    count = _whole(children[0])
    if count is None:
        ctx.refuse("interval", f"{name} of what is not a constant")
    unit, times = _UNITS[name]
    return Expression("", INTERVAL, (unit, count * times))


def _whole(node: Node) -> int | None:
    """Return a constant within the casts that DuckDB's parser writes around it."""
    while node["class"] == "CAST" or node.get("function_name") == "trunc":
        node = node["child"] if node["class"] == "CAST" else node["children"][0]
    value = node.get("value", {}).get("value") if node["class"] == "CONSTANT" else None
    try:
        return int(value) if isinstance(value, int | str) else None
    except ValueError:
        return None


def call(ctx: Context, name: str, args: list[Expression]) -> Expression:
    """Return a function of one row.

    Raises:
        NotTranslatedError: the engine lacks it, or answers in another way.
    """
    handler = _HANDLERS.get(name)
    if handler is None and name in _DOUBLES and len(args) == 1:
        result = ctx.dialect.call(name, [as_double(ctx, args[0])])
        if result is not None:
            return Expression(result, DOUBLE)
    if handler is None:
        ctx.refuse(_KEYS.get(name, "function"), name)
    made = handler(ctx, name, args)
    if made is None:
        kinds = ", ".join(str(each.type) for each in args)
        ctx.refuse(_KEYS.get(name, "function"), f"{name}({kinds})")
    return made


# -- numbers


def _arithmetic(ctx: Context, name: str, args: list[Expression]) -> Expression | None:
    if len(args) == 1:
        (only,) = args
        if name == "-" and (is_exact(only.type) or only.type == DOUBLE):
            return Expression(f"(-{only.sql})", only.type)
        return only if name == "+" and is_exact(only.type) else None
    a, b = args
    if INTERVAL in (a.type, b.type):
        return _shifted(ctx, name, a, b)
    if a.type in _TIMES or b.type in _TIMES:
        return _days(ctx, name, a, b)
    if is_exact(a.type) and is_exact(b.type) and "decimal" in (a.type.name, b.type.name):
        x, y = as_decimal(a.type), as_decimal(b.type)
        result = product_type(x, y) if name == "*" else sum_type(x, y)
        if result is None:
            ctx.refuse("digits", f"{x} {name} {y}")
        return Expression(f"({a.sql} {name} {b.sql})", result)
    kind = together(ctx, args)
    if FLOAT in (a.type, b.type) and kind != DOUBLE:
        ctx.refuse("single", f"{name} of FLOAT")
    if not is_integer(kind) and kind != DOUBLE:
        return None
    a, b = (cast(ctx, each, kind) for each in args)
    return Expression(f"({a.sql} {name} {b.sql})", kind)


def _divided(ctx: Context, name: str, args: list[Expression]) -> Expression:
    a, b = (as_double(ctx, each) for each in args)
    return Expression(ctx.dialect.divide(a, b), DOUBLE)


def _divided_integers(ctx: Context, name: str, args: list[Expression]) -> Expression:
    kind = together(ctx, args)
    if not is_integer(kind):
        ctx.refuse("float-modulo", f"{name} of {kind}")
    a, b = (cast(ctx, each, kind) for each in args)
    return Expression(ctx.dialect.divide_integers(a, b), kind)


def _modulo(ctx: Context, name: str, args: list[Expression]) -> Expression:
    kind = together(ctx, args)
    if not is_exact(kind):
        ctx.refuse("float-modulo", f"{name} of {kind}")
    a, b = (cast(ctx, each, kind) for each in args)
    return Expression(ctx.dialect.modulo(a, b), kind)


def _power(ctx: Context, name: str, args: list[Expression]) -> Expression | None:
    return _simple(ctx, "pow", [as_double(ctx, each) for each in args], DOUBLE)


def _rounded(ctx: Context, name: str, args: list[Expression]) -> Expression | None:
    a, *rest = args
    digits = rest[0].value if rest else 0
    if a.type in (FLOAT, DOUBLE):
        ctx.refuse("round", f"{name} of {a.type}")
    if not isinstance(digits, int) or not is_exact(a.type):
        return None
    if is_integer(a.type):
        return a if digits >= 0 else None
    kept = max(0, min(digits, a.type.scale))
    if digits >= a.type.scale:
        return a
    made = ctx.dialect.call("round", [a, constants.made(ctx, digits, INT32)])
    return Expression(made, decimal(a.type.width, kept)) if made else None


def _whole_number(ctx: Context, name: str, args: list[Expression]) -> Expression | None:
    (a,) = args
    name = {"ceiling": "ceil"}.get(name, name)
    if a.type.name == "decimal":
        return _simple(ctx, name, [a], decimal(a.type.width, 0))
    if name == "trunc" and is_integer(a.type):
        return a
    return _simple(ctx, name, [as_double(ctx, a)], DOUBLE)


def _absolute(ctx: Context, name: str, args: list[Expression]) -> Expression | None:
    (a,) = args
    return _simple(ctx, "abs", [a], a.type) if is_exact(a.type) or a.type == DOUBLE else None


def _sign(ctx: Context, name: str, args: list[Expression]) -> Expression | None:
    (a,) = args
    if not is_exact(a.type):  # of NaN it is another one
        return None
    kind = ctx.dialect.type_name(INT8) or ctx.dialect.type_name(INT16)
    made = ctx.dialect.call("sign", [a])
    return Expression(f"CAST({made} AS {kind})", INT8) if made else None


def _is_nan(ctx: Context, name: str, args: list[Expression]) -> Expression | None:
    (a,) = args
    return _simple(ctx, "isnan", [a], BOOL) if a.type == DOUBLE else None


def _extreme(ctx: Context, name: str, args: list[Expression]) -> Expression:
    values, kind = unify(ctx, args)
    texts = [ctx.dialect.ordered(each.sql, kind) for each in values]
    return Expression(f"{name.upper()}({', '.join(texts)})", kind)


def _null_if(ctx: Context, name: str, args: list[Expression]) -> Expression:
    check_repeatable(ctx, name, *args)
    a, b = comparable(ctx, *args)
    if a.sql != args[0].sql:
        ctx.refuse("mixed", f"{name} of {args[0].type} and {args[1].type}")
    return Expression(f"NULLIF({a.sql}, {b.sql})", a.type)


# -- times


def _shifted(ctx: Context, name: str, a: Expression, b: Expression) -> Expression | None:
    """Return a time plus or minus an interval."""
    if a.type == INTERVAL and name == "+":
        a, b = b, a
    if b.type != INTERVAL or a.type not in _TIMES or name == "*":
        ctx.refuse("interval", f"{a.type} {name} {b.type}")
    unit, count = b.value
    kind = TIMESTAMP if a.type == DATE else a.type
    return Expression(ctx.dialect.add_interval(a, unit, -count if name == "-" else count), kind)


def _days(ctx: Context, name: str, a: Expression, b: Expression) -> Expression | None:
    """Return a date plus or minus days, or the days between two dates."""
    if name == "+" and b.type == DATE:
        a, b = b, a
    if a.type == DATE and b.type in (INT8, INT16, INT32) and name in "+-":
        days = cast(ctx, b, INT32).sql
        return Expression(ctx.dialect.add_days(a.sql, f"(-{days})" if name == "-" else days), DATE)
    if a.type == b.type == DATE and name == "-":
        return Expression(ctx.dialect.days_between(a.sql, b.sql), INT64)
    return ctx.refuse("interval", f"{a.type} {name} {b.type}")


def _part(ctx: Context, name: str, args: list[Expression]) -> Expression | None:
    if name in ("date_part", "datepart"):
        first, *args = args
        name = str(first.value).lower()
    field = _FIELDS.get(name)
    if field is None or len(args) != 1 or args[0].type not in _TIMES:
        ctx.refuse("field", f"the field {name} of {', '.join(str(each.type) for each in args)}")
    if field in _CLOCK and args[0].type == DATE:
        args = [cast(ctx, args[0], TIMESTAMP)]
    made = ctx.dialect.date_part(field, args[0])
    return Expression(made, INT64) if made else None


def _truncated(ctx: Context, name: str, args: list[Expression]) -> Expression | None:
    field, a = str(args[0].value).lower(), args[1]
    if field not in _TRUNCATED or a.type not in _TIMES:
        ctx.refuse("field", f"{name} to {field} of {a.type}")
    kind = TIMESTAMP if a.type == DATE else a.type
    return Expression(ctx.dialect.date_trunc(field, cast(ctx, a, kind)), kind)


def _difference(ctx: Context, name: str, args: list[Expression]) -> Expression | None:
    """Return how many boundaries of days, months or years are between two dates."""
    field, a, b = _FIELDS.get(str(args[0].value).lower()), args[1], args[2]
    if a.type != DATE or b.type != DATE or field not in ("day", "month", "year"):
        ctx.refuse("field", f"{name} in {field} of {a.type} and {b.type}")
    if field == "day":
        return Expression(ctx.dialect.days_between(b.sql, a.sql), INT64)
    years = [ctx.dialect.date_part("year", each) for each in (b, a)]
    if field == "year":
        return Expression(f"({years[0]} - {years[1]})", INT64)
    months = [ctx.dialect.date_part("month", each) for each in (b, a)]
    return Expression(f"(({years[0]} - {years[1]}) * 12 + ({months[0]} - {months[1]}))", INT64)


def _date_of(ctx: Context, name: str, args: list[Expression]) -> Expression | None:
    return _simple(ctx, name, [cast(ctx, as_int64(ctx, each), INT32) for each in args], DATE)


# -- texts


def _simple(ctx: Context, name: str, args: list[Expression], kind: SqlType) -> Expression | None:
    made = ctx.dialect.call(name, args)
    return Expression(made, kind) if made else None


def _texts(*names: str, gives: SqlType = STRING) -> Callable[..., Expression | None]:
    """Return a handler of a function of texts."""

    def handler(ctx: Context, name: str, args: list[Expression]) -> Expression | None:
        if any(each.type not in (STRING, NULL) for each in args):
            return None
        called = names[0] if names else name
        return _simple(ctx, called, [cast(ctx, each, STRING) for each in args], gives)

    return handler


def _like(ctx: Context, name: str, args: list[Expression]) -> Expression | None:
    text, pattern, *rest = args
    escape = rest[0].value if rest else ""
    if text.type != STRING or pattern.type != STRING or not isinstance(escape, str):
        return None
    if len(escape) > 1:
        return None
    negated = name in ("!~~", "not_like_escape")
    made = ctx.dialect.like(text.sql, pattern, escape, negated=negated)
    return Expression(made, BOOL) if made else None


def _substring(ctx: Context, name: str, args: list[Expression]) -> Expression | None:
    text, *numbers = args
    first, length = ([each.value for each in numbers] + [0])[:2]
    if text.type != STRING or not all(isinstance(each, int) for each in (first, length)):
        ctx.refuse("substring", f"{name} whose position is not a constant")
    if first < 1 or length < 0:
        ctx.refuse("substring", f"{name} from {first} of {length}")
    return _simple(ctx, "substring", args, STRING)


def _end(ctx: Context, name: str, args: list[Expression]) -> Expression | None:
    text, length = args
    if text.type != STRING or not isinstance(length.value, int) or length.value < 0:
        ctx.refuse("substring", f"{name} whose length is not a constant, or negative")
    return _simple(ctx, name, args, STRING)


def _trimmed(ctx: Context, name: str, args: list[Expression]) -> Expression | None:
    if len(args) == 1:
        ctx.refuse("trim", f"{name} without the characters")
    return _texts()(ctx, name, args)


def _position(ctx: Context, name: str, args: list[Expression]) -> Expression | None:
    if not args[1].value:
        return None
    return _texts("strpos", gives=INT64)(ctx, name, args)


def _contains(ctx: Context, name: str, args: list[Expression]) -> Expression | None:
    result = _texts("strpos", gives=INT64)(ctx, name, args)
    return Expression(f"({result.sql} > 0)", BOOL) if result else None


_HANDLERS: Mapping[str, Callable[[Context, str, list[Expression]], Expression | None]] = {
    **dict.fromkeys(("+", "-", "*"), _arithmetic),
    "/": _divided,
    "//": _divided_integers,
    **dict.fromkeys(("%", "mod"), _modulo),
    **dict.fromkeys(("^", "**", "pow", "power"), _power),
    "round": _rounded,
    **dict.fromkeys(("ceil", "ceiling", "floor", "trunc"), _whole_number),
    **dict.fromkeys(("abs", "@"), _absolute),
    "sign": _sign,
    "isnan": _is_nan,
    **dict.fromkeys(("greatest", "least"), _extreme),
    "nullif": _null_if,
    **dict.fromkeys(("date_part", "datepart", *_FIELDS), _part),
    **dict.fromkeys(("date_trunc", "datetrunc"), _truncated),
    **dict.fromkeys(("date_diff", "datediff"), _difference),
    "make_date": _date_of,
    **dict.fromkeys(("length", "len", "char_length"), _texts("length", gives=INT64)),
    "strlen": _texts("strlen", gives=INT64),
    "||": _texts("||"),
    "concat": _texts("concat"),
    "replace": _texts("replace"),
    **dict.fromkeys(("~~", "!~~", "like_escape", "not_like_escape"), _like),
    **dict.fromkeys(("substring", "substr"), _substring),
    **dict.fromkeys(("left", "right"), _end),
    **dict.fromkeys(("trim", "ltrim", "rtrim"), _trimmed),
    **dict.fromkeys(("strpos", "instr"), _position),
    "contains": _contains,
    **dict.fromkeys(("starts_with", "prefix", "^@"), _texts("starts_with", gives=BOOL)),
    **dict.fromkeys(("ends_with", "suffix"), _texts("ends_with", gives=BOOL)),
}
