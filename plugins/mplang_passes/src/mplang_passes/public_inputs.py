"""Op ``passes.public``: a worker marks the inputs that all parties were given, the same."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Collection, Sequence

from mplang_core import Mask, Program
from mplang_core.ext import (
    AnyType,
    Branch,
    Communicates,
    Effects,
    Forwards,
    Graph,
    Level,
    Loop,
    Message,
    OpDef,
    Operation,
    Value,
    control_of,
    op_defs,
)


class _Public(Communicates, Forwards):
    def messages(self, op: Operation, world: Mask) -> Sequence[Message]:
        return ()

    def sources(self, op: Operation, output: int) -> Sequence[int]:
        return (0,)


def _infer(op: Operation, world: Mask) -> Sequence[AnyType]:
    return [value.type for value in op.inputs]


PUBLIC = OpDef(
    "passes.public",
    _infer,
    Level.PARTY,
    doc="Says that all holders of an input were given the same. Workers write it, and "
    "clear_agreements removes it; it has no kernel.",
    effects=Effects.NONE,
    interfaces=[_Public()],
    reads=(),
    total=True,
)
op_defs.add(PUBLIC.name, PUBLIC, provider="mplang-passes")

_marked: weakref.WeakKeyDictionary[Program, dict[frozenset[int], Program]]
_marked = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def with_public_inputs(program: Program, public: Collection[int]) -> Program:
    """Return a program with marks of the inputs that are public in a run.

    The name of a run is a hash of what was given to all, so that parties that were given other
    values do not understand each other's messages.

    Args:
        program: the program.
        public: the positions of the inputs.

    Returns:
        A program for the passes; the same one if parties compare nothing in it.

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
        >>> with_public_inputs(program, {0}).graph.ops[0].opcode
        'passes.public'
    """
    which = frozenset(public)
    if not which:
        return program
    with _lock:
        known = _marked.setdefault(program, {})
        found = known.get(which)
    if found is None:
        found = _mark(program, which) if _compares(program) else program
        if found is program:
            return program  # else the entry would keep its own key
        with _lock:
            known[which] = found
    return found


def _compares(program: Program) -> bool:
    controls = map(control_of, program.graph.walk())
    return any(isinstance(each, Loop | Branch) and each.compared for each in controls)


def _mark(program: Program, public: frozenset[int]) -> Program:
    graph = program.graph
    inputs = [Value(v.type) if i in public else v for i, v in enumerate(graph.inputs)]
    marks = [
        Operation(PUBLIC.name, (inputs[i],), (value,))
        for i, value in enumerate(graph.inputs)
        if i in public
    ]
    return Program(program.name, program.mask, Graph(inputs, [*marks, *graph.ops], graph.outputs))
