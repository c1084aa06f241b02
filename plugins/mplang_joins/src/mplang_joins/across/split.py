"""A query's block, split by owner: what each owner reduces to one row per key. Imports sqlglot."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Literal, NoReturn

from sqlglot import exp
from sqlglot.expressions import Expr

from mplang_joins.across.block import QueryBlock, QuerySource, aggregates_of, conjuncts
from mplang_joins.across.labels import MAX_GROUPS, Look, labels_of
from mplang_joins.across.parts import (
    SPREADS,
    Aggregate,
    Factor,
    FactorTerm,
    KeyValue,
    Kind,
    OwnerPart,
    Owners,
    Split,
    square,
    there,
)
from mplang_joins.across.refused import QueryRefusedError


def split(block: QueryBlock, tables: Mapping[str, int], look: Look) -> Split:
    """Split a query by owner.

    Args:
        block: the query.
        tables: the owner of each table by its name.
        look: what is published of columns.

    Raises:
        QueryRefusedError: a part of it needs rows of several owners side by side.
    """
    return _Splitting(block, tables, look).done()


class _Splitting:
    def __init__(self, block: QueryBlock, tables: Mapping[str, int], look: Look) -> None:
        self._look = look
        block = _with_semi_joins(block, Owners(tables, block.sources))
        self.block, self.owners = block, Owners(tables, block.sources)
        self.parts: dict[int, OwnerPart] = {}
        self.equal: list[tuple[Expr, Expr]] = []  # of two owners
        self.crossing: list[Expr] = []  # conditions of several owners
        for source in block.sources:
            owner = self.owners.of_source(source)
            self.parts.setdefault(owner, OwnerPart(owner)).sources.append(source)
        if len(self.parts) < 2:
            self._refuse(block)
        for source in block.sources:
            self._join(source)
        for condition in block.where:
            self._where(condition)

    def _refuse(self, block: QueryBlock) -> NoReturn:
        """Refuse a query that joins tables of one party alone."""
        for each in block.where:
            if self.owners.of(each) - self.parts.keys():
                raise QueryRefusedError(
                    "nested",
                    "of another party's rows a condition is IN (SELECT key …); in place of EXISTS "
                    "write SEMI JOIN … ON, of NOT EXISTS, and NOT IN without nulls, ANTI JOIN … ON",
                    each,
                )
        raise QueryRefusedError(
            "tables", "all its tables are of one party; run it on a device of that party"
        )

    def done(self) -> Split:
        self._find_keys()
        for each in self.block.groups:
            self._group(each)
        parts = self._in_order()
        self.parts = {each.owner: each for each in parts}
        heads = [*self.block.outputs.values(), *self.block.having]
        heads += [each.by for each in self.block.order]
        named = {agg for head in heads for agg in aggregates_of(head)}
        # in one order in every process
        aggregates = {each: self._aggregate(each) for each in sorted(named, key=_text)}
        rows, values = self._count({}), dict[Expr, KeyValue]()
        where = tuple(self._of_keys(each, values) for each in self.crossing)
        return Split(self.block, parts, aggregates, rows, where, values)

    def _in_order(self) -> list[OwnerPart]:
        """Return the parts, the one that leads first: whose rows a join keeps, or the widest."""
        parts = list(self.parts.values())
        if any(each.how != "inner" for each in parts):
            parts[0].keeps = any(each.how in ("left", "anti") for each in parts)
            return parts  # the first source's
        return sorted(parts, key=lambda each: -each.width)

    # -- joins

    def _join(self, source: QuerySource) -> None:
        owner = self.owners.of_source(source)
        part = self.parts[owner]
        if source.how == "inner":
            return
        across = [each for each in source.on if self.owners.of(each) - {owner}]
        if not across:
            return  # a join of its owner's tables
        if len(part.sources) > 1 or owner == self.owners.of_source(self.block.sources[0]):
            raise QueryRefusedError(
                "join",
                f"a {source.how} join is of one table, or query within, of its party",
                source.tree,
            )
        part.how = source.how
        part.sources = [QuerySource(source.name, source.tree)]
        for each in source.on:
            if self.owners.of(each) <= {owner}:
                part.where.append(each)
            elif not self._equality(each):
                raise QueryRefusedError(
                    "condition", f"a {source.how} join is by equal columns, here", each
                )

    def _where(self, condition: Expr) -> None:
        owners = self.owners.of(condition)
        if len(owners) <= 1:
            owner = owners.pop() if owners else self.owners.of_source(self.block.sources[0])
            if self.parts[owner].how != "inner":
                raise QueryRefusedError(
                    "join",
                    "a condition of the other side of a left join stands in its ON, or the join is "
                    "an inner one",
                    condition,
                )
            self.parts[owner].where.append(condition)
        elif not self._equality(condition):
            self.crossing.append(condition)

    def _equality(self, condition: Expr) -> bool:
        """Take an equality of two owners as a column of the key."""
        if not isinstance(condition, exp.EQ):
            return False
        sides = condition.left.unnest(), condition.right.unnest()
        left, right = (self.owners.of(each) for each in sides)
        if len(left) != 1 or len(right) != 1 or left == right:
            return False
        self.equal.append(sides)
        return True

    def _find_keys(self) -> None:
        classes: list[list[Expr]] = []
        for pair in self.equal:
            met = [each for each in classes if any(side in each for side in pair)]
            merged = list(dict.fromkeys([*(e for each in met for e in each), *pair]))
            classes = [*(each for each in classes if each not in met), merged]
        if not classes:
            raise QueryRefusedError(
                "no key", "no equal columns join the parties' tables; join them ON a = b"
            )
        for each in classes:
            for owner, part in self.parts.items():
                mine = [one for one in each if self.owners.of(one) == {owner}]
                if not mine:
                    raise QueryRefusedError(
                        "other key",
                        "all parties' tables are joined by one key, with columns of each of them",
                        each[0],
                    )
                part.keys.append(mine[0])
                part.where += [exp.EQ(this=mine[0], expression=one) for one in mine[1:]]

    def _group(self, group: Expr) -> None:
        owners = self.owners.of(group)
        if len(owners) != 1:
            raise QueryRefusedError("expression", "a group is made of one party's columns", group)
        part = self.parts[owners.pop()]
        if part.how != "inner":
            raise QueryRefusedError(
                "join", f"groups are columns of what a {part.how} join keeps", group
            )
        part.groups.append(group)
        part.labels.append(labels_of(group, part.sources, self._look))
        if math.prod(each.width for each in self.parts.values()) > MAX_GROUPS:
            raise QueryRefusedError("groups", f"there are more than {MAX_GROUPS} groups", group)

    # -- conditions of keys

    def _of_keys(self, condition: Expr, values: dict[Expr, KeyValue]) -> Expr:
        """Return a condition in which each owner's part is a number that it has of a key."""
        for owner in self.owners.of(condition):
            if not _has_one_row(self.parts[owner]):
                raise QueryRefusedError(
                    "condition",
                    "it is of rows of several parties. It holds for keys if each party has one row "
                    "of a key: join (SELECT key, max(x) AS x FROM t GROUP BY key). Of what a group "
                    "has of both, HAVING compares aggregates",
                    condition,
                )
        if condition.find(exp.Query):
            raise QueryRefusedError(
                "condition", "a query within a condition is of its party's tables alone", condition
            )
        if any(part.how != "inner" for part in self.parts.values()):
            raise QueryRefusedError(
                "condition",
                "it is of rows of several parties, which inner joins alone have",
                condition,
            )
        return self._by_owner(condition, values)

    def _by_owner(self, tree: Expr, values: dict[Expr, KeyValue]) -> Expr:
        """Return a condition; what is true or false at one owner is compared with zero."""
        tree = tree.unnest()
        if len(self.owners.of(tree)) == 1:
            self._value(tree, values)
            return exp.NEQ(this=tree, expression=exp.Literal.number(0))
        if isinstance(tree, exp.And | exp.Or):
            sides = (self._by_owner(each, values) for each in (tree.left, tree.right))
            return type(tree)(**dict(zip(("this", "expression"), sides, strict=True)))
        if isinstance(tree, exp.Not):
            return exp.Not(this=self._by_owner(tree.this, values))
        for each in tree.iter_expressions():
            if len(self.owners.of(each.unnest())) == 1:
                self._value(each.unnest(), values)
        return tree

    def _value(self, tree: Expr, values: dict[Expr, KeyValue]) -> None:
        (owner,) = self.owners.of(tree)
        part = self.parts[owner]
        made = Factor("value", tree), Factor("has", None, (there(exp.paren(tree.copy())),))
        values[tree] = KeyValue([*self.parts].index(owner), *map(part.position, made))

    # -- aggregates

    def _aggregate(self, node: Expr) -> Aggregate:
        where: tuple[Expr, ...] = ()
        if isinstance(node, exp.Filter):
            where = conjuncts(node.expression)
            node = node.this
        value = node.this
        if isinstance(node, exp.Count):
            return Aggregate("count", self._counted(node, where))
        if isinstance(node, exp.Min | exp.Max):
            return self._extreme(node, where)
        if not isinstance(node, (exp.Sum, exp.Avg, *SPREADS)):
            raise QueryRefusedError(
                "function",
                "sum, count, count of distinct keys, avg, min, max, variance and stddev are there",
                node,
            )
        if isinstance(value, exp.Distinct):
            raise QueryRefusedError("distinct", "count(DISTINCT key) alone is there", node)
        terms = list(self._terms(value, node))
        conditions = self._conditions(terms, where, node)
        total = tuple(self._term(sign, factors, conditions) for sign, factors in terms)
        known = self._count(conditions)
        if type(node) in SPREADS:
            squared = self._terms(square(value), node)
            squares = tuple(self._term(sign, factors, conditions) for sign, factors in squared)
            return Aggregate(SPREADS[type(node)], total, known, squares)
        return Aggregate("sum" if isinstance(node, exp.Sum) else "mean", total, known)

    def _extreme(self, node: exp.Min | exp.Max, where: Sequence[Expr]) -> Aggregate:
        """Return the least or the largest of one owner's values."""
        kind: Literal["min", "max"] = "min" if isinstance(node, exp.Min) else "max"
        owners = self.owners.of(node.this)
        if len(owners) != 1 or node.args.get("expressions"):
            raise QueryRefusedError("expression", f"a {kind} is of one party's columns", node)
        (owner,) = owners
        conditions = self._conditions([(1, {owner: node.this})], where, node)
        values, there = [], []
        for each, part in self.parts.items():
            mine = conditions.get(each, ())
            has = part.position(Factor("has", None, mine) if mine else Factor("there"))
            there.append(has)
            of_owner = Factor(kind, node.this, mine)
            values.append(part.position(of_owner) if each == owner else has)
        terms = ((FactorTerm(1, tuple(each)),) for each in (values, there))
        return Aggregate(kind, *terms)

    def _counted(self, node: exp.Count, where: Sequence[Expr]) -> tuple[FactorTerm, ...]:
        value = node.this
        if isinstance(value, exp.Distinct):
            columns = value.expressions
            keyed = len(columns) == 1 and any(
                part.keys == [columns[0].unnest()] and part.how == "inner"
                for part in self.parts.values()
            )
            if not keyed or where:
                raise QueryRefusedError(
                    "distinct", "different values are counted of the key alone", node
                )
            once = Factor("there")
            return (FactorTerm(1, tuple(part.position(once) for part in self.parts.values())),)
        if node.args.get("expressions"):
            raise QueryRefusedError("function", "count takes one value", node)
        is_rows = value is None or isinstance(value, exp.Star | exp.Literal)
        terms = [] if is_rows else list(self._terms(value, node))
        return self._count(self._conditions(terms, where, node))

    def _count(self, conditions: Mapping[int, tuple[Expr, ...]]) -> tuple[FactorTerm, ...]:
        return (self._term(1, {}, conditions),)

    def _term(
        self, sign: int, factors: Mapping[int, Expr], conditions: Mapping[int, tuple[Expr, ...]]
    ) -> FactorTerm:
        places = []
        for owner, part in self.parts.items():
            value = factors.get(owner)
            kind: Kind = "rows" if value is None else "sum"
            made = Factor(kind, value, conditions.get(owner, ()))
            places.append(part.position(made))
        return FactorTerm(sign, tuple(places))

    def _conditions(
        self, terms: Sequence[tuple[int, Mapping[int, Expr]]], where: Sequence[Expr], node: Expr
    ) -> dict[int, tuple[Expr, ...]]:
        """Return what a row has to be like at each owner: no value is null, and its conditions."""
        needed: dict[int, dict[Expr, None]] = {}
        for _, factors in terms:
            for owner, value in factors.items():
                if not isinstance(value, exp.Literal):
                    needed.setdefault(owner, {})[there(value)] = None
        for each in where:
            owners = self.owners.of(each)
            if len(owners) != 1:
                raise QueryRefusedError("condition", "it is of one party's columns", node)
            needed.setdefault(owners.pop(), {})[each] = None
        return {owner: tuple(each) for owner, each in needed.items()}

    def _terms(self, tree: Expr, node: Expr) -> Iterator[tuple[int, dict[int, Expr]]]:
        """Yield the terms of an expression: products of one expression of each owner."""
        owners = self.owners.of(tree)
        if len(owners) <= 1:
            owner = owners.pop() if owners else next(iter(self.parts))
            yield 1, {owner: tree}
        elif isinstance(tree, exp.Paren):
            yield from self._terms(tree.this, node)
        elif isinstance(tree, exp.Neg):
            yield from ((-sign, factors) for sign, factors in self._terms(tree.this, node))
        elif isinstance(tree, exp.Add | exp.Sub):
            yield from self._terms(tree.left, node)
            flip = -1 if isinstance(tree, exp.Sub) else 1
            yield from ((flip * sign, each) for sign, each in self._terms(tree.right, node))
        elif isinstance(tree, exp.Mul):
            sides = (list(self._terms(each, node)) for each in (tree.left, tree.right))
            for (sign, left), (other, right) in product(*sides):
                yield sign * other, _multiplied(left, right)
        else:
            raise QueryRefusedError(
                "expression",
                "columns of several parties are added, subtracted and multiplied in an aggregate; "
                "other expressions are of one party's columns",
                node,
            )


def _has_one_row(part: OwnerPart) -> bool:
    """Return whether an owner has one row of a key at most, as its query is grouped by it."""
    within = part.sources[0].tree.unnest()
    if len(part.sources) > 1 or not isinstance(within, exp.Select):
        return False
    group = within.args.get("group")
    outputs = {each.alias_or_name: each.unalias() for each in within.selects}
    by = list(group.expressions) if group else []
    if within.args.get("distinct") and not group:
        by = list(outputs.values())
    keys = [outputs.get(key.name) for key in part.keys if isinstance(key, exp.Column)]
    if any(each.find(exp.UDTF, exp.Explode, exp.Unnest, exp.Anonymous) for each in within.selects):
        return False  # it may give several rows of one
    plain = group is None or set(group.args) - {"expressions"} <= {
        key for key, value in group.args.items() if not value
    }
    return bool(by) and plain and all(each in keys for each in by)


def _multiplied(left: Mapping[int, Expr], right: Mapping[int, Expr]) -> dict[int, Expr]:
    both = {**left, **right}
    for owner in left.keys() & right.keys():
        sides = (exp.paren(each[owner].copy()) for each in (left, right))
        both[owner] = exp.Mul(**dict(zip(("this", "expression"), sides, strict=True)))
    return both


def _text(tree: Expr) -> str:
    return tree.sql("duckdb")


def _with_semi_joins(block: QueryBlock, owners: Owners) -> QueryBlock:
    """Return a block in which ``a IN (SELECT b …)`` is a semi join, where b is of another owner."""
    sources, where = list(block.sources), list[Expr]()
    for condition in block.where:
        query = condition.args.get("query") if isinstance(condition, exp.In) else None
        within = query.unnest() if query is not None and len(owners.of(condition)) > 1 else None
        if not isinstance(within, exp.Select) or len(within.selects) != 1:
            where.append(condition)
            continue
        name = f"within {len(sources)}"
        column = exp.column(within.selects[0].alias_or_name, name, quoted=True)
        alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
        on = exp.EQ(this=condition.this, expression=column)
        sources.append(QuerySource(name, exp.Subquery(this=within, alias=alias), "semi", (on,)))
    return replace(block, sources=tuple(sources), where=tuple(where))
