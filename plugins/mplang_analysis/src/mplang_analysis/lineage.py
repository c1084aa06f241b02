"""Lineage: which columns of a table are those of data sets, in rows as these give them.

A guard counts only over such a table. What is computed before it could single somebody out: the sum
of ``pay * (id = 7)`` over a thousand people is one person's pay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from mplang_analysis.guarding import WHOLE
from mplang_analysis.words import Role
from mplang_core.ext import Operation

NORMALIZING = frozenset(
    ["lower", "upper", "trim", "ltrim", "rtrim", "strip_accents", "nfc_normalize"]
)
"""Functions that bring a text into one form, by which different persons stay different."""


class Origin(NamedTuple):
    """Private data, whatever it went through.

    Attributes:
        party: whose it is.
        name: what it is, as a source of a label calls it.
    """

    party: int
    name: str

    @property
    def data_set(self) -> tuple[int, str]:
        """The data set of a column: its party, and its name."""
        return self.party, self.name.partition(".")[0]


class Guard(NamedTuple):
    """Ops that private data went through, so that a value discloses no row of it.

    Attributes:
        op: the family of the guard, such as ``guard`` or ``dp``.
        units: columns of the same party's data sets by whose distinct values it counts or clips.
        k: how many distinct units are at least in what it tells; 0 if it counts none.
        uses: what the data was used for: ``mean``, ``by``, ``filter``, ``match``, ``unit``.
        functions: the row-wise functions before it.
        max_share: the largest part of a number that is one unit's, in millionths.
        tried: of a match how many keys others bring at most; 0 if nothing bounds it.
        least: of a match how many are in common at least, or nothing is told.
        waits: on which form of shares a guard has to take the data first; it counts for nothing
            until then. Empty if it went through one.
        made: where in the program, and at which party, that was made of it which waits.
    """

    op: str
    units: tuple[str, ...]
    k: int
    uses: tuple[str, ...]
    functions: tuple[str, ...] = ()
    max_share: int = WHOLE
    tried: int = 0
    least: int = 0
    waits: str = ""
    made: str = ""


Cell: TypeAlias = tuple[int, str]
"""A column of an operand: the position of the operand, and the name of the column."""


class Selection(NamedTuple):
    """Some rows and columns of a table: each row once, and nothing in it is changed.

    Attributes:
        table: the operand whose rows they are.
        columns: the columns of the result; for each of them the column of that operand, or nothing
            if it is computed.
        filtered: columns that decide which rows are chosen.
        matched: columns by which rows are matched with those of other operands.
        same: pairs of them that are equal in each row of the result, and of one type.
        functions: the functions that decide.
        computed: columns of the result that are computed of one row, of which columns, and by
            which functions.
    """

    table: int
    columns: Sequence[tuple[str, str | None]]
    filtered: frozenset[Cell] = frozenset()
    matched: frozenset[Cell] = frozenset()
    same: frozenset[tuple[Cell, Cell]] = frozenset()
    functions: frozenset[str] = frozenset()
    computed: Sequence[tuple[str, frozenset[Cell], frozenset[str]]] = ()


class Computed(NamedTuple):
    """Column that is computed of others in its row.

    Attributes:
        name: its name.
        origins: the data that it is made of.
        functions: the functions by which.
    """

    name: str
    origins: frozenset[Origin]
    functions: frozenset[str]


@dataclass(frozen=True, slots=True)
class Lineage:
    """Origins of the columns of a table.

    Attributes:
        columns: for each column the data that it is; nothing if it is computed.
        reads: all that was read to make it.
        filtered: what decides which rows it has.
        matched: data by which it was matched with other tables.
        same: pairs of that which are equal in each row.
        functions: the functions that decide.
        loose: data that flowed in by another way as well.
        computed: columns that are computed, of which it is known how.
        listed: data by which it was matched with a table that is none of data sets, such as a list
            in the program.
    """

    columns: tuple[tuple[str, Origin | None], ...]
    reads: frozenset[Origin]
    filtered: frozenset[Origin] = frozenset()
    matched: frozenset[Origin] = frozenset()
    same: frozenset[tuple[Origin, Origin]] = frozenset()
    functions: frozenset[str] = frozenset()
    loose: frozenset[Origin] = frozenset()
    computed: tuple[Computed, ...] = ()
    listed: frozenset[Origin] = frozenset()

    @classmethod
    def of(cls, party: int, columns: Iterable[tuple[str, str]]) -> Lineage:
        """Return the lineage of a table that is read.

        Args:
            party: whose it is.
            columns: for each column what a source of a label calls it.
        """
        found = tuple((name, Origin(party, source)) for name, source in columns)
        return cls(found, frozenset(origin for _, origin in found))

    def with_loose(self, origins: Iterable[Origin]) -> Lineage:
        """Return it with data that flowed in by another way."""
        return replace(self, loose=self.loose | frozenset(origins))

    def guards(
        self,
        op: str,
        units: Sequence[str],
        uses: Mapping[str, Sequence[str]],
        k: int = 0,
        max_share: int = WHOLE,
    ) -> tuple[Mapping[Origin, Guard], str]:
        """Return what data goes through by a guard, and why it does not count if that is nothing.

        Args:
            op: the family of the guard.
            units: columns by whose distinct values it counts or clips.
            uses: for each column of the table what it is used for.
            k: how many distinct units are at least in what it tells.
            max_share: the largest part of a number that is one unit's, in millionths.

        Example:
            >>> columns = [("id", "data set people.id"), ("pay", "data set people.pay")]
            >>> people = Lineage.of(0, columns)
            >>> found, _ = people.guards("guard", ["id"], {"pay": ["mean"]}, 20)
            >>> found[Origin(0, "data set people.pay")].uses
            ('mean',)
        """
        there = dict(self.columns)
        computed = [name for name in (*units, *uses) if there.get(name) is None]
        if computed:
            return {}, f"column {computed[0]!r} is computed"
        same = self._same([there[name] for name in units])
        if k and not same.isdisjoint(self.filtered):
            return {}, f"a filter names the unit, {units[0]!r}, and could single somebody out"
        found = {}
        for origin in self.reads - self.loose:
            used = {use for name, of in uses.items() if there[name] == origin for use in of}
            used |= {
                use
                for use, among in (
                    (Role.FILTER, self.filtered),
                    (Role.MATCH, self.matched),
                    (Role.UNIT, same),
                )
                if origin in among
            }
            mine = sorted(each.name for each in same if each.party == origin.party)
            functions = tuple(sorted(self.functions))
            found[origin] = Guard(op, tuple(mine), k, tuple(sorted(used)), functions, max_share)
        return found, ""

    def prepares(
        self, op: str, unit: str, uses: Mapping[str, Sequence[str]], waits: str
    ) -> tuple[Mapping[Origin, Guard], str]:
        """Return by what a guard on shares is waited for, and why it will not count otherwise.

        Args:
            op: the family of that guard.
            unit: the column by which rows of several parties are joined, and by whose distinct
                values it counts.
            uses: for each column of the table what it is used for.
            waits: the form of the shares.
        """
        guards, why = self.guards(op, [unit], uses, 1)
        units = {origin for origin, guard in guards.items() if Role.UNIT in guard.uses}
        if not units.isdisjoint(self.listed):
            why = f"{unit!r} is matched with a list, which could single somebody out"
            return {}, why
        matched = {Role.UNIT, Role.MATCH}
        return {
            origin: guard._replace(
                k=0, waits=waits,
                uses=tuple(sorted({*guard.uses, *(matched if Role.UNIT in guard.uses else ())})),
            )
            for origin, guard in guards.items()
        }, why  # fmt: skip

    def matches(
        self, op: str, keys: Sequence[str], tried: int = 0, least: int = 0
    ) -> tuple[Mapping[Origin, Guard], str]:
        """Return what data goes through a match, and why that does not count if it is nothing.

        A match tells of a table which of its keys are in common with those of another one.

        Args:
            op: the family of the op that matches.
            keys: the columns that it matches on.
            tried: how many keys others bring at most; 0 if nothing bounds it.
            least: how many are in common at least, or nothing is told.

        Example:
            >>> columns = [("id", "data set people.id"), ("pay", "data set people.pay")]
            >>> people = Lineage.of(0, columns)
            >>> found, _ = people.matches("match", ["id"])
            >>> found[Origin(0, "data set people.id")].uses
            ('match',)
            >>> found[Origin(0, "data set people.pay")].uses
            ()
        """
        if any(self.origins_of(key) is None for key in keys):
            return {}, "the source of its keys is unknown"
        made, chosen, functions = self.keys(keys)
        guards = {}
        for origin in self.reads - self.loose:
            used = [Role.MATCH] if origin in made | self.matched else []
            used += [Role.FILTER] if origin in chosen | self.filtered else []
            guards[origin] = Guard(
                op, (), 0, tuple(sorted(used)), tuple(sorted(functions)), WHOLE, tried, least
            )
        return guards, ""

    def keys(
        self, columns: Sequence[str]
    ) -> tuple[frozenset[Origin], frozenset[Origin], frozenset[str]]:
        """Return the data by which keys match, that by which they choose rows, and functions.

        A key that is computed otherwise than by bringing its text into one form may be true for
        one person: it chooses as a filter does.

        Args:
            columns: the columns that are matched on.
        """
        made, chosen = frozenset[Origin](), frozenset[Origin]()
        functions = self.functions
        plain = dict(self.columns)
        for column in columns:
            origins = self.origins_of(column) or frozenset()
            by = frozenset[str]().union(*(c.functions for c in self.computed if c.name == column))
            functions |= by
            if plain.get(column) is not None or (len(origins) == 1 and by <= NORMALIZING):
                made |= origins
            else:
                chosen |= origins
        return made, chosen, functions

    def origins_of(self, column: str) -> frozenset[Origin] | None:
        """Return the data that a column is, or is computed of; ``None`` if nobody can tell."""
        origin = dict(self.columns).get(column)
        if origin is not None:
            return frozenset([origin])
        return next((each.origins for each in self.computed if each.name == column), None)

    def _same(self, units: Sequence[Origin | None]) -> set[Origin]:
        """Return columns with all those that they are matched with."""
        found = {each for each in units if each is not None}
        while (
            more := {b for pair in self.same for a, b in (pair, pair[::-1]) if a in found} - found
        ):
            found |= more
        return found


def selected(selection: Selection, operands: Sequence[Lineage | None]) -> Lineage | None:
    """Return the lineage of a selection.

    Args:
        selection: the selection.
        operands: the lineage of each operand.

    Returns:
        ``None`` if its rows have none, or something that is computed decides which they are.

    Raises:
        ValueError: it names an operand, or a column of one, that is not there.
    """
    _check_cells(selection, operands)
    rows = operands[selection.table]
    if rows is None:
        return None
    known = [None if each is None else dict(each.columns) for each in operands]

    def origin(cell: Cell) -> Origin | None:
        columns = known[cell[0]]
        return None if columns is None else columns.get(cell[1])

    deciding = [*selection.filtered, *selection.matched]
    if any(known[cell[0]] is not None and origin(cell) is None for cell in deciding):
        return None
    there = [each for each in operands if each is not None]
    reads = frozenset[Origin]().union(*(each.reads for each in there))
    filtered = {found for cell in selection.filtered if (found := origin(cell))}
    matched = {found for cell in selection.matched if (found := origin(cell))}
    unknown = any(known[cell[0]] is None for cell in selection.matched)
    same = {(a, b) for x, y in selection.same if (a := origin(x)) and (b := origin(y))}
    twice = _twice(there)
    return Lineage(
        tuple(
            (name, None if column is None else origin((selection.table, column)))
            for name, column in selection.columns
        ),
        reads,
        frozenset(filtered).union(*(each.filtered for each in there)),
        frozenset(matched).union(*(each.matched for each in there)),
        frozenset(same).union(*(each.same for each in there)),
        selection.functions.union(*(each.functions for each in there)),
        frozenset(each for each in reads if each.data_set in twice).union(
            *(each.loose for each in there)
        ),
        tuple(_computed(selection, operands)),
        frozenset(matched if unknown else ()).union(*(each.listed for each in there)),
    )


def _computed(selection: Selection, operands: Sequence[Lineage | None]) -> Iterator[Computed]:
    """Yield the computed columns of a selection, those that were computed before included."""
    rows = operands[selection.table]
    assert rows is not None
    before = {each.name: each for each in rows.computed}
    for name, column in selection.columns:
        if column in before:
            yield before[column]._replace(name=name)
    for name, cells, functions in selection.computed:
        origins: set[Origin] = set()
        for table, column in cells:
            operand = operands[table]
            made_of = None if operand is None else operand.origins_of(column)
            if operand is None or made_of is None:
                break
            origins |= made_of
            functions = functions.union(
                *(each.functions for each in operand.computed if each.name == column)
            )
        else:
            yield Computed(name, frozenset(origins), functions)


def _check_cells(selection: Selection, operands: Sequence[Lineage | None]) -> None:
    """Refuse a selection of what the operands do not have."""
    cells: set[Cell] = {*selection.filtered, *selection.matched}
    cells |= {cell for pair in selection.same for cell in pair}
    cells |= {(selection.table, column) for _, column in selection.columns if column is not None}
    for table in {selection.table, *(table for table, _ in cells)}:
        if not 0 <= table < len(operands):
            raise ValueError(f"a Selection names operand {table} of {len(operands)}")
    for table, name in sorted(cells):
        operand = operands[table]
        if operand is not None and name not in dict(operand.columns):
            there = ", ".join(column for column, _ in operand.columns)
            raise ValueError(f"a Selection names {name!r} of operand {table}, which has {there}")


def _twice(operands: Sequence[Lineage]) -> set[tuple[int, str]]:
    """Return the data sets that are in several operands.

    One that is matched with itself, such as by the department, may decide by one person on the
    rows of others: counting units of the result does not count the persons that decide.
    """
    counts = Counter(found for each in operands for found in {read.data_set for read in each.reads})
    return {data_set for data_set, count in counts.items() if count > 1}


@runtime_checkable
class HasLineage(Protocol):
    """Interface of an op whose result has rows of data sets, as these give them."""

    def lineage(
        self, op: Operation, rank: int, operands: Sequence[Lineage | None]
    ) -> Lineage | None:
        """Return the lineage of the result at a party.

        Args:
            op: the op.
            rank: who runs it.
            operands: the lineage of each operand there.
        """


@dataclass(frozen=True, slots=True)
class LineageRule:
    """A function as the interface :class:`HasLineage`, for ``OpDef(interfaces=[…])``.

    Attributes:
        rule: ``rule(op, rank, operands)``.
    """

    rule: Callable[[Operation, int, Sequence[Lineage | None]], Lineage | None]

    def lineage(
        self, op: Operation, rank: int, operands: Sequence[Lineage | None]
    ) -> Lineage | None:
        """Return what the function does."""
        return self.rule(op, rank, operands)
