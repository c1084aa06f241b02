"""Kernel of the op ``match.match``, at each of its two parties."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from mplang_core import Mask, MPType
from mplang_core.ext import KernelContext, RunError, native_calls
from mplang_match import apart
from mplang_match.keys import keys_of
from mplang_match.kinds import common_kind
from mplang_match.service import Asked
from mplang_match.tokens import SIZE, Array, Tokens, agree_secret, make_tokens, read_text


class Matching(NamedTuple):
    """The attributes of an op ``match.match``, as one of its parties sees them."""

    me: int
    peer: int
    side: int
    attrs: dict[str, Any]

    @property
    def receiver(self) -> int:
        """The party that gets to know first what is in common."""
        learn: Mask = self.attrs["learn"]
        return learn.first if len(learn) == 1 else max(self.me, self.peer)

    @property
    def learns(self) -> bool:
        """Whether this party gets to know what is in common."""
        return self.me in self.attrs["learn"]


def match(ctx: KernelContext, a: Any, b: Any, **attrs: Any) -> Any:
    """Match the rows of this party's table with those of the other party.

    Args:
        ctx: of the op.
        a: the table of the one party, ``None`` at the other.
        b: that of the other.
        **attrs: the attributes of the op.

    Returns:
        Per output the rows that matched, ``None`` if this party does not hold it.

    Raises:
        RunError: there are more keys than declared, fewer are in common than asked for, or the
            other party has failed.
    """
    from mplang_tables import arrow

    given = _matching(ctx, attrs)
    table = arrow.plain(_loaded((a, b)[given.side]))
    kinds = [common_kind(*pair) for pair in _types(ctx, attrs["on"])]
    columns = [pair[given.side] for pair in attrs["on"]]
    secret = agree_secret(ctx.interpreter.communicator, given.peer, ctx.key)
    keys = keys_of(table, columns, kinds)
    tokens = make_tokens(keys, secret, attrs["most"][given.side])
    del keys, secret
    common = _common(ctx, given, tokens)
    ctx.interpreter.communicator.forget(ctx.key)
    outs = [value.type for value in ctx.op.outputs]
    if common is None:
        return _single([None] * len(outs))
    rows = _rows(table, tokens, tokens.positions(common), attrs["number"])
    return _single([_as(rows, kind) if _is_of(kind, given.me) else None for kind in outs])


def _matching(ctx: KernelContext, attrs: dict[str, Any]) -> Matching:
    me = ctx.interpreter.rank
    owners = [_owner(value.type) for value in ctx.op.inputs]
    side = owners.index(me)
    return Matching(me, owners[1 - side], side, attrs)


def _owner(kind: object) -> int:
    assert isinstance(kind, MPType) and kind.pmask is not None
    return kind.pmask.first


def _is_of(kind: object, rank: int) -> bool:
    return _owner(kind) == rank


def _types(ctx: KernelContext, on: Any) -> list[tuple[str, str]]:
    a, b = (dict(value.type.base.columns) for value in ctx.op.inputs)  # type: ignore[union-attr]
    return [(a[mine], b[theirs]) for mine, theirs in on]


def _loaded(table: Any) -> pa.Table:
    from mplang_tables.ext import loaded

    return loaded(table)


def _common(ctx: KernelContext, given: Matching, tokens: Tokens) -> Array | None:
    """Return what is in common, in ascending order; ``None`` where this party does not learn it."""
    receives = given.receiver == given.me
    asked = Asked(protocol=given.attrs["protocol"], key=ctx.key, peer=given.peer, learns=receives)
    calls = native_calls(ctx)
    if calls is None:
        parts = apart.match(ctx.interpreter, asked, tokens.text())
    else:
        _, parts = calls.call(ctx.run, "match", asked.model_dump(), [tokens.text()])
    comm, key = ctx.interpreter.communicator, f"{ctx.key}|common"
    both = len(given.attrs["learn"]) == 2
    if receives:
        if len(parts) != 1:
            raise RunError("the matcher told nothing")
        found = read_text(memoryview(parts[0]))
        _check_size(found, given)
        if both:
            comm.send(given.peer, key, found.view(np.uint8))
        return found
    return _received(comm.recv(given.peer, key), given) if both else None


def _received(data: Any, given: Matching) -> Array:
    """Return what the other party says is in common."""
    is_bytes = isinstance(data, np.ndarray) and data.dtype == np.uint8 and data.ndim == 1
    if not is_bytes or data.size % SIZE:
        raise RunError(f"party {given.peer} sent no tokens")
    found = np.ascontiguousarray(data).view(f"S{SIZE}")
    _check_size(found, given)
    return found


def _check_size(found: Array, given: Matching) -> None:
    if len(found) < given.attrs["at_least"]:
        raise RunError(
            f"fewer than {given.attrs['at_least']} keys are in common, so nothing is told"
        )


def _rows(table: pa.Table, tokens: Tokens, common: Array, number: str) -> pa.Table:
    """Return the rows whose keys are in common, in the order of these, with their numbers."""
    numbers = np.full(len(tokens.values), -1, np.int64)
    numbers[common] = np.arange(len(common))
    of_rows = np.where(tokens.of_rows < 0, -1, numbers[tokens.of_rows])
    there = np.flatnonzero(of_rows >= 0)
    order = there[np.argsort(of_rows[there], kind="stable")]
    return table.take(pa.array(order)).append_column(number, pa.array(of_rows[order]))


def _as(rows: pa.Table, kind: Any) -> pa.Table:
    return rows.select([name for name, _ in kind.base.columns])


def _single(outs: list[Any]) -> Any:
    return outs[0] if len(outs) == 1 else tuple(outs)
