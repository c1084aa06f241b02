"""Results of queries over tables of several parties. Imports no sqlglot; Arrow when shown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

import mplang_core as mp
from mplang_core import Form, MPObject, TableType
from mplang_core.ext import TraceError, at
from mplang_joins.across.plan import Labels
from mplang_joins.group_table import group_table
from mplang_joins.published import Label
from mplang_joins.rows import Tensor

Cell: TypeAlias = Label | float | Decimal | None


class ResultColumn(NamedTuple):
    """A column of a result, or a key that its rows are in order by.

    Attributes:
        labels: its value in each group; ``None`` of an aggregate.
        aggregate: the position of the aggregate.
        scale: by which power of ten that is multiplied; ``None`` if it is a float.
        root: whether it is the square of what stands there.
    """

    labels: Labels | None = None
    aggregate: int = 0
    scale: int | None = None
    root: bool = False


class ResultOrder(NamedTuple):
    """A key that the rows of a result are in order by.

    Attributes:
        column: the position of the column.
        descending: whether the largest is first.
        nulls_first: whether null is first.
    """

    column: int
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class JoinedGroups:
    """Groups of a query over tables of several parties.

    It is a nest of tensors, one number for each group that there may be, so that their number tells
    nothing; it moves, is revealed and fetched as one. The values of its groups are public. Where a
    group is not ``valid``, as it has no rows or ``HAVING`` leaves it out, its numbers are zero.

    Attributes:
        valid: whether a group is there, bool; ``None`` of a query without groups.
        values: the aggregates; integers and money as integers of 64 bits.
        present: of each aggregate whether it is not null, bool; ``None`` if it never is.
        fits: whether all integers fit into 64 bits, bool; ``None`` if there are none.
        columns: what stands in each column of the result, and behind these what orders it alone.
        type: the columns of the result, by name and type.
        order: by what its rows are in order.
        least: of how many units each number is made, at least: groups of fewer are left out.

    Example:
        >>> import numpy as np
        >>> city, sum = ResultColumn(("A", "B")), ResultColumn(None, 0, 2)
        >>> kind = TableType((("city", "string"), ("sum", "decimal128(38, 2)")))
        >>> made = JoinedGroups(np.array([True, False]), (np.array([150, 0]),), (None,),
        ...                     np.array(True), (city, sum), kind)
        >>> made.to_arrow().to_pylist()
        [{'city': 'A', 'sum': Decimal('1.50')}]
    """

    valid: Tensor
    values: tuple[Tensor, ...]
    present: tuple[Tensor, ...]
    fits: Tensor
    columns: tuple[ResultColumn, ...]
    type: TableType
    order: tuple[ResultOrder, ...] = ()
    least: int = 0

    def table(self) -> MPObject:
        """Return the groups that are there as a table at the party that has them in plain.

        Raises:
            TraceError: they are still secret, or at no device; reveal them to one first.

        Example::

            return mp.reveal(mp.sql("SP0", …), to="P0").table()
        """
        every = (self.valid, *self.values, *self.present, self.fits)
        tensors = [each for each in every if each is not None]
        device = getattr(tensors[0], "device", None) if tensors else None
        if device is None or device.kind.form is not Form.PLAIN:
            raise TraceError(
                f"{at()}table: it is made at one party, which has the groups in plain: reveal them "
                "with to=, the device of that party, first",
                code="T010",
            )
        made: MPObject = mp.device(device.name)(group_table)(
            *tensors,
            grouped=self.valid is not None,
            present=tuple(each is not None for each in self.present),
            checked=self.fits is not None,
            labels=tuple(each.labels or () for each in self.columns),
            aggregates=tuple(each.aggregate for each in self.columns),
            scales=tuple(-1 if each.scale is None else each.scale for each in self.columns),
            roots=tuple(each.root for each in self.columns),
            order=tuple(tuple(map(int, each)) for each in self.order),
            gives=self.type,
        )
        return made

    def to_arrow(self) -> Any:
        """Return the groups that are there as an Arrow table, once they were fetched.

        Raises:
            TypeError: they were not.
            OverflowError: a sum does not fit into 64 bits.
        """
        import pyarrow as pa  # type: ignore[import-untyped]
        from mplang_tables import arrow

        if self.fits is not None and not bool(_here(self.fits)):
            raise OverflowError(
                "a sum may not fit into 64 bits, so all numbers are invalid: take a larger "
                "unit, or smaller values"
            )
        schema = arrow.schema(self.type)
        rows = self._rows()
        columns = [
            pa.array([_of(self._cell(each, row), field.type) for row in rows], field.type)
            for each, field in zip(self.columns, schema, strict=False)
        ]
        return pa.table(columns, schema=schema)

    def to_pandas(self) -> Any:
        """Return the groups that are there as a pandas DataFrame, once they were fetched."""
        return self.to_arrow().to_pandas()

    def _rows(self) -> Sequence[int]:
        """Return the groups that are there, in order."""
        first = next((each for each in (self.valid, *self.values) if each is not None), None)
        if first is None:
            return [0]
        valid = _here(self.valid) if self.valid is not None else [True] * len(_here(first))
        rows = [i for i, there in enumerate(valid) if there]
        for key in reversed(self.order):
            cells: dict[int, Any] = {row: self._cell(self.columns[key.column], row) for row in rows}
            known = [row for row in rows if cells[row] is not None]
            nulls = [row for row in rows if cells[row] is None]
            known.sort(key=lambda row: cells[row], reverse=key.descending)
            rows = [*nulls, *known] if key.nulls_first else [*known, *nulls]
        return rows

    def _cell(self, column: ResultColumn, row: int) -> Cell:
        if column.labels is not None:
            return column.labels[row]
        present = self.present[column.aggregate]
        if present is not None and not _here(present)[row]:
            return None
        value = _here(self.values[column.aggregate])[row].item()
        number = Decimal(value).scaleb(-column.scale) if column.scale else value
        return math.sqrt(max(number, 0)) if column.root else number

    def __str__(self) -> str:
        left = f"groups of fewer than {self.least} units are left out" if self.least else ""
        try:
            return "\n".join([str(self.to_pandas().to_string(index=False)), left]).rstrip()
        except (TypeError, OverflowError):
            names = ", ".join(name for name, _ in self.type.columns)
            return f"{type(self).__name__} of {names}"


def _of(cell: Cell, kind: object) -> Cell:
    """Return a number as one of its type."""
    return float(cell) if cell is not None and str(kind) == "double" else cell


def _here(values: Tensor) -> Tensor:
    """Return the numbers of a tensor, or those of the first party of several that have it."""
    values = values[0] if isinstance(values, list) and values else values
    if not hasattr(values, "__array__"):
        raise TypeError(f"these are not numbers yet, but {values!r:.60}; mp.fetch gives them")
    return values


def rule_of(cls: type) -> Any:
    """Return how to take the class of results apart, and put one together; else ``None``."""
    return (_apart, _together) if cls is JoinedGroups else None


def _apart(groups: JoinedGroups) -> tuple[list[Any], tuple[Any, ...], tuple[str, ...]]:
    names = ("valid", "values", "present", "fits")
    return (
        [getattr(groups, name) for name in names],
        (groups.columns, groups.type, groups.order, groups.least),
        names,
    )


def _together(kept: tuple[Any, ...], children: Iterable[Any]) -> JoinedGroups:
    return JoinedGroups(*children, *kept)
