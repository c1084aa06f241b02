"""What one owner makes of its units for a guard on shares: one tensor. Imports no engine."""

from __future__ import annotations

from hashlib import blake2b
from typing import Literal, NamedTuple, TypeAlias

Part: TypeAlias = Literal["sum", "size", "count", "has"]
"""A number of a unit, in one of its owner's groups: the sum of a column, that of its absolute
values, how many values it has, and whether it has any."""


Functions: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""For columns the functions of a guard that are computed of them."""

_UNITS = "units"
_MADE_OF: dict[str, tuple[Part, ...]] = {
    _UNITS: (), "count": ("count", "has"), "sum": ("sum", "size", "has"),
    "mean": ("sum", "size", "count", "has"),
}  # fmt: skip
FUNCTIONS = tuple(_MADE_OF)
"""The functions that there are on shares."""


class UnitForm(NamedTuple):
    """The form of a tensor of units: ``[planes, rows]``, one row for each unit.

    Its first plane has the tokens of units, then comes one for each group, which says whether the
    unit is in it, then for each number one for each group.

    Attributes:
        groups: how many groups its owner has.
        functions: for columns what is computed of them: no more is told.
        bits: how many bits sums and sizes have at most.
        counts: how many bits counts have at most.
        bounded: whether the part of one unit is bounded, for which sizes are needed.

    Example:
        >>> form = UnitForm(3, (("pay", ("sum",)),), 40, 30)
        >>> form.parts, form.planes, form.first("has", "pay")
        ((('sum', 'pay'), ('has', 'pay')), 10, 7)
    """

    groups: int
    functions: Functions
    bits: int
    counts: int
    bounded: bool = False

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


class UnitAggregate(NamedTuple):
    """An aggregate of units.

    Attributes:
        function: ``units``, ``count``, ``sum`` or ``mean``.
        side: the number of the side whose column it is of; of ``units`` it is any.
        column: the column; of ``units`` it is that of the key.
        scale: by which power of ten its numbers were multiplied, to be integers.
    """

    function: str
    side: int
    column: str
    scale: int
