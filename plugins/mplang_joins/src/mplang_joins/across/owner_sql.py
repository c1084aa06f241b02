"""The SELECT of one owner: its rows, reduced to one for each key and group. Imports sqlglot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from mplang_ibis.ext import described
from mplang_tables import is_number
from sqlglot import exp
from sqlglot.expressions import Expr

from mplang_core import TableType
from mplang_joins.across.block import QuerySource
from mplang_joins.across.parts import Factor, OwnerPart, root_of, there
from mplang_joins.across.refused import QueryRefusedError
from mplang_joins.published import Label

CODE = "code"


class OwnerQuery(NamedTuple):
    """Query of one owner.

    Attributes:
        sql: a SELECT in DuckDB's SQL, with the names of tables in braces.
        all_keys: one of its keys, before a match; empty if it has none.
        keys: the names of the columns of its key.
        kinds: the types of these columns.
        factors: the names of the columns of its factors.
        scales: of each factor by which power of ten it is multiplied, to be an integer; ``None``
            if it is a float.
        code: the name of the column with the number of a row's group; empty if there is one group.
    """

    sql: str
    all_keys: str
    keys: tuple[str, ...]
    kinds: tuple[str, ...]
    factors: tuple[str, ...]
    scales: tuple[int | None, ...]
    code: str


def owner_query(part: OwnerPart, tables: Mapping[str, TableType]) -> OwnerQuery:
    """Return what one owner runs.

    Args:
        part: what it does.
        tables: the types of its tables by name.

    Raises:
        QueryRefusedError: a value is none that shares have a place for.
    """
    reading = _reading(part)
    kinds = _types(reading, part, tables)
    keys = tuple(f"key{i}" for i in range(len(part.keys)))
    values = _nulls_together(part.keys) if part.keeps else part.keys
    items = [exp.alias_(key.copy(), name) for key, name in zip(values, keys, strict=True)]
    code = CODE if part.groups else ""
    if code:
        items.append(exp.alias_(_code(part.groups, part.labels), CODE))
    grouped = [exp.Literal.number(i + 1) for i in range(len(items))]
    names = tuple(f"factor{i}" for i in range(len(part.factors)))
    scales = []
    for factor, name in zip(part.factors, names, strict=True):
        column, scale = _factor(factor, part, kinds)
        items.append(exp.alias_(column, name))
        scales.append(scale)
    query = reading.select(*items)
    query = query.group_by(*grouped) if grouped else query
    key_types = tuple(kinds[_value_name(key)] for key in part.keys)
    all_keys = _reading(replace(part, keeps=True)).select(*items[: len(keys)])
    before = _text(all_keys, braces=True) if keys else ""
    text = _text(query, braces=True)
    return OwnerQuery(text, before, keys, key_types, names, tuple(scales), code)


def _nulls_together(keys: Sequence[Expr]) -> list[Expr]:
    """Return the columns of a key, all of which are null where one is: such rows are one group."""
    if len(keys) == 1:
        return [*keys]
    known = exp.and_(*map(there, keys))
    return [exp.Case(ifs=[exp.If(this=known.copy(), true=key.copy())]) for key in keys]


def _reading(part: OwnerPart) -> exp.Select:
    """Return the FROM and WHERE of an owner, with conditions of two tables where they join."""
    conditions = list(dict.fromkeys(part.where))
    if not part.keeps:  # a row without a key equals none
        conditions += [there(key) for key in part.keys]
    waiting, seen = list(part.sources), set[str]()
    made = exp.Select()
    while waiting:
        source = next((each for each in waiting if _joins(each, seen, conditions)), waiting[0])
        waiting.remove(source)
        names = {source.name}
        if not seen:
            made = made.from_(source.tree.copy())
        elif source.how != "inner":
            kind = {"left": "LEFT", "semi": "SEMI", "anti": "ANTI"}[source.how]
            made = made.join(source.tree.copy(), on=exp.and_(*source.on), join_type=kind)
        else:
            on = [e for e in conditions if names < _names(e) <= seen | names]
            conditions = [each for each in conditions if each not in on]
            kind = "INNER" if on else "CROSS"
            made = made.join(source.tree.copy(), on=exp.and_(*on) if on else None, join_type=kind)
        seen |= names
    return made.where(*(each.copy() for each in conditions)) if conditions else made


def _joins(source: QuerySource, seen: set[str], conditions: Sequence[Expr]) -> bool:
    """Return whether a source can be the next one."""
    if not seen:
        return source.how == "inner"
    if source.how != "inner":
        return all(_names(each) <= seen | {source.name} for each in source.on)
    return any({source.name} < _names(e) <= seen | {source.name} for e in conditions)


def _names(tree: Expr) -> set[str]:
    return {each.table for each in tree.find_all(exp.Column)}


def _types(reading: exp.Select, part: OwnerPart, tables: Mapping[str, TableType]) -> dict[str, str]:
    """Return the types of what an owner's columns are made of, by their text."""
    values = [*part.keys, *(each.value for each in part.factors if each.value is not None)]
    values += [root for each in values if (root := root_of(each)) is not None]
    if not values:  # a SELECT has a column
        return {}
    items = [exp.alias_(each.copy(), f"x{i}") for i, each in enumerate(values)]
    try:
        kind = described(_text(reading.select(*items), braces=False), tables)
    except TypeError as error:
        raise QueryRefusedError("column", str(error)) from error
    types = [each for _, each in kind.columns]
    return dict(zip(map(_value_name, values), types, strict=True))


def _value_name(value: Expr) -> str:
    return value.sql("duckdb")


def _factor(factor: Factor, part: OwnerPart, kinds: Mapping[str, str]) -> tuple[Expr, int | None]:
    """Return the column of a factor, and its scale."""
    if factor.kind == "there":
        once = exp.and_(*map(there, part.keys)) if part.keeps else exp.Literal.number(1)
        return _int64(once), 0
    if factor.kind in ("rows", "has") or factor.value is None:
        rows = _filtered(exp.Count(this=exp.Star()), factor.conditions)
        some = exp.GT(this=rows, expression=exp.convert(0))
        return (rows if factor.kind == "rows" else _int64(exp.paren(some))), 0
    value, scale = _number(factor.value, kinds)
    conditions = [each for each in factor.conditions if each != there(factor.value)]
    functions = {"sum": exp.Sum, "min": exp.Min, "max": exp.Max, "value": exp.Max}
    function = functions[factor.kind]
    total = exp.Coalesce(
        this=_filtered(function(this=value), conditions), expressions=[exp.Literal.number(0)]
    )
    return (total if scale is None else _int64(total)), scale


def _number(value: Expr, kinds: Mapping[str, str]) -> tuple[Expr, int | None]:
    """Return a value as a number; a square is one of 64 bits, as its own type may be too small."""
    root = root_of(value)
    if root is not None:
        number, scale = _as_number(root, kinds[_value_name(root)])
        if scale is not None:
            return exp.Mul(this=number.copy(), expression=number), 2 * scale
    return _as_number(value, kinds[_value_name(value)])


def _as_number(value: Expr, kind: str) -> tuple[Expr, int | None]:
    if kind in ("float", "double"):
        return exp.cast(value.copy(), "DOUBLE"), None
    if kind.startswith("decimal"):
        scale = int(kind.rstrip(")").rpartition(" ")[2])
        shifted = exp.Mul(this=_within(value), expression=exp.Literal.number(10**scale))
        return _int64(shifted), scale
    if kind == "bool" or is_number(kind):
        return _int64(value.copy()), 0
    raise QueryRefusedError("column", f"it is {kind}, and no number", value)


def _int64(value: Expr) -> Expr:
    return exp.cast(value, "BIGINT")


def _filtered(aggregate: Expr, conditions: Sequence[Expr]) -> Expr:
    if not conditions:
        return aggregate
    where = exp.Where(this=exp.and_(*(each.copy() for each in conditions)))
    return exp.Filter(this=aggregate, expression=where)


def _code(groups: Sequence[Expr], labels: Sequence[Sequence[Label]]) -> Expr:
    """Return the number of a row's group among all that there may be, null if it is none."""
    made: Expr | None = None
    for group, values in zip(groups, labels, strict=True):
        one = _position(group, values)
        if made is None:
            made = one
        else:
            left = exp.Mul(this=_within(made), expression=exp.Literal.number(len(values)))
            made = exp.Add(this=left, expression=one)
    assert made is not None
    return _int64(_within(made))


def _position(group: Expr, values: Sequence[Label]) -> Expr:
    """Return where a value stands among those that there may be."""
    first, last = values[0], values[-1]
    if type(first) is int and type(last) is int and len(values) == last - first + 1 > 2:
        within = exp.Between(this=_within(group), low=exp.convert(first), high=exp.convert(last))
        offset = exp.Sub(this=_within(group), expression=_within(exp.convert(first)))
        return exp.Case(ifs=[exp.If(this=within, true=_int64(offset))])
    ifs = [
        exp.If(
            this=exp.EQ(this=_within(group), expression=exp.convert(value)),
            true=exp.Literal.number(i),
        )
        for i, value in enumerate(values)
    ]
    return exp.Case(ifs=ifs)


def _within(tree: Expr) -> Expr:
    """Return a copy of an expression that stands within another one."""
    simple = isinstance(tree, exp.Column | exp.Func | exp.Literal | exp.Paren)
    return tree.copy() if simple else exp.paren(tree.copy())


def _text(query: Expr, *, braces: bool) -> str:
    query = query.copy()
    for table in query.find_all(exp.Table):
        if braces:
            table.set("this", exp.to_identifier(f"{{{table.name}}}", quoted=False))
    return query.sql("duckdb", pretty=True, comments=False)
