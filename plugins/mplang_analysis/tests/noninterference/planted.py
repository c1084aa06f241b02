"""Planted faults: analyses that leave something out, each in one way.

Those of rows replace the analysis of the experiment, those of labels that of the host's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import mplang_analysis
from mplang_analysis import PUBLIC, DisclosureRow, Followed, Label

from mplang_core.ext import KernelContext

Follow: TypeAlias = Callable[..., Followed]


def _changed(change: Callable[[list[DisclosureRow]], list[DisclosureRow]]) -> Follow:
    """Return an analysis whose rows are changed."""

    def follow(*args: Any) -> Followed:
        found = mplang_analysis.follow(*args)
        rows = tuple(change(list(found.disclosure.rows)))
        return replace(found, disclosure=replace(found.disclosure, rows=rows))

    return follow


def without_a_row(what: str) -> Follow:
    """Leave out the last row of a kind."""

    def change(rows: list[DisclosureRow]) -> list[DisclosureRow]:
        last = max((i for i, row in enumerate(rows) if row.what == what), default=len(rows))
        return rows[:last] + rows[last + 1 :]

    return _changed(change)


def without_rows(what: str) -> Follow:
    """Leave out all rows of a kind."""
    return _changed(lambda rows: [row for row in rows if row.what != what])


def without_a_source(what: str) -> Follow:
    """Leave out one of several parties in the rows of a kind."""

    def fewer(row: DisclosureRow) -> DisclosureRow:
        if row.what != what or len(row.discloses) < 2:
            return row
        return replace(row, inputs=row.inputs[1:], discloses=row.discloses[1:])

    return _changed(lambda rows: list(map(fewer, rows)))


def without_meetings(form: str) -> Follow:
    """Take shares, or ciphertexts, as readable by nobody."""

    def unread(row: DisclosureRow) -> DisclosureRow:
        return replace(row, discloses=()) if row.form == form else row

    return _changed(lambda rows: [unread(row) for row in rows if row.what != "reveal"])


def without_a_receiver(rank: int) -> Follow:
    """Leave out what one party learns."""
    return _changed(lambda rows: [row for row in rows if row.receiver != rank])


def answer_anybody(ctx: KernelContext, src: Any, index: Any) -> Any:
    """Answer whoever asks in a shuffle by an index, as its kernel once did."""
    me, comm = ctx.interpreter.rank, ctx.interpreter.communicator
    others = [rank for rank in range(ctx.interpreter.world_size) if rank != me]
    wanted = None if index is None else int(index)
    for rank in others:
        comm.send(rank, ctx.key + "?", rank == wanted)
    for rank in others:
        if comm.recv(rank, ctx.key + "?"):
            comm.send(rank, ctx.key, src)
    if wanted is None or wanted == me:
        return src if wanted == me else None
    return comm.recv(wanted, ctx.key)


def _relabelled(change: Callable[[Label], Label]) -> Follow:
    def follow(*args: Any) -> Followed:
        found = mplang_analysis.follow(*args)
        outputs: list[Mapping[int, Label]] = [
            {rank: change(label) for rank, label in output.items()} for output in found.outputs
        ]
        return replace(found, outputs=outputs)

    return follow


def without_labels() -> Follow:
    """Lose the labels of results."""
    return _relabelled(lambda label: PUBLIC)


def without_sources_of_others() -> Follow:
    """Keep one source of a result."""
    return _relabelled(lambda label: replace(label, sources=frozenset(sorted(label.sources)[:1])))


def without_history() -> Follow:
    """Forget what parties got in earlier programs, and which shares and keys results are of."""
    followed = _relabelled(lambda label: replace(label, pieces=frozenset(), keys=frozenset()))
    return lambda program, labels, held, *stored: followed(program, labels, None, *stored)
