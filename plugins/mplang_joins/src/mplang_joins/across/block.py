"""A query as one block: sources, conditions, groups and outputs. Imports sqlglot.

sqlglot qualifies the names of a query and merges queries within it where that changes nothing. What
is left as a query within has to be one owner's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.expressions import Expr
from sqlglot.optimizer.merge_subqueries import merge_subqueries
from sqlglot.optimizer.qualify import qualify

from mplang_core import TableType
from mplang_joins.across.refused import QueryRefusedError
from mplang_joins.rows import How

_HOWS: Mapping[tuple[str, str], How] = {
    ("", ""): "inner", ("", "INNER"): "inner", ("", "CROSS"): "inner", ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left", ("", "SEMI"): "semi", ("LEFT", "SEMI"): "semi", ("", "ANTI"): "anti",
    ("LEFT", "ANTI"): "anti",
}  # fmt: skip
_CLAUSES = (
    *("offset", "windows", "qualify", "sample", "pivots", "laterals", "connect"),
    *("match", "into", "locks", "settings", "format", "fetch", "sort", "cluster", "distribute"),
)


@dataclass(frozen=True, slots=True)
class QuerySource:
    """A table, or a query of one owner, that a query reads.

    Attributes:
        name: what the query calls it.
        tree: the table, or the query within.
        how: how it is joined with those before it.
        on: by which conditions; those of an inner join are among the query's.
    """

    name: str
    tree: Expr
    how: How = "inner"
    on: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class SortKey:
    """A key by which groups are in order.

    Attributes:
        by: what they are ordered by.
        descending: whether the largest is first.
        nulls_first: whether null is first.
    """

    by: Expr
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class QueryBlock:
    """A query that aggregates a join.

    Attributes:
        sources: what it joins.
        where: conditions of rows, all of which hold.
        groups: what it groups by.
        outputs: the columns of the result by name.
        having: conditions of groups, all of which hold.
        order: by what the groups are in order.
        limit: how many groups come first in that order and are told; ``None`` if all are.
    """

    sources: tuple[QuerySource, ...]
    where: tuple[Expr, ...]
    groups: tuple[Expr, ...]
    outputs: Mapping[str, Expr]
    having: tuple[Expr, ...] = ()
    order: tuple[SortKey, ...] = ()
    limit: int | None = None


def read_block(sql: str, tables: Mapping[str, TableType]) -> QueryBlock:
    """Return a query as one block.

    Args:
        sql: one SELECT in DuckDB's SQL.
        tables: the types of the tables that it reads, by name.

    Raises:
        QueryRefusedError: it is none that can be.

    Example:
        >>> kind = TableType((("id", "int64"), ("pay", "int64")))
        >>> block = read_block("SELECT sum(pay) AS s FROM a WHERE id > 3 AND pay < 5", {"a": kind})
        >>> [each.sql() for each in block.where]
        ['"a"."id" > 3', '"a"."pay" < 5']
    """
    schema: dict[str, object] = {
        name: {column: "INT" for column, _ in kind.columns} for name, kind in tables.items()
    }
    try:
        tree: Any = sqlglot.parse_one(sql, dialect="duckdb")
        if not isinstance(tree, exp.Select):
            raise QueryRefusedError("clause", "it is one SELECT; no UNION or the like")
        tree = merge_subqueries(qualify(_inlined(tree), schema=schema, dialect="duckdb"))
    except SqlglotError as error:
        raise QueryRefusedError("clause", f"it is not understood: {error}") from error
    return _block(tree)


def _inlined(tree: Expr) -> Expr:
    """Return a query with those of each WITH, also within it, in place of their names."""
    within = [each for each in tree.find_all(exp.Query) if each is not tree]
    for each in reversed(within):  # the inner ones first
        if each.args.get("with_") is not None:
            each.replace(_inlined(each.copy()))
    with_ = tree.args.get("with_")
    if with_ is None:
        return tree
    if with_.args.get("recursive"):
        raise QueryRefusedError("clause", "no recursion", with_)
    tree.set("with_", None)
    known: dict[str, Expr] = {}
    for cte in with_.expressions:
        known[cte.alias.lower()] = _with_queries(cte.this, known)
    return _with_queries(tree, known)


def _with_queries(tree: Expr, known: Mapping[str, Expr]) -> Expr:
    def put(node: Expr) -> Expr:
        if isinstance(node, exp.Table) and not node.db and node.name.lower() in known:
            query = known[node.name.lower()].copy()
            return exp.Subquery(
                this=query, alias=exp.TableAlias(this=exp.to_identifier(node.alias_or_name))
            )
        return node

    return tree.transform(put)


def _block(tree: Expr) -> QueryBlock:
    """Return a SELECT as a block."""
    if not isinstance(tree, exp.Select):
        raise QueryRefusedError("clause", "it is one SELECT; no UNION or the like", tree)
    for name in _CLAUSES:
        if tree.args.get(name):
            raise QueryRefusedError(
                "clause", f"{name.upper()} is not there over tables of several parties"
            )
    if window := next((each for each in tree.expressions if each.find(exp.Window)), None):
        raise QueryRefusedError("function", "no windows over tables of several parties", window)
    outputs = {each.alias_or_name: each.unalias() for each in tree.selects}
    conditions = conjuncts(tree.args.get("where"))
    having = conjuncts(tree.args.get("having"))
    sources = [*sources_of(tree)]
    inner = sources[0].tree
    if _aggregates(tree):
        return _aggregate(tree, sources, conditions, having, outputs)
    if len(sources) > 1 or not isinstance(inner, exp.Subquery):
        raise QueryRefusedError(
            "no aggregate",
            "it returns rows of several parties, which no party may get: aggregate them, or use "
            "mp.join, which keeps them on shares",
        )
    below = _block(inner.this)
    order, limit = _order(tree, outputs, {}), _limit(tree)
    if below.limit is not None and (conditions or order or limit is not None):
        raise QueryRefusedError("nested", "what LIMIT leaves is not filtered or put in order again")
    named = {(sources[0].name, name.lower()): made for name, made in below.outputs.items()}
    return replace(
        below,
        outputs={name: put_outputs(each, named) for name, each in outputs.items()},
        having=(*below.having, *(put_outputs(each, named) for each in conditions)),
        order=_order(tree, outputs, named) or below.order,
        limit=below.limit if limit is None else limit,
    )


def _limit(tree: Expr) -> int | None:
    """Return how many groups are told, of those that come first."""
    clause = tree.args.get("limit")
    if clause is None:
        return None
    number = clause.args.get("expression")
    if not isinstance(clause, exp.Limit) or not number or not number.is_int:
        raise QueryRefusedError("clause", "LIMIT takes a number", clause)
    return int(number.to_py())


def _aggregates(tree: Expr) -> bool:
    has_function = any(next(aggregates_of(each), None) for each in tree.expressions)
    return has_function or any(tree.args.get(each) for each in ("group", "distinct", "having"))


def aggregates_of(tree: Expr) -> Iterator[Expr]:
    """Yield the outermost aggregates, with their FILTER."""
    if isinstance(tree, exp.AggFunc) or (
        isinstance(tree, exp.Filter) and isinstance(tree.this, exp.AggFunc)
    ):
        yield tree
    elif not isinstance(tree, exp.Query):  # one within has its own
        for each in tree.iter_expressions():
            yield from aggregates_of(each)


def _aggregate(
    tree: Expr,
    sources: Sequence[QuerySource],
    conditions: Sequence[Expr],
    having: Sequence[Expr],
    outputs: Mapping[str, Expr],
) -> QueryBlock:
    group, distinct = tree.args.get("group"), tree.args.get("distinct")
    groups = tuple(group.expressions) if group else ()
    if group and any(value for key, value in group.args.items() if key != "expressions"):
        raise QueryRefusedError("clause", "one list of groups, no ROLLUP or GROUPING SETS", group)
    if distinct:
        if distinct.args.get("on") or group or any(e.find(exp.AggFunc) for e in outputs.values()):
            raise QueryRefusedError("clause", "DISTINCT of columns alone; else group by them")
        groups = tuple(outputs.values())
    on = [each for source in sources if source.how == "inner" for each in source.on]
    return QueryBlock(
        tuple(replace(each, on=()) if each.how == "inner" else each for each in sources),
        (*on, *conditions),
        groups,
        outputs,
        tuple(having),
        _order(tree, outputs, {}),
        _limit(tree),
    )


def sources_of(tree: Expr) -> Iterator[QuerySource]:
    """Yield the tables, and queries within, that a SELECT reads."""
    first = tree.args.get("from_")
    if first is None:
        raise QueryRefusedError("tables", "it reads no table")
    yield QuerySource(first.this.alias_or_name, first.this)
    for join in tree.args.get("joins") or ():
        how = _HOWS.get((join.side.upper(), join.kind.upper()))
        if how is None or join.method or join.args.get("using"):
            raise QueryRefusedError(
                "join", "inner, left, semi and anti joins ON conditions are there", join
            )
        yield QuerySource(join.this.alias_or_name, join.this, how, conjuncts(join.args.get("on")))


def conjuncts(clause: Expr | None) -> tuple[Expr, ...]:
    """Return the conditions of a clause, all of which hold."""
    if clause is None:
        return ()
    condition = (clause.this if isinstance(clause, exp.Where | exp.Having) else clause).unnest()
    if isinstance(condition, exp.And):
        return (*conjuncts(condition.left), *conjuncts(condition.right))
    return () if condition == exp.true() else (condition,)


def put_outputs(tree: Expr, named: Mapping[tuple[str, str], Expr]) -> Expr:
    """Return an expression with what a query within gives in place of that query's columns.

    Args:
        tree: the expression.
        named: what stands for a column, by the name of the query and its own in lower case.
    """

    def put(node: Expr) -> Expr:
        made = None
        if isinstance(node, exp.Column):
            made = named.get((node.table, node.name.lower()))
        if made is None:
            return node
        return exp.paren(made.copy()) if isinstance(made, exp.Binary) else made.copy()

    return tree.transform(put)


def _order(
    tree: Expr, outputs: Mapping[str, Expr], named: Mapping[tuple[str, str], Expr]
) -> tuple[SortKey, ...]:
    clause = tree.args.get("order")
    keys = []
    for each in clause.expressions if clause else ():
        by = each.this
        if isinstance(by, exp.Column) and not by.table:
            by = next((e for name, e in outputs.items() if name.lower() == by.name.lower()), by)
        descending = bool(each.args.get("desc"))
        keys.append(SortKey(put_outputs(by, named), descending, bool(each.args.get("nulls_first"))))
    return tuple(keys)
