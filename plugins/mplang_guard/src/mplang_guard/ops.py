"""Ops of the dialect ``guard``. Imports no Arrow and no DuckDB."""

from __future__ import annotations

from collections import defaultdict

from mplang_analysis import WHOLE, Guarding, GuardRule, Role
from mplang_tables import check_table

from mplang_core import TableType, simple_op
from mplang_core.ext import OPTIONAL, Operation
from mplang_guard.functions import FUNCTIONS, WORDS

MAX_K = 1 << 40

Aggregates = tuple[tuple[str, str, str], ...]
"""For each column of a result its name, the function, and the column, which may be empty."""


def _guarding(op: Operation) -> Guarding:
    """Return what each column of the table is used for."""
    unit, uses = op.attrs["unit"], defaultdict[str, list[str]](list)
    for column in op.attrs["by"]:
        uses[column].append(Role.BY)
    for _, function, column in op.attrs["aggregates"]:
        uses[column or unit].append(function)
    return Guarding([unit], uses, op.attrs["k"], max_share=op.attrs.get("max_share", WHOLE))


@simple_op(
    "guard.aggregate",
    interfaces=[GuardRule(_guarding, WORDS.functions)],
    reads=(),
    inputs=({"kind": "Table"},),
    outputs=({"kind": "Table"},),
)
def guarded(
    x: TableType,
    *,
    unit: str,
    k: int,
    by: tuple[str, ...],
    aggregates: Aggregates,
    max_share: int = OPTIONAL,
) -> TableType:
    """Aggregate a table; :func:`mplang_guard.aggregate` is its frontend.

    Args:
        x: a table.
        unit: the column that tells whose rows these are.
        k: how many different units each number is made of, at least.
        by: columns to group by.
        aggregates: name, function and column of each aggregate.
        max_share: the largest part of each number that one unit adds, in millionths; absent if
            nothing bounds it.

    Returns:
        A table of the columns of ``by`` and of the aggregates, one row for each group.

    Raises:
        TraceError: there is no such column or function, or a column has no numbers.
        KernelError: a sum does not fit in 64 bits.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_guard.ops import guarded
        >>> from mplang_tables import table
        >>> def program():
        ...     x = mp.device("P0")(table({"id": [1, 2], "pay": [3.0, 4.0]}))()
        ...     wanted = (("mean", "mean", "pay"),)
        ...     return mp.device("P0")(guarded)(x, unit="id", k=2, by=(), aggregates=wanted)
        >>> with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).to_pylist()
        [{'mean': 3.5}]
    """
    check_table(x)
    types = dict(x.columns)
    if type(k) is not int or not 1 <= k <= MAX_K:
        raise TypeError(f"k is a number of units, at least 1, got {k!r}")
    bounded = max_share is not OPTIONAL
    if bounded and (type(max_share) is not int or not 0 < max_share < WHOLE):
        raise TypeError(f"max_share is a part, in millionths from 1 to 999999, got {max_share!r}")
    if not aggregates:
        raise TypeError("it has at least one aggregate, such as mean=('pay', 'mean')")
    for column in (unit, *by):
        _check_column(x, column)
    columns = [(name, types[name]) for name in by]
    columns += [(name, type_of(x, function, column)) for name, function, column in aggregates]
    kind = TableType(tuple(columns))
    check_table(kind)
    return kind


def type_of(x: TableType, function: str, column: str) -> str:
    """Return the type of an aggregate.

    Raises:
        TypeError: there is no such column or function, or the column has no numbers.
    """
    if not column:
        if function not in FUNCTIONS or not FUNCTIONS[function].of_rows:
            raise TypeError(f"{function!r} is of a column: ('column', {function!r})")
        return FUNCTIONS[function].gives("")
    _check_column(x, column)
    of_columns = [name for name, each in FUNCTIONS.items() if not each.of_unit]
    if function not in of_columns:
        raise TypeError(f"there is no function {function!r}; there are {', '.join(of_columns)}")
    kind = dict(x.columns)[column]
    if not FUNCTIONS[function].of(kind):
        raise TypeError(f"column {column!r} is {kind}, and has no {function}")
    return FUNCTIONS[function].gives(kind)


def _check_column(x: TableType, column: str) -> None:
    if column not in dict(x.columns):
        names = ", ".join(name for name, _ in x.columns)
        raise TypeError(f"there is no column {column!r}; there are {names}")
