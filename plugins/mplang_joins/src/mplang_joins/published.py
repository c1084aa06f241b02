"""Published facts about the columns of a table. Imports no Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from mplang_match.ext import data_sets_of

from mplang_core import MPObject, TableType, TraceContext

Label: TypeAlias = bool | int | str


class PublishedColumn(NamedTuple):
    """Published facts about a column.

    Attributes:
        values: all that there are, besides null; empty if it does not say.
        range: the smallest and the largest number; ``None`` if it does not say.
        whole: whether it is of integers.
    """

    values: Sequence[Label] = ()
    range: Sequence[float] | None = None
    whole: bool = False


def published_column(table: MPObject, owner: str, column: str) -> PublishedColumn:
    """Return what the data sets that a table is made of say of a column of that name.

    A table may have been computed: what it has then need not be what is published, and whoever
    counts on it has to check.

    Args:
        table: a value of a program that is traced.
        owner: name of the party that has it.
        column: the name of the column, in any case.
    """
    ctx, kind = table.ctx, table.base_type
    assert isinstance(kind, TableType)
    types = {name.lower(): (name, each) for name, each in kind.columns}
    name, type = types[column.lower()]
    whole = type.lstrip("u").startswith("int")
    if not isinstance(ctx, TraceContext):
        return PublishedColumn(whole=whole)
    for data_set in data_sets_of(table):
        described = ctx.look_up(
            f"values and range of {name!r} of data set {data_set!r} of {owner}",
            lambda known, data_set=data_set: _described(  # type: ignore[misc]
                None if known is None else known.get(owner, {}).get(data_set), name
            ),
        )
        if described != ((), None):
            return PublishedColumn(*described, whole)
    return PublishedColumn(whole=whole)


def _described(
    described: object, column: str
) -> tuple[tuple[Label, ...], tuple[float, float] | None]:
    values = getattr(described, "values", {}) or {}
    ranges = getattr(described, "ranges", {}) or {}
    ends = ranges.get(column)
    return tuple(values.get(column, ())), None if ends is None else (ends[0], ends[1])
