"""Kernel of the op ``match.match``, at each of its two parties."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from mplang_tables import arrow
from mplang_tables.ext import loaded

from mplang_core import Mask
from mplang_core.ext import Buffer, KernelContext, Operation, RunError, native_calls
from mplang_match import apart
from mplang_match.keys import check_spellings, keys_of
from mplang_match.kinds import common_kind
from mplang_match.lines import SIZE
from mplang_match.ops import owners, tables
from mplang_match.service import MatchRequest
from mplang_match.tokens import Array, Tokens, agree_secret, make_tokens, read_text

log = logging.getLogger("mplang.match")


@dataclass(frozen=True, slots=True)
class Matching:
    """An op ``match.match``, as one of its parties sees it.

    Attributes:
        op: the op.
        me: rank of this party.
    """

    op: Operation
    me: int

    @property
    def side(self) -> int:
        """The position of this party's table."""
        return owners(self.op).index(self.me)

    @property
    def peer(self) -> int:
        """Rank of the other party."""
        return owners(self.op)[1 - self.side]

    @property
    def learners(self) -> Mask:
        """Who gets to know what is in common."""
        mask: Mask = self.op.attrs["learn"]
        return mask

    @property
    def receives(self) -> bool:
        """Whether this party gets to know first what is in common."""
        first = self.learners.first if len(self.learners) == 1 else max(self.me, self.peer)
        return first == self.me

    def columns(self) -> list[str]:
        """Return the columns of this party's table that are matched on."""
        return [pair[self.side] for pair in self.op.attrs["on"]]

    def check_size(self, common: Array) -> None:
        """Refuse to tell of fewer keys in common than are asked for.

        Raises:
            RunError: there are fewer.
        """
        least = self.op.attrs["at_least"]
        if len(common) < least:
            raise RunError(
                f"fewer than {least} keys are in common (at_least=), so nothing is disclosed",
                code="R016",
            )


def match(ctx: KernelContext, *operands: Any, **attrs: Any) -> Any:
    """Match the rows of this party's table with those of the other party.

    Args:
        ctx: of the op.
        *operands: the tables; that of the other party is ``None``.
        **attrs: the attributes of the op.

    Returns:
        Per output the rows that matched, ``None`` if this party does not hold it.

    Raises:
        RunError: there are more keys than declared, fewer are in common than asked for, or the
            other party has failed.
    """
    matching = Matching(ctx.op, ctx.interpreter.rank)
    table = arrow.plain(loaded(operands[matching.side]))
    tokens = _tokens_of(ctx, matching, table)
    common = _common(ctx, matching, tokens)
    ctx.interpreter.communicator.forget(ctx.key)
    if common is None:
        log.info("party %d learns which of %d keys it has, too", matching.peer, tokens.keys)
        outs = [None for _ in ctx.op.outputs]
    else:
        log.info(
            "%d of %d keys are those of party %d, too", len(common), tokens.keys, matching.peer
        )
        rows = _rows(table, tokens, tokens.positions(common), attrs["number"])
        outs = [_of(matching, rows, value.type) for value in ctx.op.outputs]
    return outs[0] if len(outs) == 1 else tuple(outs)


def _tokens_of(ctx: KernelContext, matching: Matching, table: pa.Table) -> Tokens:
    """Return the tokens of this party's keys, under a key that both engines agree on."""
    both = [dict(kind.columns) for kind in tables(ctx.op)]
    kinds = [common_kind(both[0][a], both[1][b]) for a, b in ctx.op.attrs["on"]]
    if ctx.op.attrs["keep"]:
        check_spellings(table, matching.columns(), kinds)
    secret = agree_secret(ctx.interpreter.communicator, matching.peer, ctx.key)
    keys = keys_of(table, matching.columns(), kinds)
    return make_tokens(keys, secret, ctx.op.attrs["most"][matching.side])


def _common(ctx: KernelContext, matching: Matching, tokens: Tokens) -> Array | None:
    """Return what is in common, in ascending order; ``None`` where this party does not learn it."""
    parts = _run_matcher(ctx, matching, tokens.text())
    comm, key = ctx.interpreter.communicator, f"{ctx.key}|common"
    if not matching.receives:
        learns = matching.me in matching.learners
        return _received(comm.recv(matching.peer, key), matching) if learns else None
    if len(parts) != 1:
        raise RunError("the matcher tells nothing", code="R017")
    common = read_text(memoryview(parts[0]))
    tokens.positions(common)  # which they are, and each once, before the other one is told
    matching.check_size(common)
    if matching.peer in matching.learners:
        comm.send(matching.peer, key, common.view(np.uint8))
    return common


def _run_matcher(ctx: KernelContext, matching: Matching, text: memoryview) -> Sequence[Buffer]:
    request = MatchRequest(
        protocol=ctx.op.attrs["protocol"], key=ctx.key, peer=matching.peer, learns=matching.receives
    )
    calls = native_calls(ctx)
    if calls is None:
        return apart.match(ctx.interpreter.communicator, request, text)
    _, parts = calls.call(ctx.run, "match", request.model_dump(), [text])
    return parts


def _received(data: object, matching: Matching) -> Array:
    """Return what the other party says is in common."""
    is_bytes = isinstance(data, np.ndarray) and data.dtype == np.uint8 and data.ndim == 1
    if not isinstance(data, np.ndarray) or not is_bytes or data.size % SIZE:
        raise RunError(f"party {matching.peer} sent no tokens", code="R017")
    common = np.ascontiguousarray(data).view(f"S{SIZE}")
    matching.check_size(common)
    return common


def _rows(table: pa.Table, tokens: Tokens, common: Array, number: str) -> pa.Table:
    """Return the rows whose keys are in common, in the order of these, with their numbers."""
    numbers = np.full(len(tokens.values), -1, np.int64)
    numbers[common] = np.arange(len(common))
    of_rows = np.where(tokens.of_rows < 0, -1, numbers[tokens.of_rows])
    there = np.flatnonzero(of_rows >= 0)
    order = there[np.argsort(of_rows[there], kind="stable")]
    return table.take(pa.array(order)).append_column(number, pa.array(of_rows[order]))


def _of(matching: Matching, rows: pa.Table, kind: Any) -> pa.Table | None:
    """Return the columns of an output; ``None`` if it is the other party's."""
    if matching.me not in kind.pmask:
        return None
    return rows.select([name for name, _ in kind.base.columns])
