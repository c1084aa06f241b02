"""What the ops of ``simp`` do: at a party, and at the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mplang_core.errors import RunError
from mplang_core.ir import AnyType
from mplang_core.mask import Mask
from mplang_core.runtime import KernelContext, kernel
from mplang_core.types import BaseType, MPType

__all__ = ["present", "received"]

SIMP_OPS = (
    "simp.constant",
    "simp.pcall_static",
    "simp.pcall_dynamic",
    "simp.shuffle_static",
    "simp.shuffle_dynamic",
    "simp.converge",
    "simp.uniform_cond",
    "simp.while_loop",
)


@kernel(*SIMP_OPS, role="host")
def submit(ctx: KernelContext, *args: Any, **attrs: Any) -> Any:
    """Have all parties run the op, and hold its results."""
    step = ctx.step
    if step.cache is None:
        step.cache = step.program(ctx.interpreter.mask)
    given = [args[i] for i in step.distinct_ins]
    return _one(ctx, ctx.interpreter.submit(step.cache, given))


def _one(ctx: KernelContext, outs: Sequence[Any]) -> Any:
    return outs[0] if len(ctx.step.outs) == 1 else outs


def _nothing(ctx: KernelContext) -> Any:
    return _one(ctx, [None] * len(ctx.step.outs))


@kernel("simp.constant")
def constant(ctx: KernelContext, *, value: np.ndarray[Any, Any], parties: Mask) -> Any:
    """Give the literal to those who hold it."""
    return value if ctx.interpreter.rank in parties else None


@kernel("simp.pcall_static")
def pcall_static(ctx: KernelContext, *args: Any, parties: Mask) -> Any:
    """Run the body where this party is named; every operand must be here then."""
    if ctx.interpreter.rank not in parties:
        return _nothing(ctx)
    for i, arg in enumerate(args):
        if arg is None:
            raise RunError(
                f"party {ctx.interpreter.rank} is to run a pcall, but does not hold operand {i}"
            )
    return _one(ctx, ctx.run_region("do", args))


@kernel("simp.pcall_dynamic")
def pcall_dynamic(ctx: KernelContext, *args: Any) -> Any:
    """Run the body where every operand is here."""
    if any(arg is None for arg in args):
        return _nothing(ctx)
    return _one(ctx, ctx.run_region("do", args))


@kernel("simp.shuffle_static")
def shuffle_static(ctx: KernelContext, src: Any, *, routing: tuple[tuple[int, int], ...]) -> Any:
    """Send to those who pull from this party, then receive."""
    me, comm = ctx.interpreter.rank, ctx.interpreter.communicator
    source = None
    for to, frm in routing:
        if to == me:
            source = frm
        elif frm == me:
            comm.send(to, ctx.key, src)
    if source is None:
        return None
    if source == me:
        return present(src, me)
    return _received(ctx, comm.recv(source, ctx.key), source)


@kernel("simp.shuffle_dynamic")
def shuffle_dynamic(ctx: KernelContext, src: Any, index: Any, *, askers: Mask | None = None) -> Any:
    """Ask the one that the index names, answer those who may ask here, then receive.

    Each party that may hold the index asks every other with a yes or no, so that nobody waits
    in vain. The others are not heard.
    """
    me, comm = ctx.interpreter.rank, ctx.interpreter.communicator
    everyone = Mask.all(ctx.interpreter.world_size)
    others = everyone - Mask.of(me)
    holders = askers if askers is not None else _pmask(ctx.op.inputs[1].type)
    asking = everyone if holders is None else holders
    wanted = None if index is None else int(index)
    if wanted is not None and not 0 <= wanted < ctx.interpreter.world_size:
        raise RunError(
            f"the index of a shuffle is a rank below {ctx.interpreter.world_size}, "
            f"the one of party {me} is not"
        )
    if me in asking:
        for rank in others:
            comm.send(rank, ctx.key + "?", rank == wanted)
    for rank in others & asking:
        if comm.recv(rank, ctx.key + "?") is True:
            comm.send(rank, ctx.key, src)
    if wanted is None:
        return None
    if wanted == me:
        return present(src, me)
    return _received(ctx, comm.recv(wanted, ctx.key), wanted)


def _pmask(kind: AnyType) -> Mask | None:
    return kind.pmask if isinstance(kind, MPType) else None


def _received(ctx: KernelContext, value: Any, source: int) -> Any:
    kind = ctx.op.outputs[0].type
    assert isinstance(kind, MPType)
    return received(value, source, kind.base)


def received(value: Any, source: int, kind: BaseType) -> Any:
    """Return what came from a party, which is not believed: it is held against its type."""
    wrong = kind.mismatch(present(value, source))
    if wrong:
        raise RunError(f"party {source} sent something else: {wrong}")
    return value


def present(value: Any, source: int) -> Any:
    """Return a value that a party is to have."""
    if value is None:
        raise RunError(f"party {source} is to send a value that it does not hold")
    return value


@kernel("simp.converge")
def converge(ctx: KernelContext, *args: Any) -> Any:
    """Give the one value that is here."""
    here = [arg for arg in args if arg is not None]
    if len(here) > 1:
        raise RunError(
            f"party {ctx.interpreter.rank} holds {len(here)} of the values to converge; "
            "their masks overlap"
        )
    return here[0] if here else None


@kernel("simp.uniform_cond")
def uniform_cond(ctx: KernelContext, pred: Any, *args: Any, verify_uniform: bool) -> Any:
    """Run the branch that all parties agree on."""
    branch = "then" if _agreed(ctx, pred, 0, verify_uniform) else "else"
    return _one(ctx, ctx.run_region(branch, args))


@kernel("simp.while_loop")
def while_loop(ctx: KernelContext, *args: Any, verify_uniform: bool) -> Any:
    """Run the body as long as all parties agree to."""
    size = len(ctx.step.outs)
    state, captures = list(args[:size]), list(args[size:])
    turn = 0
    while True:
        (pred,) = ctx.run_region("cond", state + captures, turn)
        if not _agreed(ctx, pred, turn, verify_uniform):
            return _one(ctx, state)
        state = ctx.run_region("body", state + captures, turn)
        turn += 1


def _agreed(ctx: KernelContext, pred: Any, turn: int, verify: bool) -> bool:
    """Return the predicate once all parties have said the same; never print it."""
    me, comm = ctx.interpreter.rank, ctx.interpreter.communicator
    mine = None if pred is None else bool(pred)
    if verify:
        key = f"{ctx.key}={turn}"
        others = [rank for rank in range(ctx.interpreter.world_size) if rank != me]
        for rank in others:
            comm.send(rank, key, mine)
        # everyone hears everyone before anyone raises, so all fail for the same reason
        said = [comm.recv(rank, key) for rank in others]
        differing = [rank for rank, other in zip(others, said, strict=True) if other != mine]
        if mine is not None and differing:
            raise RunError(
                f"the parties disagree on a predicate: party {me} and {Mask.from_ranks(differing)} "
                "do not have the same; make it uniform, for example by mp.reveal"
            )
    if mine is None:
        raise RunError(f"party {me} does not hold the predicate that all parties need")
    return mine
