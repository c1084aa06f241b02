"""Maximum number of keys of a table, as its owner publishes it. Imports no Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mplang_analysis import DATA_SET

from mplang_core import MPObject, TraceContext, TraceVar
from mplang_core.ext import Graph, Operation, op_defs


def published_keys(table: MPObject, owner: str, on: Sequence[str]) -> int | None:
    """Return how many keys the data set that a table is made of has at most.

    Args:
        table: a value of a program that is traced.
        owner: name of the party that has it.
        on: the columns of the key.

    Returns:
        What the catalogue says of that column, or of rows; ``None`` if it says nothing, or the
        table is not of one data set.
    """
    ctx, names = table.ctx, data_sets_of(table)
    if len(names) != 1 or not isinstance(ctx, TraceContext):
        return None
    (name,) = names
    return ctx.look_up(
        f"number of keys or rows of data set {name!r} of {owner}",
        lambda known: _keys(None if known is None else known.get(owner, {}).get(name), on),
    )


def data_sets_of(table: MPObject) -> list[str]:
    """Return the names of the data sets that a table may be made of, in order.

    Args:
        table: a value of a program that is traced.

    Returns:
        The names; an empty one stands for other data. None if it is not such a value.
    """
    ctx = table.ctx
    if not isinstance(table, TraceVar) or not isinstance(ctx, TraceContext):
        return []
    return sorted({name.partition(".")[0] for name in _data_sets(table, ctx.graph)})


def _keys(described: object, on: Sequence[str]) -> int | None:
    """Return the bound of keys that a description has; that of rows if it has none of keys.

    Of several columns together there are as many keys as rows.
    """
    keys = getattr(described, "keys", {})
    if len(on) == 1 and on[0] in keys:
        bound: int = keys[on[0]].at_most
        return bound
    rows = getattr(described, "rows", None)
    most: int | None = getattr(rows, "at_most", rows)
    return most


def _data_sets(table: TraceVar, graph: Graph) -> Iterator[str]:
    """Yield the columns of data sets that a table may be made of; an empty name for other data."""
    makers = {value: op for op in graph.ops for value in op.outputs}
    values, seen = [table.value], set[Operation]()
    while values:
        op = makers.get(values.pop())
        if op is None:
            yield ""  # an input, which may be anything
        elif op not in seen:
            seen.add(op)
            values += op.inputs
            for inner in (op, *(each for region in op.regions.values() for each in region.walk())):
                yield from _reads(inner)


def _reads(op: Operation) -> Iterator[str]:
    op_def = op_defs.get(op.opcode)
    reads = op_def.reads if op_def is not None else None
    for name in reads(op) if callable(reads) else reads or ():
        yield name.removeprefix(DATA_SET) if name.startswith(DATA_SET) else ""
