"""What a host does now: the turn of a loop, or what it does before anything runs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from types import FrameType

from mplang_core.ext import Location, SimpHost, is_skipped

_TURN = re.compile(r"body(\d+):\d+$")
"""The end of the key of an op in a loop: the name of the region, its turn, the op's position."""

WORK = {
    ("mplang_core.edsl.tracer", "trace"): "compiling",
    ("mplang_core.driver", "compile"): "compiling",
    ("mplang_core.driver", "fetch"): "fetching",
    ("mplang_core.driver", "evaluate"): "starting",
    ("mplang_core.device.api", "put"): "putting",
    ("mplang_core.device.api", "seal"): "sealing",
}
"""What a thread is at, by the function that is innermost on its stack."""


def turn_of(host: SimpHost) -> str:
    """Return how far the loops around the current op are; empty outside of loops.

    A loop of Python is unrolled in a program, where its line stands once for each turn; how often a
    ``while_loop`` turns is known at its end only.

    Args:
        host: the host that runs a program, op by op.

    Example:
        >>> import mplang_core as mp
        >>> turn_of(mp.Simulator(mp.ClusterSpec.simple(2)))
        ''
    """
    told = []
    ctx = next(iter(list(host.running.values())), None)
    while ctx is not None and getattr(ctx, "step", None) is not None:
        turn = _TURN.search(ctx.key)
        if turn:
            told.append(f"turn {int(turn[1]) + 1}")
        op, graph = ctx.step.op, ctx.graph
        alike = [i for i, each in enumerate(graph.ops) if _same_line(each, op)]
        if len(alike) > 1 and op.location is not None:
            done = sum(i <= ctx.index for i in alike)
            told.append(f"{done} of {len(alike)}")
        ctx = getattr(ctx, "inner", None)
    return ", ".join(told)


def _same_line(one: object, other: object) -> bool:
    same = ("opcode", "location")
    return all(getattr(one, name) == getattr(other, name) for name in same)


def busy_with(thread: int) -> tuple[str, str]:
    """Return what a thread does for mplang, and the user's line; two empty texts for nothing.

    Args:
        thread: its identifier.

    Example:
        >>> import threading
        >>> busy_with(threading.get_ident())
        ('', '')
    """
    line = ""
    for frame in _stack(thread):
        module = frame.f_globals.get("__name__", "")
        if not line and not is_skipped(module):
            line = str(Location(frame.f_code.co_filename, frame.f_lineno))
        work = WORK.get((module, frame.f_code.co_name))
        if work is not None:
            return work, line or _users_line(frame)
    return "", ""


def _users_line(frame: FrameType | None) -> str:
    while frame is not None:
        if not is_skipped(frame.f_globals.get("__name__", "")):
            return str(Location(frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return ""


def _stack(thread: int) -> Iterator[FrameType]:
    """Yield the frames of a thread as they are now, the innermost first."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        yield frame
        frame = frame.f_back
