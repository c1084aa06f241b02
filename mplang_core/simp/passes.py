"""Pass pipeline: passes in order, with the verifier after each."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mplang_core.errors import VerifyError
from mplang_core.ir import Program, verify
from mplang_core.namespace import Namespace


class Pass(Protocol):
    """Protocol of a pass: a named, documented pure function from programs to programs.

    Where it has an attribute ``for_steps``, that is the pass that hosts apply before they interpret
    a program op by op.
    """

    __name__: str
    __doc__: str | None

    def __call__(self, program: Program, /) -> Program:
        """Return an equivalent program.

        Args:
            program: a valid program; never changed in place.

        Returns:
            A new program, or the same.
        """


passes: Namespace[Pass] = Namespace("pass")
"""The installed passes by name."""


def _installed() -> list[Pass]:
    """Return the installed passes in the order of their names."""
    return [each for each in map(passes.get, passes.known()) if each is not None]


def run_passes(program: Program, given: Sequence[Pass] | None = None) -> Program:
    """Apply passes in order, and verify the result of each.

    Args:
        program: a valid program; it is not changed.
        given: the passes; by default the installed ones.

    Returns:
        The result of the last pass.

    Raises:
        VerifyError: the program is invalid, or the result of a pass, which the message names.
    """
    for each in _installed() if given is None else given:
        before, program = program, each(program)
        try:
            verify(program)
        except VerifyError as error:
            verify(before)  # raises where the pass was given an invalid program
            raise VerifyError(f"the pass {each.__name__} broke the program: {error}") from error
    return program


def prepared(program: Program) -> Program:
    """Return what parties run of a program: verified, after the installed passes; cached.

    Each party does so by itself, so that all of them have the same program before it.

    Args:
        program: an untrusted program; it must not change afterwards.

    Raises:
        VerifyError: the program, or the result of a pass, is invalid.
    """
    with _preparing:
        work = _prepared.setdefault(program, _Prepared())
    with work.lock:  # others may prepare other programs
        if not work.done:
            verify(program)
            made = _passed(program)
            work.result = None if made is program else made  # else it would keep itself
            work.done = True
        return work.result or program


@dataclass(slots=True)
class _Prepared:
    lock: threading.Lock = field(default_factory=threading.Lock)
    done: bool = False
    result: Program | None = None


_prepared: weakref.WeakKeyDictionary[Program, _Prepared] = weakref.WeakKeyDictionary()
_preparing = threading.Lock()


def stepped(program: Program) -> Program:
    """Return what a host interprets op by op: a verified program after the passes for that.

    Raises:
        VerifyError: the result of a pass is invalid.
    """
    return run_passes(program, [p.for_steps for p in _installed() if hasattr(p, "for_steps")])


def _passed(program: Program) -> Program:
    """Apply the installed passes; only if the result is invalid, find the pass that broke it."""
    made = program
    for each in _installed():
        made = each(made)
    try:
        if made is not program:
            verify(made)
    except VerifyError:
        return run_passes(program)
    return made
