"""Op ``match.match``, among two parties. Imports no Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

from mplang_analysis import Matches
from mplang_tables import check_table

from mplang_core import Mask, MPType, TableType
from mplang_core.ext import (
    AnyType,
    Attr,
    Communicates,
    Effects,
    Labels,
    Level,
    Message,
    OpDef,
    Operation,
    operand_types,
)
from mplang_match.kinds import common_kind
from mplang_match.matcher import names
from mplang_match.token_type import TokensType

NUMBER = "int64"
DUMMIES = 1  # tokens of no key, at least
MAX_KEYS = 1 << 27


def owners(op: Operation) -> tuple[int, int]:
    """Return the ranks of the parties that bring the tables.

    Raises:
        TypeError: an operand is not a table at one party, or both are at the same one.
    """
    ranks = []
    for i, kind in enumerate(operand_types(op)):
        if not isinstance(kind.base, TableType) or kind.pmask is None or len(kind.pmask) != 1:
            raise TypeError(f"it matches tables of one party each, operand {i} is {kind}")
        ranks.append(kind.pmask.first)
    if len(ranks) != 2 or ranks[0] == ranks[1]:
        raise TypeError(f"it matches the tables of two parties, got those of {ranks}")
    return ranks[0], ranks[1]


def tables(op: Operation) -> tuple[TableType, TableType]:
    """Return the types of both tables."""
    a, b = (kind.base for kind in operand_types(op))
    assert isinstance(a, TableType)
    assert isinstance(b, TableType)
    return a, b


class _Match(Communicates, Labels, Matches):
    """Interfaces of the op among parties."""

    def messages(self, op: Operation, world: Mask) -> Sequence[Message]:
        """Return tokens both ways, and to who learns which keys of the other are in common."""
        ranks, most = owners(op), op.attrs["most"]
        sent: list[Message] = []
        for side, (table, keys) in enumerate(zip(tables(op), self.keys(op), strict=True)):
            ends = ranks[side], ranks[1 - side]
            size = None if most[side] is None else most[side] + DUMMIES
            sent.append(Message(*ends, side, TokensType(size), many=True))
            if ranks[1 - side] in op.attrs["learn"]:
                types = dict(table.columns)
                kind = TableType(tuple((key, types[key]) for key in dict.fromkeys(keys)))
                sent.append(Message(*ends, side, kind, "match", stage=1))
        return sent

    def keys(self, op: Operation) -> Sequence[Sequence[str]]:
        """Return the columns of each table that are matched on."""
        return [[pair[side] for pair in op.attrs["on"]] for side in (0, 1)]

    def bounds(self, op: Operation) -> Sequence[tuple[int, int]]:
        """Return how many keys the other party brings, and how many are in common at least."""
        a, b = (each or 0 for each in op.attrs["most"])
        return [(b, op.attrs["at_least"]), (a, op.attrs["at_least"])]

    def label(self, op: Operation) -> str:
        return "match"


def _infer(op: Operation, world: Mask) -> Sequence[AnyType]:
    attrs, ranks = op.attrs, owners(op)
    _check_on(attrs["on"], tables(op))
    learn: Mask = attrs["learn"]
    if not learn or not learn <= Mask.from_ranks(ranks):
        raise ValueError(f"learn names both parties or one of {ranks}, got {learn}")
    if attrs["protocol"] not in names():
        raise ValueError(f"no matcher {attrs['protocol']!r} is installed; {', '.join(names())} are")
    most = attrs["most"]
    if len(most) != 2 or not all(each is None or is_size(each) for each in most):
        raise ValueError(f"most is a number of keys or none for each party, got {most}")
    if not is_size(attrs["at_least"]):
        raise ValueError(f"at_least is a number of keys, got {attrs['at_least']}")
    return [
        MPType(result_type(table, [pair[side] for pair in attrs["on"]], attrs), Mask.of(rank))
        for side, (table, rank) in enumerate(zip(tables(op), ranks, strict=True))
        if rank in learn
    ]


def is_size(number: object) -> TypeGuard[int]:
    """Return whether something is a number of keys."""
    return type(number) is int and 0 <= number <= MAX_KEYS


def _check_on(on: Any, both: tuple[TableType, TableType]) -> None:
    """Refuse columns that are not there, or do not match."""
    if not on or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in on):
        raise TypeError(f"on names pairs of columns, got {on!r}")
    for pair in on:
        types = []
        for column, table in zip(pair, both, strict=True):
            known = dict(table.columns)
            if column not in known:
                there = ", ".join(known)
                raise TypeError(f"there is no column {column!r} to match on; there are {there}")
            types.append(known[column])
        try:
            common_kind(*types)
        except TypeError as error:
            raise TypeError(f"{pair[0]!r} and {pair[1]!r}: {error}") from None


def result_type(table: TableType, keys: Sequence[str], attrs: Any) -> TableType:
    """Return the type of the rows that matched.

    Raises:
        TypeError: there is a column of the name of that of the numbers.
    """
    number = attrs["number"]
    kept = [each for each in table.columns if attrs["keep"] or each[0] not in keys]
    if number.lower() in {name.lower() for name, _ in table.columns}:
        raise TypeError(
            f"the table has a column {number!r}, as the numbers of keys are called: give another "
            "name by number="
        )
    kind = TableType((*kept, (number, NUMBER)))
    check_table(kind)
    return kind


MATCH = OpDef(
    "match.match",
    _infer,
    Level.PARTY,
    attrs={
        "on": Attr(tuple, doc="pairs of columns, one of each table, that are equal in a match"),
        "learn": Attr(Mask, doc="who learns which keys are in common"),
        "most": Attr(tuple, doc="per table how many keys it has at most; none if it tells"),
        "at_least": Attr(int, 0, doc="how many keys are in common, or nothing is told"),
        "keep": Attr(bool, False, doc="whether results have the columns that were matched on"),
        "number": Attr(str, "match", doc="the column of the numbers of keys in common, from 0"),
        "protocol": Attr(str, "RR22", doc="the matcher"),
    },
    doc="Matches the rows of two parties' tables by equal keys, at those who learn them.",
    effects=Effects.FRESH,  # the order of its rows is another one each time
    interfaces=[_Match()],
    reads=(),
)
