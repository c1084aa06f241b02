"""Pass pipeline: passes one after the other, with the verifier between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mplang_core.errors import VerifyError
from mplang_core.ir import Program
from mplang_core.ir.verifier import verify as verify_program
from mplang_core.namespace import Namespace


class Pass(Protocol):
    """A pure function of a program: its name says which, its docstring what it does."""

    __name__: str
    __doc__: str | None

    def __call__(self, program: Program, /) -> Program:
        """Return the new program, or the same; the given one stays as it is."""


passes: Namespace[Pass] = Namespace("pass")
"""The passes that are installed, by name."""


def run_passes(
    program: Program, given: Sequence[Pass] | None = None, *, verify: bool = True
) -> Program:
    """Apply passes, each to what the one before gave.

    Args:
        program: a valid program; it is not changed.
        given: in this order; those that are installed, in the order of their names, by default.
        verify: whether to verify what each pass gives.

    Raises:
        VerifyError: a pass broke the program; names the pass.
    """
    if given is None:
        given = [each for each in map(passes.get, passes.known()) if each is not None]
    for each in given:
        program = each(program)
        if verify:
            _verify_after(each, program)
    return program


def _verify_after(each: Pass, program: Program) -> None:
    try:
        verify_program(program)
    except VerifyError as error:
        raise VerifyError(f"the pass {each.__name__} broke the program: {error}") from error
