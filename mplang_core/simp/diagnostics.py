"""Diagnostics: what can be known to go wrong in a program before it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from mplang_core.ir import Location, Program
from mplang_core.namespace import Namespace


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something that is wrong in a program, such as a number that its engine does not hold.

    Attributes:
        text: the problem and the remedy.
        line: the user's line; ``None`` if only that of the op is known.
        op: what computes it, in the user's terms; empty if it is the whole op.
    """

    text: str
    line: Location | None = None
    op: str = ""

    def __str__(self) -> str:
        return f"{self.line}: {self.text}" if self.line else self.text


Diagnose: TypeAlias = Callable[[Program], Iterable[Diagnostic]]

diagnostics: Namespace[Diagnose] = Namespace("diagnostic")
"""The installed diagnostics by name: entry points of the group ``mplang.diagnostics``."""


def diagnose(program: Program) -> list[Diagnostic]:
    """Return what the installed diagnostics say of a program.

    Args:
        program: the program, verified.
    """
    found = map(diagnostics.get, diagnostics.known())
    return [each for check in found if check is not None for each in check(program)]
