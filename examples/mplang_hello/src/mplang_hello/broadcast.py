"""``hello.broadcast``: an op among parties, which sends a value from one party to all others.

The whole op is in this file: its declaration, what it sends, the kernel and the user's function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mplang_core import Mask, MPObject, MPType
from mplang_core.ext import (
    Attr,
    Communicates,
    Effects,
    Forwards,
    KernelContext,
    Level,
    Message,
    OpDef,
    Operation,
    check_sendable,
    context_of,
    operand_types,
    received,
)


def broadcast(x: MPObject, root: int) -> MPObject:
    """Send one party's value to all parties.

    Args:
        x: a value that ``root`` holds; any others that hold it receive the root's.
        root: rank of the sender.

    Returns:
        The value, held by all parties, the same at each.

    Raises:
        TraceError: the root does not hold it, or it is a key.

    Example:
        >>> import mplang_core as mp
        >>> from mplang_hello import broadcast
        >>> def program():
        ...     return broadcast(mp.put("P1", 7), root=1)
        >>> with mp.Simulator(mp.ClusterSpec.simple(3)) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, program))
        [array(7), array(7), array(7)]
    """
    ctx = context_of(x)
    (sent,) = ctx.emit("hello.broadcast", [x], {"root": root})
    return ctx.place(sent, None, uniform=True)


def _infer(op: Operation, world: Mask) -> Sequence[MPType]:
    """Return the type of the result: held by the whole world."""
    (x,), root = operand_types(op), op.attrs["root"]
    if x.pmask is None:
        raise ValueError(f"who holds {x} is known only when it runs")
    if root not in x.pmask:
        raise ValueError(f"the root {root} does not hold {x}")
    check_sendable(x)
    return [MPType(x.base, world)]


class _Broadcast(Communicates, Forwards):
    def messages(self, op: Operation, world: Mask) -> Sequence[Message]:
        """Return one message from the root to each other party."""
        root = op.attrs["root"]
        others = world - Mask.of(root)
        return [Message(root, rank, operand=0) for rank in others]

    def sources(self, op: Operation, output: int) -> Sequence[int]:
        """The result is a copy of the operand."""
        return (0,)


BROADCAST = OpDef(
    "hello.broadcast",
    _infer,
    Level.PARTY,
    {"root": Attr(int, doc="rank of the sender")},
    doc="Sends a value from one party to all others.",
    effects=Effects.NONE,
    interfaces=[_Broadcast()],
    total=True,
)


def send_or_receive(ctx: KernelContext, x: Any, *, root: int) -> Any:
    """The root sends, the others receive."""
    me, comm = ctx.interpreter.rank, ctx.interpreter.communicator
    if me != root:
        kind = operand_types(ctx.op)[0].base
        return received(comm.recv(root, ctx.key), root, kind)
    for rank in range(ctx.interpreter.world_size):
        if rank != root:
            comm.send(rank, ctx.key, x)
    return x
