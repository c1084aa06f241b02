"""Kernels of the dialect ``data``."""

from __future__ import annotations

from typing import Any

from mplang_tables.ext import AtSource, stays_at_source

from mplang_core import BaseType, TableType
from mplang_core.ext import KernelContext, RunError
from mplang_data.description import NoDataSetError, Ranges
from mplang_data.holding import Facts
from mplang_data.refusals import explaining


def read(ctx: KernelContext, *, name: str, type: BaseType, ranges: Ranges) -> Any:
    """Read a data set of this party, or leave it at its source for queries that run there.

    Args:
        ctx: of the op.
        name: its name.
        type: what is read of it.
        ranges: ranges that the program counts on.

    Returns:
        A ``pyarrow.Table``, an array, or a table that stays at its source.

    Raises:
        AdmissionError: there is none of that name that the coordinator may read, or it does not
            offer that, or publishes no such range.
        KernelError: its source does not hold what its owner says.
    """
    place, perhaps = ctx.interpreter.data, not _is_always_read(ctx)
    with explaining([name]):
        if getattr(place, "read", None) is None:  # a party without data sets
            raise NoDataSetError(name)
        if isinstance(type, TableType) and stays_at_source(ctx.op, ctx.graph):
            return AtSource(type, name, place, Facts(tuple(ranges), perhaps))
        return place.read(name, type, ranges, perhaps=perhaps)


def _is_always_read(ctx: KernelContext) -> bool:
    """Return whether no private data decides that an op runs: it is in a ``pcall_static`` alone."""
    try:
        return bool(ctx.parties) and ctx.key.removeprefix(ctx.run).count("/") == 2
    except RunError:
        return False
