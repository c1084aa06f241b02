"""Turns of the loops around the op that an interpreter runs now."""

from __future__ import annotations

import re

from mplang_core.ext import KernelContext, Loop, Operation, SimpHost, WorkerInterpreter, control_of

_TURN = re.compile(r"\D(\d+):\d+$")
"""The end of the key of an op in a region: name of the region, turn, position of the op."""


def turn_of(interpreter: SimpHost | WorkerInterpreter) -> str:
    """Return how far the loops around the current op are, in words; empty outside of loops.

    A loop of Python is unrolled in a program, where its line stands once for each turn. How often
    a ``while_loop`` turns is known at its end only.

    Args:
        interpreter: a host that runs ops one by one, or a worker; of its runs the earliest counts.

    Example:
        >>> import mplang_core as mp
        >>> turn_of(mp.Simulator(mp.ClusterSpec.simple(2)))
        ''
    """
    words = []
    around: Operation | None = None
    ctx: KernelContext | None = next(iter(list(interpreter.running.values())), None)
    while ctx is not None and getattr(ctx, "step", None) is not None:
        control = control_of(around) if around is not None else None
        turn = _TURN.search(ctx.key)
        if isinstance(control, Loop) and turn:
            words.append(f"turn {int(turn[1]) + 1}")
        op = ctx.step.op
        alike = [i for i, each in enumerate(ctx.graph.ops) if _is_alike(each, op)]
        if len(alike) > 1:
            words.append(f"{sum(i <= ctx.index for i in alike)} of {len(alike)}")
        around, ctx = op, getattr(ctx, "inner", None)
    return ", ".join(words)


def _is_alike(one: Operation, other: Operation) -> bool:
    is_known = one.location is not None and one.location == other.location
    return is_known and one.opcode == other.opcode
