"""Layout of one owner's units for a guard on shares: one tensor. Imports no engine."""

from __future__ import annotations

from hashlib import blake2b
from typing import Literal, NamedTuple, TypeAlias

from mplang_analysis import WHOLE

from mplang_joins.dividends import bits_of_dividend

Part: TypeAlias = Literal["sum", "size", "count", "has"]
"""A number of a unit, in one of its owner's groups: the sum of a column, that of its absolute
values, how many values it has, and whether it has any."""


Functions: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""For columns the functions of a guard that are computed of them."""

WHOLE_BITS = 61
"""Bits that a sum over all units has at most, so that SPUs compare it in 64."""
SHARE_BITS = (WHOLE - 1).bit_length()
"""Bits more that bounding the part of one unit takes."""

_UNITS = "units"
_MADE_OF: dict[str, tuple[Part, ...]] = {
    _UNITS: (), "count": ("count", "has"), "sum": ("sum", "size", "has"),
    "mean": ("sum", "size", "count", "has"),
}  # fmt: skip
FUNCTIONS = tuple(_MADE_OF)
"""The functions that there are on shares."""


FLOAT_DIGITS = 6
"""Digits behind the point that floats are rounded to, once for each unit."""
MAX_DIGITS = 18
"""Digits behind the point that an integer of 64 bits holds."""


class UnitForm(NamedTuple):
    """The form of a tensor of units: ``[planes, rows]``, one row for each unit.

    Its first plane has the tokens of units, then comes one for each group, which says whether the
    unit is in it, then for each number one for each group.

    Attributes:
        groups: how many groups its owner has.
        functions: for columns what is computed of them: no more is told.
        types: the types of these columns.
        bits: how many bits sums and sizes have at most.
        counts: how many bits counts have at most.
        bounded: whether the part of one unit is bounded, for which sizes are needed.
        side: the number of its side, which tokens have.
        sides: how many there are.

    Example:
        >>> form = UnitForm(3, (("pay", ("sum",)),), ("int64",), 40, 30, False, 0, 2)
        >>> form.parts, form.planes, form.first("has", "pay")
        ((('sum', 'pay'), ('has', 'pay')), 10, 7)
    """

    groups: int
    functions: Functions
    types: tuple[str, ...]
    bits: int
    counts: int
    bounded: bool
    side: int
    sides: int

    @property
    def parts(self) -> tuple[tuple[Part, str], ...]:
        """The numbers of a unit in one group, each with its column."""
        made = [
            (part, column)
            for column, functions in self.functions
            for name in functions
            for part in _MADE_OF[name]
            if part != "size" or self.bounded
        ]
        return tuple(dict.fromkeys(made))

    @property
    def planes(self) -> int:
        """How many planes a tensor of this form has."""
        return 1 + self.groups * (1 + len(self.parts))

    @property
    def waits(self) -> str:
        """The form as one word, the same for equal ones: a guard on shares takes no other."""
        return f"joins.units {blake2b(repr(tuple(self)).encode(), digest_size=16).hexdigest()}"

    def first(self, part: Part, column: str) -> int:
        """Return the first plane of a number; that of the groups themselves is 1."""
        return 1 + self.groups * (1 + self.parts.index((part, column)))

    def tells(self, function: str, column: str) -> bool:
        """Return whether a function of a column may be told."""
        return function in dict(self.functions).get(column, ())

    def type_of(self, column: str) -> str:
        """Return the type of a column."""
        return dict(zip((name for name, _ in self.functions), self.types, strict=True))[column]


class UnitAggregate(NamedTuple):
    """An aggregate of units.

    Attributes:
        function: ``units``, ``count``, ``sum`` or ``mean``.
        side: the number of the side whose column it is of; of ``units`` it is any.
        column: the column; of ``units`` it is that of the key.
    """

    function: str
    side: int
    column: str


def is_float(kind: str) -> bool:
    """Return whether a type is one of floats."""
    return kind in ("float", "double")


def digits_of(kind: str) -> int:
    """Return how many digits behind the point values of a type have, as integers hold them.

    Example:
        >>> digits_of("decimal128(9, 2)"), digits_of("double"), digits_of("int8")
        (2, 6, 0)
    """
    if is_float(kind):
        return FLOAT_DIGITS
    return int(kind.rstrip(")").rpartition(" ")[2]) if kind.startswith("decimal") else 0


def room_of(rows: int, *, bounded: bool) -> int:
    """Return how many bits a number of one unit has at most, so that no sum over all wraps.

    Args:
        rows: how many units there are at most.
        bounded: whether the part of one unit is bounded.
    """
    return WHOLE_BITS - rows.bit_length() - (SHARE_BITS if bounded else 0)


def room_of_means(rows: int, field: int, fraction: int, kind: str) -> tuple[int, int]:
    """Return how many bits sums and counts of one unit have at most, if a mean is made of them.

    Sums of floats are multiplied by a millionth before they are divided.

    Args:
        rows: how many units there are at most.
        field: the bits of the SPU's ring.
        fraction: those of a float's fraction.
        kind: the type of the column.
    """
    room = bits_of_dividend(field, fraction) - rows.bit_length()
    finer = 10**FLOAT_DIGITS if is_float(kind) else 1
    return room + finer.bit_length() - 1, room
