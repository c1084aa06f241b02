"""Constants of DuckDB's syntax tree, and texts that stand for other values."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from decimal import Decimal

from mplang_ibis.engines.context import Context
from mplang_ibis.engines.expression import Expression
from mplang_ibis.engines.types import (
    BOOL,
    DATE,
    DOUBLE,
    INT32,
    INT64,
    INT128,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    SqlType,
    decimal,
)
from mplang_ibis.syntax import Node

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?")
_NOT_FINITE = ("nan", "inf", "-inf", "infinity", "-infinity")
_INTEGERS = {"INTEGER": INT32, "BIGINT": INT64, "HUGEINT": INT128}


def constant(ctx: Context, node: Node) -> Expression:
    """Return a constant.

    Raises:
        NotTranslatedError: it is of a type that the engine lacks.
    """
    kind = node["type"]
    value = node.get("value", "")  # DuckDB leaves out what is empty
    name = kind["id"]
    if node["is_null"]:
        return Expression("NULL", NULL)
    if isinstance(value, Mapping):  # 128 bits
        value = (value["upper"] << 64) + value["lower"]
    if name == "DECIMAL":
        info = kind["type_info"]
        scale = info.get("scale", 0)
        return made(ctx, Decimal(value).scaleb(-scale), decimal(info["width"], scale))
    if name in _INTEGERS:
        result = made(ctx, value, _INTEGERS[name])
        return result._replace(is_literal=name != "HUGEINT")
    if name == "DOUBLE":
        return made(ctx, float(value), DOUBLE)
    if name == "BOOLEAN":
        return made(ctx, bool(value), BOOL)
    if name == "VARCHAR":
        return made(ctx, value, STRING)
    return ctx.refuse("type", f"a constant of the type {name}")


def made(ctx: Context, value: object, kind: SqlType) -> Expression:
    """Return the constant of a value and a type."""
    if isinstance(value, str) and "\0" in value:
        ctx.refuse("text", "a text with a NUL character")
    return Expression(ctx.dialect.literal(value, kind), kind, value)


def read(ctx: Context, text: str, kind: SqlType) -> Expression:
    """Return what a text stands for, where DuckDB casts a constant.

    Raises:
        NotTranslatedError: it is not written as all engines read it.
    """
    try:
        if kind == BOOL and text.lower() in ("true", "false", "t", "f"):
            return made(ctx, text.lower()[0] == "t", BOOL)
        if kind in (INT32, INT64) and re.fullmatch(r"-?\d{1,18}", text):
            return made(ctx, int(text), kind)
        if kind == DOUBLE and text.lower() in _NOT_FINITE:
            return made(ctx, float(text), DOUBLE)
        if kind == DOUBLE and re.fullmatch(r"-?\d{1,15}(\.\d{1,15})?(e-?\d{1,2})?", text):
            return made(ctx, float(text), DOUBLE)
        if kind == DATE and _DATE.fullmatch(text):
            return made(ctx, datetime.date.fromisoformat(text), DATE)
        if kind in (TIMESTAMP, TIMESTAMPTZ):
            if _DATE.fullmatch(text):
                text = f"{text} 00:00:00"
            if _TIME.fullmatch(text):
                return made(ctx, datetime.datetime.fromisoformat(text), kind)
    except ValueError:
        pass
    return ctx.refuse("text-as-value", f"the text {text[:40]!r} as {kind}")
