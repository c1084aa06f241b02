"""A query over tables of several parties, lowered to what each of them and the SPU do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sqlglot import exp
from sqlglot.expressions import Expr

from mplang_core import TableType
from mplang_joins.across import groups as results
from mplang_joins.across.block import SortKey, read_block
from mplang_joins.across.conditions import OF_KEYS, condition_of
from mplang_joins.across.groups import JoinedGroups, ResultColumn
from mplang_joins.across.labels import table_of
from mplang_joins.across.limbs import limbs_of, width_of
from mplang_joins.across.owner_sql import OwnerQuery, owner_query
from mplang_joins.across.parts import Aggregate, Factor, FactorTerm, KeyValue, OwnerPart, Split
from mplang_joins.across.plan import (
    AggregatePlan,
    Condition,
    FirstGroups,
    KeyNumber,
    Labels,
    Product,
    RankKey,
    SharePlan,
    Total,
)
from mplang_joins.across.refused import QueryRefusedError
from mplang_joins.across.split import split
from mplang_joins.across.union import split_union
from mplang_joins.dividends import bits_of_dividend
from mplang_joins.keys import key_kinds
from mplang_joins.ops import MAX_ROWS, Kinds
from mplang_joins.published import PublishedColumn

if TYPE_CHECKING:
    from mplang_joins.across.totals import GroupNumbers  # of JAX


WHOLE = 61
"""Bits that a sum of integers has at most, so that SPUs compare it in 64."""

MAX_RANKED = 256
"""Groups at most of which some come first: each is compared with each other one."""

CHOSEN = 60
"""Bits that an integer has at most that is compared with others."""

LEAST_DIVIDEND = 40
"""Bits that a dividend has at least, so that variances are right."""

MAX_DIGITS = 18
"""Digits behind the point that an integer of 64 bits holds."""


class QueryTables(Protocol):
    """The tables of a query, as :class:`mplang_joins.across.run.Tables` has them."""

    @property
    def kinds(self) -> Mapping[str, TableType]:
        """Their types by name."""

    @property
    def parties(self) -> Mapping[str, int]:
        """The ranks of their owners by name."""

    def look(self, table: str, column: str) -> PublishedColumn:
        """Return what is published of a column."""

    def bound(self, keys: Sequence[tuple[str, str]]) -> int | None:
        """Return how many keys there are at most."""

    def owner_of(self, table: str) -> str:
        """Return the name of the party that has a table."""


@dataclass(frozen=True, slots=True)
class OwnerWork:
    """Work of one owner.

    Attributes:
        owner: its rank.
        query: what it runs.
        tables: the names of its tables, some of which this reads.
        groups: in how many groups its rows are.
        rows: how many keys it has at most.
        limbs: of each factor in how many limbs its absolute values are shared as well.
        most: of each factor how many bits it has at most; 0 if nothing bounds it.
    """

    owner: int
    query: OwnerQuery
    tables: Sequence[str]
    groups: int
    rows: int
    limbs: tuple[int, ...] = ()
    most: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LoweredQuery:
    """A query, lowered.

    Attributes:
        works: what each owner does.
        kinds: by which each column of the key is compared.
        plan: what is computed on shares.
        columns: what stands in each column of the result, and what it is in order by alone.
        type: its columns by name and type.
        order: by what its rows are in order.
    """

    works: Sequence[OwnerWork]
    kinds: Kinds
    plan: SharePlan
    columns: tuple[ResultColumn, ...]
    type: TableType
    order: tuple[results.ResultOrder, ...]

    @property
    def keeps(self) -> bool:
        """Whether rows of the first side stay that have no key in common."""
        return not {"left", "anti"}.isdisjoint(self.plan.hows)

    @property
    def common(self) -> int:
        """How many keys there are at most once the owners know which are in common."""
        return min(each.rows for each in self.works[: 1 if self.keeps else None])

    def result(self, answer: GroupNumbers) -> JoinedGroups:
        """Return the result, of what was computed on shares."""
        valid, values, present, fits = answer
        return JoinedGroups(
            valid, tuple(values), tuple(present), fits, self.columns, self.type, self.order
        )


class NumberBits(NamedTuple):
    """Number format of an SPU.

    Attributes:
        field: the bits of its ring.
        fraction: those of a float's fraction.
    """

    field: int
    fraction: int


def lower(
    sql: str, tables: QueryTables, gives: TableType, bits: NumberBits, *, learns: bool = False
) -> LoweredQuery:
    """Return what each owner and the SPU do for a query.

    Args:
        sql: one SELECT in DuckDB's SQL.
        tables: its tables.
        gives: the type of its result, as DuckDB says.
        bits: of the SPU's numbers.
        learns: whether the owners learn which keys are in common, by a match.

    Raises:
        QueryRefusedError: it cannot be run; says which part of it, why, and what to write.
    """
    block = read_block(sql, tables.kinds)
    divided = split_union(block, tables.parties, tables.look)
    divided = divided or split(block, tables.parties, tables.look)
    if learns and (len(divided.parts) > 2 or divided.union):
        raise QueryRefusedError("tables", "a match joins tables of two parties; leave match= out")
    works = [_work(each, tables, union=divided.union) for each in divided.parts]
    try:
        kinds = key_kinds([each.query.kinds for each in works])
    except TypeError as error:
        raise QueryRefusedError("column", f"the key: {error}") from error
    return _Lowering(divided, works, bits).done(kinds, gives)


def _work(part: OwnerPart, tables: QueryTables, *, union: bool) -> OwnerWork:
    """Return what one owner does."""
    named = {name.lower(): name for name in tables.kinds}
    names = [name for name, owner in tables.parties.items() if owner == part.owner]
    if union:
        return OwnerWork(part.owner, owner_query(part, tables.kinds), names, part.width, 1)
    reduces = part if part.how in ("inner", "left") else replace(part, factors=[])
    columns = [table_of(key, part.sources) for key in part.keys]
    known = [(named[each[0].lower()], each[1]) for each in columns if each is not None]
    bound = tables.bound(known) if len(known) == len(columns) else None
    if bound is None or not 1 <= bound <= MAX_ROWS:
        raise QueryRefusedError(
            "bound",
            f"how many keys {tables.owner_of(names[0])} has at most is not known: its owner "
            "publishes keys: of that column, or rows:, of the data set",
            part.keys[0],
        )
    return OwnerWork(part.owner, owner_query(reduces, tables.kinds), names, part.width, bound)


class _Lowering:
    def __init__(self, divided: Split, works: Sequence[OwnerWork], bits: NumberBits) -> None:
        self.split, self.works, self.bits = divided, works, bits
        self.leading = divided.parts[:1] if divided.union else divided.parts
        self.sides = sum(each.how in ("inner", "left") for each in self.leading)
        self.rows = len(works) if divided.union else works[0].rows
        self.wanted = {node: self._wanted(each) for node, each in divided.aggregates.items()}
        self.positions = {node: i for i, node in enumerate(divided.aggregates)}
        self.shown: list[int] = []
        self.labels = dict(self._labels())
        self.values = {tree: self._key_number(each) for tree, each in divided.values.items()}

    def done(self, kinds: Kinds, gives: TableType) -> LoweredQuery:
        block = self.split.block
        outputs = zip(block.outputs.values(), gives.columns, strict=True)
        columns = [self._column(tree, type) for tree, (_, type) in outputs]
        order = tuple(self._ordered(each, columns) for each in block.order)
        scales = [_unit(each) for each in self.wanted.values()]
        plan = SharePlan(
            tuple(each.how for each in self.leading),
            tuple(tuple(map(_absent, each.factors)) for each in self.leading),
            tuple(self.wanted.values()),
            tuple(self.shown),
            self._total(self.split.rows) if block.groups else None,
            self._width(),
            (WHOLE, min(WHOLE, bits_of_dividend(*self.bits))),
            tuple(condition_of(each, self._find, scales) for each in block.having),
            self._first(order, columns),
            self.split.union,
            self._where(),
            tuple(self.values.values()),
        )
        works = [self._bounded(i, each) for i, each in enumerate(self.works)]
        return LoweredQuery(works, kinds, plan, tuple(columns), gives, order)

    def _where(self) -> tuple[Condition, ...]:
        """Return the conditions of keys."""
        places = {tree: i for i, tree in enumerate(self.values)}
        scales = [each.scale for each in self.values.values()]

        def find(tree: Expr) -> Condition | None:
            return ("aggregate", places[tree]) if tree in places else None

        return tuple(condition_of(each, find, scales, OF_KEYS) for each in self.split.where)

    def _key_number(self, value: KeyValue) -> KeyNumber:
        return KeyNumber(*value, self.works[value.side].query.scales[value.value])

    def _first(
        self, order: Sequence[results.ResultOrder], columns: Sequence[ResultColumn]
    ) -> FirstGroups | None:
        """Return which groups are told, if not all are."""
        count = self.split.block.limit
        if count is None:
            return None
        if not self.split.block.groups:
            raise QueryRefusedError(
                "clause", "a query without groups gives one row: leave LIMIT out"
            )
        if not order:
            raise QueryRefusedError(
                "clause", "LIMIT is of groups that are in order: write ORDER BY before it"
            )
        if prod(each.width for each in self.leading) > MAX_RANKED:
            raise QueryRefusedError("groups", f"LIMIT chooses among {MAX_RANKED} groups at most")
        return FirstGroups(count, tuple(_rank_key(each, columns[each.column]) for each in order))

    def _width(self) -> int:
        try:
            return width_of(self.rows, self.sides)
        except ValueError as error:
            raise QueryRefusedError("bound", str(error)) from error

    def _bounded(self, i: int, work: OwnerWork) -> OwnerWork:
        """Return what an owner does with how large its numbers are at most, so that sums fit."""
        part, width = self.split.parts[i], self._width()
        totals = [each.total for each in self.wanted.values() if each.total.scale is None]
        side = 0 if self.split.union else i
        floats = {product.factors[side] for total in totals for product in total.products}
        limbs, most, of_floats = [], [], self._bits_of_floats()
        if floats and of_floats < 1:
            raise QueryRefusedError("bound", "the SPU's field has no room for products of floats")
        for position, scale in enumerate(work.query.scales):
            kind = part.factors[position].kind
            chosen, counts = kind in ("min", "max", "value"), kind in ("rows", "there", "has")
            limbs.append(0 if counts or chosen or scale is None else limbs_of(width))
            bits = width if counts else CHOSEN if chosen and scale is not None else 0
            if kind == "value" and scale is None:
                bits = min(CHOSEN, self.bits.field - 3 - self.bits.fraction)  # a difference fits
            most.append(min(bits or of_floats, of_floats) if position in floats else bits)
        return replace(work, limbs=tuple(limbs), most=tuple(most))

    def _bits_of_floats(self) -> int:
        """Return how many bits a factor has before the point, so that products and sums fit."""
        field, fraction = self.bits
        product, rows = bits_of_dividend(*self.bits), self.rows.bit_length()
        divides = any(each.function == "mean" for each in self.split.aggregates.values())
        total = product - rows if divides else field - 2 - fraction - rows
        return min(product, total) // self.sides

    def _labels(self) -> Iterator[tuple[Expr, Labels]]:
        """Yield each group with its value in all groups that there may be, the last run fastest."""
        sizes = [len(each) for part in self.leading for each in part.labels]
        trees = [each for part in self.leading for each in part.groups]
        trees = list(self.split.block.groups) if self.split.union else trees
        values = [each for part in self.leading for each in part.labels]
        for i, (tree, here) in enumerate(zip(trees, values, strict=True)):
            each, times = prod(sizes[i + 1 :]), prod(sizes[:i])
            yield tree, tuple(label for label in here for _ in range(each)) * times

    def _wanted(self, each: Aggregate) -> AggregatePlan:
        known = self._total(each.known) if each.known else None
        total = self._total(each.total)
        match each.function:
            case "min" | "max" as extreme:
                beyond = CHOSEN if total.scale is not None else self._bits_of_floats()
                return AggregatePlan(extreme, total, known, beyond)
            case "sum" | "count" | "mean" as added:
                return AggregatePlan(added, total, known)
            case "var_samp" | "stddev_samp":
                return AggregatePlan("var_samp", total, known, squares=self._squares(each))
            case "var_pop" | "stddev_pop":
                return AggregatePlan("var_pop", total, known, squares=self._squares(each))

    def _squares(self, each: Aggregate) -> Total:
        """Return what is added of squares."""
        squares = self._total(each.squares)
        if squares.scale is None:
            raise QueryRefusedError(
                "column", "variances are of integers and decimals; cast floats to a DECIMAL"
            )
        if bits_of_dividend(*self.bits) < LEAST_DIVIDEND:
            raise QueryRefusedError(
                "bound", "the SPU's field has no room for variances; take FM128"
            )
        return squares

    def _total(self, terms: Sequence[FactorTerm]) -> Total:
        scales = [self._scale(each) for each in terms]
        if None in scales:
            return Total(tuple(Product(each.sign, each.factors) for each in terms), None)
        whole = [each for each in scales if each is not None]
        top = max(whole)
        return Total(
            tuple(
                Product(each.sign * 10 ** (top - scale), each.factors)
                for each, scale in zip(terms, whole, strict=True)
            ),
            top,
        )

    def _scale(self, term: FactorTerm) -> int | None:
        """Return by which power of ten a term is multiplied; ``None`` if it is a float."""
        if self.split.union:
            return self._one_scale([each.query.scales[term.factors[0]] for each in self.works])
        scales: list[int | None] = []
        for part, work, i in zip(self.split.parts, self.works, term.factors, strict=True):
            scales += [work.query.scales[i]] if part.how in ("inner", "left") else []
        if None not in scales:
            digits = sum(each for each in scales if each is not None)
            if digits > MAX_DIGITS:
                raise QueryRefusedError(
                    "column", f"a product has {digits} digits behind the point; {MAX_DIGITS} fit"
                )
            return digits
        if any(scales):
            raise QueryRefusedError(
                "column", "a decimal is multiplied by a float; cast it to DOUBLE at its party"
            )
        return None

    def _one_scale(self, scales: Sequence[int | None]) -> int | None:
        """Return the scale that a number has at all owners."""
        if len(set(scales)) > 1:
            raise QueryRefusedError(
                "column", "its decimals have another scale, or are floats, at another party; cast"
            )
        return scales[0]

    def _find(self, tree: Expr) -> Condition | None:
        if tree in self.positions:
            if self.split.aggregates[tree].squares:
                raise QueryRefusedError("function", "variances choose no groups", tree)
            return ("aggregate", self.positions[tree])
        return ("label", self.labels[tree]) if tree in self.labels else None

    def _column(self, tree: Expr, type: str) -> ResultColumn:
        """Return what stands in a column of the result."""
        tree = tree.unnest()
        if tree in self.labels:
            labels: Labels = self.labels[tree]
            return ResultColumn(labels)
        node = tree.this.unnest() if isinstance(tree, exp.Cast) else tree
        if node not in self.positions:
            raise QueryRefusedError(
                "expression",
                "a column of the result is an aggregate, or what is grouped by; compute with these "
                "once they are there",
                tree,
            )
        wanted = self.wanted[node]
        if wanted.squares is not None:
            root = self.split.aggregates[node].function.startswith("stddev")
            return ResultColumn(None, self._shown(self.positions[node]), wanted.squares.scale, root)
        scale = _unit(wanted)
        digits = int(type.rstrip(")").rpartition(" ")[2]) if type.startswith("decimal") else 0
        wide = ("int64", "uint64", "decimal128(38, ")
        kinds = wide if isinstance(tree, exp.Cast) else ("int", "uint", "decimal128")
        fits = type in ("", "double", "float") or (scale == digits and type.startswith(kinds))
        if not fits:
            raise QueryRefusedError("expression", "it would be rounded; give it as it is", tree)
        return ResultColumn(None, self._shown(self.positions[node]), scale)

    def _shown(self, aggregate: int) -> int:
        """Return where an aggregate stands in the result."""
        if aggregate not in self.shown:
            self.shown.append(aggregate)
        return self.shown.index(aggregate)

    def _ordered(self, order: SortKey, columns: list[ResultColumn]) -> results.ResultOrder:
        """Return a key that the result is in order by, which it has or is grouped by."""
        before = len(self.shown)
        column = self._column(order.by, "")
        if len(self.shown) > before:  # whose numbers somebody would get
            raise QueryRefusedError(
                "clause",
                "groups are ordered by columns of the result: add it to them, as the order "
                "discloses it too",
                order.by,
            )
        if column not in columns:
            columns.append(column)
        return results.ResultOrder(columns.index(column), order.descending, order.nulls_first)


def _rank_key(order: results.ResultOrder, column: ResultColumn) -> RankKey:
    """Return a key by which groups are in order on shares."""
    labels = () if column.labels is None else column.labels
    places = {label: i for i, label in enumerate(sorted(set(labels)))}
    ranks = tuple(places[label] for label in labels)
    return RankKey(column.aggregate, ranks, order.descending, order.nulls_first)


def _unit(wanted: AggregatePlan) -> int | None:
    """Return the power of ten of an aggregate's unit; ``None`` if it is a float."""
    return None if wanted.function == "mean" else wanted.total.scale


def _absent(factor: Factor) -> int:
    """Return what a factor is where a left join finds no row."""
    return int(factor.kind in ("rows", "there") and not factor.conditions)
