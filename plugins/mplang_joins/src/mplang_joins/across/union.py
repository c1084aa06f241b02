"""A query over the rows of several owners, one below the other: no join at all. Imports sqlglot."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from sqlglot import exp
from sqlglot.expressions import Expr

from mplang_joins.across.block import QueryBlock, aggregates_of, conjuncts, put_outputs, sources_of
from mplang_joins.across.labels import MAX_GROUPS, Look, labels_of
from mplang_joins.across.parts import (
    SPREADS,
    Aggregate,
    Factor,
    FactorTerm,
    Kind,
    OwnerPart,
    Owners,
    Split,
    square,
    there,
)
from mplang_joins.across.refused import QueryRefusedError

Outputs: TypeAlias = Mapping[tuple[str, str], Expr]
"""What an owner's query gives for the columns of the union, by the name of that and their own."""


def split_union(block: QueryBlock, tables: Mapping[str, int], look: Look) -> Split | None:
    """Split a query over a ``UNION ALL`` by owner; ``None`` if it is over none of several owners.

    Args:
        block: the query.
        tables: the owner of each table by its name.
        look: what is published of columns.

    Raises:
        QueryRefusedError: a part of it is none that owners can add up.
    """
    (source, *others) = block.sources
    inner = source.tree.this if isinstance(source.tree, exp.Subquery) else None
    if others or not isinstance(inner, exp.Union):
        return None
    branches = list(_branches(inner))
    # the columns of the first query name those of all others
    names = [(source.name, each.alias_or_name.lower()) for each in branches[0].selects]
    parts = [_part(each, names, block.where, tables) for each in branches]
    if len({part.owner for part, _ in parts}) < 2:
        return None
    return _UnionSplit(block, parts, look).done()


def _branches(tree: Expr) -> Iterator[exp.Select]:
    """Yield the queries whose rows are one below the other."""
    tree = tree.unnest()
    clauses = ("order", "limit", "offset", "fetch", "by_name", "with_", "on", "side", "kind")
    if isinstance(tree, exp.SetOperation) and any(tree.args.get(each) for each in clauses):
        raise QueryRefusedError("clause", "UNION ALL by position, of all rows, is there", tree)
    if isinstance(tree, exp.Union) and not tree.args.get("distinct"):
        yield from _branches(tree.this)
        yield from _branches(tree.expression)
    elif isinstance(tree, exp.Select):
        yield tree
    else:
        raise QueryRefusedError("clause", "UNION ALL of queries of one party each", tree)


def _part(
    branch: exp.Select, names: Sequence[tuple[str, str]], where: Sequence[Expr],
    tables: Mapping[str, int],
) -> tuple[OwnerPart, Outputs]:  # fmt: skip
    """Return what an owner reads, and what stands for the columns of the union."""
    clauses = ("group", "having", "distinct", "order", "limit", "offset", "windows", "qualify")
    if any(branch.args.get(each) for each in clauses) or any(
        next(aggregates_of(each), None) or each.find(exp.Window) for each in branch.expressions
    ):
        raise QueryRefusedError("nested", "a query of a UNION gives rows as they are", branch)
    sources = [*sources_of(branch)]
    owners = Owners(tables, sources)
    read = {owners.of_source(each) for each in sources}
    if len(read) != 1:
        raise QueryRefusedError("nested", "a query of a UNION reads tables of one party", branch)
    outputs = dict(zip(names, (each.unalias() for each in branch.selects), strict=True))
    part = OwnerPart(read.pop(), sources=sources)
    part.where += [each for s in sources if s.how == "inner" for each in s.on]
    part.where += conjuncts(branch.args.get("where"))
    part.where += [put_outputs(each, outputs) for each in where]
    for each in (*part.where, *outputs.values()):
        if not owners.of(each) <= {part.owner}:
            raise QueryRefusedError("condition", "it reads tables of another party", each)
    return part, outputs


class _UnionSplit:
    def __init__(
        self, block: QueryBlock, parts: Sequence[tuple[OwnerPart, Outputs]], look: Look
    ) -> None:
        self._block, self._look = block, look
        self._parts = [part for part, _ in parts]
        self._named = [outputs for _, outputs in parts]

    def done(self) -> Split:
        for each in self._block.groups:
            self._group(each)
        heads = [*self._block.outputs.values(), *self._block.having]
        heads += [each.by for each in self._block.order]
        named = sorted(
            {agg for head in heads for agg in aggregates_of(head)}, key=lambda each: each.sql()
        )
        aggregates = {each: self._aggregate(each) for each in named}
        return Split(
            self._block, self._parts, aggregates, (self._term("rows", None, ()),), union=True
        )

    def _group(self, group: Expr) -> None:
        labels = set()
        for part, outputs in zip(self._parts, self._named, strict=True):
            part.groups.append(put_outputs(group, outputs))
            labels |= set(labels_of(part.groups[-1], part.sources, self._look))
        for part in self._parts:
            part.labels.append(tuple(sorted(labels)))
        if math.prod(len(each) for each in self._parts[0].labels) > MAX_GROUPS:
            raise QueryRefusedError("groups", f"there are more than {MAX_GROUPS} groups", group)

    def _aggregate(self, node: Expr) -> Aggregate:
        where: tuple[Expr, ...] = ()
        if isinstance(node, exp.Filter):
            where, node = conjuncts(node.expression), node.this
        value = node.this
        if isinstance(value, exp.Distinct):
            raise QueryRefusedError("distinct", "one row may be at several parties", node)
        rows = value is None or isinstance(value, exp.Star | exp.Literal)
        known = () if rows else (there(value),)
        count = (self._term("rows", None, (*known, *where)),)
        match node:
            case exp.Count():
                return Aggregate("count", count)
            case exp.Sum():
                return Aggregate("sum", (self._term("sum", value, (*known, *where)),), count)
            case exp.Avg():
                return Aggregate("mean", (self._term("sum", value, (*known, *where)),), count)
            case _ if type(node) in SPREADS:
                total = (self._term("sum", value, (*known, *where)),)
                squares = (self._term("sum", square(value), (*known, *where)),)
                return Aggregate(SPREADS[type(node)], total, count, squares)
            case exp.Min() | exp.Max():
                kind: Literal["min", "max"] = "min" if isinstance(node, exp.Min) else "max"
                there_is = (self._term("has", None, (*known, *where)),)
                return Aggregate(kind, (self._term(kind, value, (*known, *where)),), there_is)
        raise QueryRefusedError(
            "function", "sum, count, avg, min, max, variance and stddev are there", node
        )

    def _term(self, kind: Kind, value: Expr | None, conditions: Sequence[Expr]) -> FactorTerm:
        """Return a number that each owner makes, at the same position."""
        made = [
            Factor(
                kind,
                None if value is None else put_outputs(value, outputs),
                tuple(put_outputs(each, outputs) for each in conditions),
            )
            for outputs in self._named
        ]
        for i, _ in enumerate(self._parts[0].factors):
            if made == [part.factors[i] for part in self._parts]:
                return FactorTerm(1, (i,))
        for part, factor in zip(self._parts, made, strict=True):
            part.factors.append(factor)
        return FactorTerm(1, (len(self._parts[0].factors) - 1,))
