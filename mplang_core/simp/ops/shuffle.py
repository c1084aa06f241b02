"""Ops ``simp.shuffle_static`` and ``simp.shuffle_dynamic``: moves of values between parties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mplang_core.edsl import MPObject
from mplang_core.edsl.literals import read_mask
from mplang_core.errors import RunError, TraceError
from mplang_core.ir import AnyType, Attr, Operation
from mplang_core.ir.source_line import at
from mplang_core.mask import Mask
from mplang_core.runtime import KernelContext, kernel
from mplang_core.simp.interfaces import Communicates, Forwards, Labels, Message, holders_of
from mplang_core.simp.ops.common import (
    check_parties,
    check_sendable,
    context_of,
    declare,
    operand_types,
    present,
    received,
)
from mplang_core.simp.ops.pcall import Parties
from mplang_core.types import DType, MPType, TensorType

# -- the user's functions


def pshfl(src: MPObject, index: MPObject) -> MPObject:
    """Move a value: each holder of an index receives the value of the party with that rank.

    ::

               P0   P1   P2
        src:   x0   -    x2
        index: -    0    -
        out:   -    x0   -

    Only the party with that rank learns the index.

    Args:
        src: the value.
        index: an integer scalar, a rank; holders may have different ones.

    Returns:
        A value of the base type of ``src``, held by the holders of ``index``.

    Raises:
        TraceError: the index is not an integer scalar.
        RunError: an index is not a rank, or names a party that does not hold the value (when
            the program runs).
    """
    return context_of(src, index).emit("simp.shuffle_dynamic", [src, index])[0]


def pshfl_s(src: MPObject, pmask: Parties, src_ranks: Sequence[int]) -> MPObject:
    """Move a value along a static routing.

    ::

              P0   P1   P2
        src:  x0   x1   x2      pmask = {0, 1, 2}, src_ranks = [2, 0, 1]
        out:  x2   x0   x1

    Args:
        src: the value.
        pmask: the receivers, a mask or ranks.
        src_ranks: the rank of the sender of each receiver, in the order of the receivers' ranks.

    Returns:
        A value of the base type of ``src``, held by ``pmask``.

    Raises:
        TraceError: a sender does not hold the value, or the numbers of senders and receivers
            differ.

    Example:
        >>> import mplang_core as mp
        >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, lambda: mp.pshfl_s(mp.constant(7), 1, [0])))
        [None, array(7)]
    """
    mask = read_mask(pmask)
    if isinstance(src_ranks, int):
        src_ranks = [src_ranks]
    if len(mask) != len(src_ranks):
        raise TraceError(
            f"{at()}pshfl_s names one source per receiver: {len(mask)} receivers {mask}, "
            f"{len(src_ranks)} sources {list(src_ranks)}"
        )
    ctx, routing = context_of(src), tuple(zip(mask, src_ranks, strict=True))
    (moved,) = ctx.emit("simp.shuffle_static", [src], {"routing": routing})
    return ctx.place(moved, None, uniform=len(set(src_ranks)) == 1)


# -- declarations


class _Static(Communicates, Forwards, Labels):
    def messages(self, op: Operation, world: Mask) -> Sequence[Message]:
        return [Message(frm, to, 0) for to, frm in op.attrs["routing"] if to != frm]

    def sources(self, op: Operation, output: int) -> Sequence[int]:
        return (0,)

    def label(self, op: Operation) -> str:
        return "move"


@declare(
    "simp.shuffle_static",
    _Static(),
    {"routing": Attr(tuple, doc="[to, from] ranks, one per receiver")},
    total=True,
)
def _infer_static(op: Operation, world: Mask) -> Sequence[AnyType]:
    """Moves a value along a routing that is known beforehand."""
    (src,) = operand_types(op)
    routing = op.attrs["routing"]
    if not all(
        isinstance(route, tuple) and len(route) == 2 and all(type(r) is int for r in route)
        for route in routing
    ):
        raise TypeError("a routing is a list of [to, from] ranks")
    for rank in (rank for route in routing for rank in route):
        if rank < 0:
            raise ValueError(f"a rank is not negative, got {rank}")
        if rank >= world.bits.bit_length():
            raise ValueError(f"the parties {{{rank}}} are not among {world}")
    targets = [to for to, _ in routing]
    if len(set(targets)) != len(targets):
        raise ValueError(f"a party receives once, got the targets {targets}")
    out = Mask.from_ranks(targets)
    check_parties(out, world)
    sources = Mask.from_ranks(frm for _, frm in routing)
    if not sources <= (world if src.pmask is None else src.pmask):
        raise ValueError(f"the sources are {sources}, but the value is {src}")
    check_sendable(src)
    return [MPType(src.base, out)]


class _Dynamic(Communicates, Forwards, Labels):
    def messages(self, op: Operation, world: Mask) -> Sequence[Message]:
        """Anyone may be asked; who is asked, and who is not, learns of the index.

        Where it is not known who has an index, everyone may ask, and is answered.
        """
        src, index = (holders_of(value.type, world) for value in op.inputs)
        found = []
        for to in index:
            others = world - Mask.of(to)
            found += [Message(to, each, 1, TensorType(DType.BOOL), "index") for each in others]
            found += [
                Message(each, to, 0, when="if asked for", stage=1) for each in src - Mask.of(to)
            ]
        return found

    def sources(self, op: Operation, output: int) -> Sequence[int]:
        return (0,)

    def label(self, op: Operation) -> str:
        return "move to whoever asks"


@declare("simp.shuffle_dynamic", _Dynamic())
def _infer_dynamic(op: Operation, world: Mask) -> Sequence[AnyType]:
    """Moves a value: each party that has an index pulls from that rank."""
    src, index = operand_types(op)
    if not (isinstance(index.base, TensorType) and index.base.dtype.is_integer) or index.base.shape:
        raise TypeError(f"the index is an integer scalar, got {index}")
    check_sendable(src)
    return [MPType(src.base, index.pmask)]


# -- kernels


@kernel("simp.shuffle_static")
def move(ctx: KernelContext, src: Any, *, routing: tuple[tuple[int, int], ...]) -> Any:
    """Send to those who pull from this party, then receive."""
    me = ctx.interpreter.rank
    for to, frm in routing:
        if frm == me and to != me:
            ctx.interpreter.communicator.send(to, ctx.key, src)
    return _pulled(ctx, src, dict(routing).get(me))


@kernel("simp.shuffle_dynamic")
def ask_and_move(ctx: KernelContext, src: Any, index: Any) -> Any:
    """Send requests, answer requests of possible holders of an index, then receive.

    Each possible holder of the index sends every other party a request, yes or no, so that no
    party waits forever. Requests of other parties are ignored.
    """
    me, comm = ctx.interpreter.rank, ctx.interpreter.communicator
    everyone = Mask.all(ctx.interpreter.world_size)
    others = everyone - Mask.of(me)
    asking = holders_of(ctx.op.inputs[1].type, everyone)
    wanted = None if index is None else int(index)
    if wanted is not None and not 0 <= wanted < ctx.interpreter.world_size:
        raise RunError(
            f"the index of a shuffle is a rank below {ctx.interpreter.world_size}, "
            f"the one of party {me} is not",
            code="R005",
        )
    if me in asking:
        for rank in others:
            comm.send(rank, ctx.key + "?", rank == wanted)
    for rank in others & asking:
        if comm.recv(rank, ctx.key + "?") is True:
            comm.send(rank, ctx.key, src)
    return _pulled(ctx, src, wanted)


def _pulled(ctx: KernelContext, src: Any, source: int | None) -> Any:
    """Return the value that a party has, which may be this one; ``None`` if none is named."""
    if source is None:
        return None
    if source == ctx.interpreter.rank:
        return present(src, source)
    (kind,) = (value.type for value in ctx.op.outputs)
    assert isinstance(kind, MPType)
    return received(ctx.interpreter.communicator.recv(source, ctx.key), source, kind.base)
