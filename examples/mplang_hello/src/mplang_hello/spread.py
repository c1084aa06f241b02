"""A guard: the variance of a column, of at least ``k`` units. Imports Arrow when it runs."""

from __future__ import annotations

import math
import statistics
from typing import Any

from mplang_analysis import Guarding, GuardRule
from mplang_core import TableType, simple_op
from mplang_core.ext import KernelContext, Operation

from mplang_hello.words import NUMBERS, WORDS

GIVES = TableType((("var", "double"),))


def _guarding(op: Operation) -> Guarding:
    """Return the column of units, and what the other one is used for."""
    uses = {op.attrs["column"]: ["var"]}
    return Guarding([op.attrs["unit"]], uses, op.attrs["k"])


@simple_op(
    "hello.spread",
    interfaces=[GuardRule(_guarding, WORDS.functions)],
    reads=(),
    inputs=({"kind": "Table"},),
    outputs=({"kind": "Table"},),
)
def spread(x: TableType, *, column: str, unit: str, k: int) -> TableType:
    """Return the variance of a column, or no row if it is of less than ``k`` units.

    Args:
        x: a table.
        column: a column of numbers.
        unit: the column that tells whose rows these are; rows without it are left out.
        k: how many different units the variance is of, at least.

    Returns:
        A table of one row, or of none.

    Raises:
        TraceError: there is no such column, or it has no numbers.

    Example:
        >>> import mplang_core as mp
        >>> def program():
        ...     t = mp.dataset("bank", "people")
        ...     return mp.device()(spread)(t, column="pay", unit="id", k=2)
        >>> people = {"id": [1, 2, 3], "pay": [1.0, 2.0, 3.0]}
        >>> cluster = mp.ClusterSpec([{"name": "bank"}])
        >>> with mp.Simulator(cluster, data={"bank": {"people": people}}) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program)).to_pylist()
        [{'var': 1.0}]
    """
    types = dict(x.columns)
    if unit not in types or not NUMBERS.match(types.get(column, "")):
        raise TypeError(f"it needs a unit and a column of numbers, got {unit!r} and {column!r}")
    if k < 2:
        raise TypeError(f"a variance is of at least 2 units, got k={k}")
    return GIVES


def of_enough(ctx: KernelContext, x: Any, *, column: str, unit: str, k: int) -> Any:
    """Compute it."""
    import pyarrow  # type: ignore[import-untyped]

    rows = zip(x[unit].to_pylist(), x[column].to_pylist(), strict=True)
    known = [(who, number) for who, number in rows if _is_known(who) and _is_known(number)]
    enough = len({who for who, _ in known}) >= k
    found = [statistics.variance(float(number) for _, number in known)] if enough else []
    return pyarrow.table({"var": pyarrow.array(found, pyarrow.float64())})


def _is_known(cell: Any) -> bool:
    """Return whether a cell has a value; a float that is none tells nothing."""
    return cell is not None and (not isinstance(cell, float) or math.isfinite(cell))
