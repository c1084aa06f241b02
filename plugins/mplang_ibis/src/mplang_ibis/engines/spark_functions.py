"""Functions of one row in Spark's SQL, by their names in DuckDB's."""

from __future__ import annotations

from mplang_ibis.engines.expression import Expression
from mplang_ibis.engines.types import DOUBLE

AGGREGATES = {
    "count", "min", "max", "bool_and", "bool_or", "sum", "avg", "median", "covar_pop",
    "covar_samp",
}  # fmt: skip
_INFINITE = "CAST('Infinity' AS DOUBLE)"
_CALLS = {
    "isnan": "CASE WHEN {0} IS NOT NULL THEN ISNAN({0}) END",
    "make_date": "MAKE_DATE({0}, {1}, {2})",
    "length": "CAST(LENGTH({0}) AS BIGINT)", "strlen": "CAST(OCTET_LENGTH({0}) AS BIGINT)",
    "||": "({0} || {1})", "replace": "REPLACE({0}, {1}, {2})",
    "left": "LEFT({0}, {1})", "right": "RIGHT({0}, {1})",
    "trim": "TRIM(BOTH {1} FROM {0})", "ltrim": "TRIM(LEADING {1} FROM {0})",
    "rtrim": "TRIM(TRAILING {1} FROM {0})", "strpos": "CAST(INSTR({0}, {1}) AS BIGINT)",
    "starts_with": "STARTSWITH({0}, {1})", "ends_with": "ENDSWITH({0}, {1})",
    "abs": "ABS({0})", "sign": "SIGN({0})", "log10": "LOG10({0})",
}  # fmt: skip
_OF_DOUBLES = {
    "acos", "asin", "atan", "cos", "cot", "degrees", "exp", "ln", "log10", "radians", "sin",
    "sqrt", "tan",
}  # fmt: skip
_OUTSIDE = {
    **dict.fromkeys(("acos", "asin"), "{0} < -1D OR ({0} > 1D AND NOT ISNAN({0}))"),
    **dict.fromkeys(("ln", "log10"), "{0} <= 0D"),
    **dict.fromkeys(("sin", "cos", "tan"), f"{{0}} IN ({_INFINITE}, -{_INFINITE})"),
    "cot": f"{{0}} IN (0D, {_INFINITE}, -{_INFINITE})",
    "sqrt": "{0} < 0D",
}
"""Conditions under which DuckDB fails, and Spark gives NULL, NaN or infinity."""


def call(name: str, args: list[Expression]) -> str | None:
    """Return a function; ``None`` if Spark has none that gives the same answers."""
    texts = [each.sql for each in args]
    if name in ("left", "right", "substring"):  # positions are constants, of 32 bits
        texts[1:] = [str(each.value) for each in args[1:]]
    if name == "substring":
        return f"SUBSTRING({', '.join(texts)})"
    if name == "concat":  # leaves out NULL
        return f"CONCAT_WS('', {', '.join(texts)})"
    if name == "||" and len(texts) != 2:
        return None
    if name == "round":
        return f"ROUND({texts[0]}, {args[1].value})"
    if name in ("ceil", "floor", "trunc"):
        return _whole(name, args[0])
    if name == "pow":
        return _power(*texts)
    name = {"log": "log10"}.get(name, name)
    template = f"{name.upper()}({{0}})" if name in _OF_DOUBLES else _CALLS.get(name)
    made = template and template.format(*texts)
    if made and name in _OUTSIDE:
        outside = _OUTSIDE[name].format(*texts)
        return f"CASE WHEN {outside} THEN RAISE_ERROR('out of range') ELSE {made} END"
    return made


def _whole(name: str, a: Expression) -> str | None:
    """Return a number rounded to a whole one; Spark's own functions make an int64 of a double."""
    if a.type != DOUBLE:
        if name != "trunc":
            return f"{name.upper()}({a.sql})"
        return f"(CASE WHEN {a.sql} < 0 THEN CEIL({a.sql}) ELSE FLOOR({a.sql}) END)"
    if name == "floor":
        return _floor(a.sql)
    ceil = f"(-{_floor(f'(-{a.sql})')})"
    return (
        ceil if name == "ceil" else f"(CASE WHEN {a.sql} < 0D THEN {ceil} ELSE {_floor(a.sql)} END)"
    )


def _floor(sql: str) -> str:
    return f"(RINT({sql}) - CASE WHEN RINT({sql}) > {sql} THEN 1D ELSE 0D END)"


def _power(a: str, b: str) -> str:
    """Return a power; those of 1, and infinite ones of -1, are 1 in C, and NaN in Java."""
    is_one = f"({a} = 1D AND {b} IS NOT NULL)"
    is_one += f" OR ({a} = -1D AND {b} IN ({_INFINITE}, -{_INFINITE}))"
    return f"CASE WHEN {is_one} THEN 1D ELSE POWER({a}, {b}) END"
