"""Pass pipeline: passes in order, with the verifier after each."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mplang_core.errors import VerifyError
from mplang_core.ir import Program
from mplang_core.ir.verifier import verify as verify_program
from mplang_core.namespace import Namespace


class Pass(Protocol):
    """Protocol of a pass: a named, documented pure function from programs to programs."""

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


def run_passes(
    program: Program, given: Sequence[Pass] | None = None, *, verify: bool = True
) -> Program:
    """Apply passes in order.

    Args:
        program: a valid program; it is not changed.
        given: the passes; by default the installed ones in the order of their names.
        verify: whether to verify the result of each pass.

    Returns:
        The result of the last pass.

    Raises:
        VerifyError: the result of a pass is invalid; the message names the pass.
    """
    if given is None:
        given = [each for each in map(passes.get, passes.known()) if each is not None]
    for each in given:
        program = each(program)
        if verify:
            _verify_after(each, program)
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
            verify_program(program)
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


def _passed(program: Program) -> Program:
    """Apply the installed passes; only if the result is invalid, find the pass that broke it."""
    made = run_passes(program, verify=False)
    try:
        if made is not program:
            verify_program(made)
    except VerifyError:
        return run_passes(program)
    return made


def _verify_after(each: Pass, program: Program) -> None:
    try:
        verify_program(program)
    except VerifyError as error:
        raise VerifyError(f"the pass {each.__name__} broke the program: {error}") from error
