"""Pass pipeline: passes one after the other, with the verifier between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mplang_core.errors import VerifyError
from mplang_core.ir.graph import Program
from mplang_core.ir.verifier import verify as verify_program
from mplang_core.simp.passes.dce import eliminate_dead_code
from mplang_core.simp.passes.fuse import fuse_pcalls

__all__ = ["DEFAULT", "Pass", "run_passes"]


class Pass(Protocol):
    """A pure function of a program: its name says which, its docstring what it does."""

    __name__: str
    __doc__: str | None

    def __call__(self, program: Program, /) -> Program:
        """Return the new program, or the same; the given one stays as it is."""


DEFAULT: Sequence[Pass] = (eliminate_dead_code, fuse_pcalls)
"""The passes that are applied unless told otherwise."""


def run_passes(
    program: Program, passes: Sequence[Pass] = DEFAULT, *, verify: bool = True
) -> Program:
    """Apply passes, each to what the one before gave.

    Args:
        program: a valid program; it is not changed.
        passes: in this order.
        verify: whether to verify what each pass gives.

    Raises:
        VerifyError: a pass broke the program; names the pass.

    Example:
        >>> import mplang_core as mp
        >>> def program():
        ...     mp.constant(1)  # nobody uses it
        ...     return mp.constant(2)
        >>> whole = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), program).program
        >>> print(run_passes(whole))
        program "program" on {0, 1} () {
          %0 = simp.constant() {parties = {0, 1}, value = dense<i64[]>[2]} : i64[]@{0, 1} at ...
          return %0
        }
        <BLANKLINE>
    """
    for each in passes:
        program = each(program)
        if verify:
            _verify_after(each, program)
    return program


def _verify_after(each: Pass, program: Program) -> None:
    try:
        verify_program(program)
    except VerifyError as error:
        raise VerifyError(f"the pass {each.__name__} broke the program: {error}") from error
