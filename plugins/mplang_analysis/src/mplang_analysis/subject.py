"""Subject of an analysis: a verified program, and the source lines of its ops."""

from __future__ import annotations

from typing import Any

from mplang_core import Program, verify
from mplang_core.ext import Location, Operation, TraceError


def program_of(subject: Any) -> Program:
    """Return the program of what was given, verified: of others nothing could be said.

    Args:
        subject: a program, or what has one: a traced function, or a compiled function that was
            traced for one kind of arguments.

    Raises:
        TraceError: it has no program, or several.
        VerifyError: the program breaks a rule.
    """
    found = subject if isinstance(subject, Program) else getattr(subject, "program", None)
    if not isinstance(found, Program):
        raise TraceError(
            f"expected a program, or a function that was traced or compiled, got a "
            f"{type(subject).__name__}; mp.compile(fn, *args, cluster_spec=cluster) makes one"
        )
    verify(found)
    return found


def line_of(op: Operation, around: Location | None = None) -> Location | None:
    """Return an op's line; if it has none, that of the op around it."""
    return op.location or around
