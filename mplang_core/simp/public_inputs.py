"""Programs of which it is known what a run gives to all parties."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Collection
from dataclasses import dataclass

from mplang_core.ir import Program
from mplang_core.simp.interfaces import Branch, Loop, control_of


@dataclass(slots=True, eq=False, repr=False)
class ProgramOfRun(Program):
    """Program as a party runs it.

    The name of a run is a hash of what was given to all, so parties that were given other values
    do not understand each other's messages.

    Attributes:
        public: the positions of the inputs that all parties were given, the same.
    """

    public: frozenset[int] = frozenset()

    @property
    def digest(self) -> str:
        """The digest of the program, and its public inputs: a party's plan depends on both."""
        return f"{Program.digest.__get__(self)} {sorted(self.public)}"


_known: weakref.WeakKeyDictionary[Program, dict[frozenset[int], ProgramOfRun | None]]
_known = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def with_public_inputs(program: Program, public: Collection[int]) -> Program:
    """Return a program whose public inputs passes know; the same one if parties compare nothing.

    Args:
        program: the program.
        public: the positions of the inputs that all parties were given, the same.

    Example:
        >>> from mplang_core import parse
        >>> program = parse('''program "p" on {0, 1} (%0: bool[]@{0, 1}) {
        ...   %3 = simp.uniform_cond(%0, %0) {verify_uniform = true} then (%1: bool[]@{0, 1}) {
        ...     return %1
        ...   } else (%2: bool[]@{0, 1}) {
        ...     return %2
        ...   } : bool[]@{0, 1}
        ...   return %3
        ... }''')
        >>> with_public_inputs(program, [0]).public
        frozenset({0})
    """
    which = frozenset(public)
    with _lock:
        known = _known.setdefault(program, {})
        if which not in known:
            known[which] = _made(program, which)
        return known[which] or program


def compares(program: Program) -> bool:
    """Return whether parties compare a predicate in a program."""
    controls = (control_of(op) for op in program.graph.walk() if op.regions)
    return any(isinstance(each, Loop | Branch) and each.compared for each in controls)


def _made(program: Program, public: frozenset[int]) -> ProgramOfRun | None:
    if public and compares(program):
        return ProgramOfRun(program.name, program.mask, program.graph, public=public)
    return None
