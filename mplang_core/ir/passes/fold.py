"""Knows beforehand what needs no engine.

What is folded:

- a result of a function, branch, loop or ``pcall`` that is an operand as it came in;
- a ``pcall`` of a constant that gives it back: the constant, at its parties;
- a static shuffle of a constant that all receivers know: the constant, at the receivers;
- a static shuffle in which each holder keeps what it has;
- ``converge`` of one value, or of equal constants: that value, or the constant;
- ``uniform_cond`` of a constant predicate: the branch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mplang_core.ir.attrs import same
from mplang_core.ir.graph import Graph, Operation, Program, Value
from mplang_core.ir.passes.rewrite import (
    Env,
    inline,
    lookup,
    rewire,
    rewrite_graphs,
    rewrite_regions,
)
from mplang_core.ir.place import place_of
from mplang_core.mask import Mask
from mplang_core.types import MPType

__all__ = ["fold_constants"]


def fold_constants(program: Program) -> Program:
    """Replace what is known beforehand; see :mod:`mplang_core.ir.passes.fold` for what is.

    A constant never goes to a party that does not have it in the program as written.

    Example:
        >>> from mplang_core import parse
        >>> print(fold_constants(parse('''program "p" on {0, 1} () {
        ...   %0 = simp.constant() {parties = {0, 1}, value = dense<i64[]>[7]} : i64[]@{0, 1}
        ...   %1 = simp.shuffle_static(%0) {routing = [[1, 0]]} : i64[]@{1}
        ...   return %1
        ... }''')))
        program "p" on {0, 1} () {
          %0 = simp.constant() {parties = {0, 1}, value = dense<i64[]>[7]} : i64[]@{0, 1}
          %1 = simp.constant() {parties = {1}, value = dense<i64[]>[7]} : i64[]@{1}
          return %1
        }
        <BLANKLINE>
    """
    return rewrite_graphs(program, lambda graph: _Fold().graph(graph))


@dataclass(slots=True)
class _Fold:
    """A graph's folding.

    Attributes:
        ops: what is left.
        env: per folded value the one in its place.
        constants: per value the constant that it is.
    """

    ops: list[Operation] = field(default_factory=list)
    env: Env = field(default_factory=dict)
    constants: dict[Value, Operation] = field(default_factory=dict)

    def graph(self, graph: Graph) -> Graph:
        for op in graph.ops:
            self.fold(rewire(op, self.env))
        return Graph(graph.inputs, self.ops, list(lookup(self.env, graph.outputs)))

    def fold(self, op: Operation) -> None:
        rule = _RULES.get(op.opcode)
        if place_of(op) is None and rule is not None and rule(self, op):
            return
        op = rewrite_regions(op, lambda graph: _Fold().graph(graph))
        self.ops.append(op)
        if op.opcode == "simp.constant":
            self.constants[op.outputs[0]] = op
        if place_of(op) is None:
            self.pass_through(op)

    def pass_through(self, op: Operation) -> None:
        """Use an operand itself where the op gives it back to the same holders."""
        for i, out in enumerate(op.outputs):
            value = _given_back(op, i)
            if value is not None and value.type == out.type:
                self.env[out] = value

    def become(self, op: Operation, value: Value) -> bool:
        self.env[op.outputs[0]] = value
        return True

    def become_constant(self, op: Operation, constant: Operation, parties: Mask) -> bool:
        made = replace(
            constant,
            outputs=op.outputs,
            attrs={**constant.attrs, "parties": parties},
            location=op.location,
        )
        self.ops.append(made)
        self.constants[op.outputs[0]] = made
        return True

    # -- rules: each tells whether it has taken care of the op

    def pcall_static(self, op: Operation) -> bool:
        body = op.regions["do"]
        if body.ops or len(body.outputs) != 1:
            return False
        constant = self.constants.get(op.inputs[body.inputs.index(body.outputs[0])])
        return constant is not None and self.become_constant(op, constant, op.attrs["parties"])

    def shuffle_static(self, op: Operation) -> bool:
        (src,), routing = op.inputs, op.attrs["routing"]
        if src.type == op.outputs[0].type and all(to == frm for to, frm in routing):
            return self.become(op, src)
        constant, to = self.constants.get(src), Mask.from_ranks(to for to, _ in routing)
        if constant is None or not to <= constant.attrs["parties"]:
            return False
        return self.become_constant(op, constant, to)

    def converge(self, op: Operation) -> bool:
        if len(op.inputs) == 1:
            return self.become(op, op.inputs[0])
        known = [self.constants[value] for value in op.inputs if value in self.constants]
        kind = op.outputs[0].type
        if len(known) < len(op.inputs) or not isinstance(kind, MPType) or kind.pmask is None:
            return False
        if not all(same(each.attrs["value"], known[0].attrs["value"]) for each in known):
            return False
        return self.become_constant(op, known[0], kind.pmask)

    def uniform_cond(self, op: Operation) -> bool:
        pred, *args = op.inputs
        constant = self.constants.get(pred)
        if constant is None:
            return False
        branch = op.regions["then" if constant.attrs["value"] else "else"]
        inner: list[Operation] = []
        results = inline(branch, args, inner)
        for each in inner:
            self.fold(rewire(each, self.env))
        self.env.update(zip(op.outputs, lookup(self.env, results), strict=True))
        return True


def _given_back(op: Operation, output: int) -> Value | None:
    """Return the operand that an output is in every case, if there is one."""
    give = _GIVES.get(op.opcode)
    return give(op, output) if give is not None else None


def _of_region(op: Operation, region: Graph, args: Sequence[Value], output: int) -> Value | None:
    value = region.outputs[output]
    return args[region.inputs.index(value)] if value in region.inputs else None


def _of_call(op: Operation, output: int) -> Value | None:
    (region,) = op.regions.values()
    return _of_region(op, region, op.inputs, output)


def _of_dynamic(op: Operation, output: int) -> Value | None:
    """With several operands, fewer may hold the result than the operand."""
    return _of_call(op, output) if len(set(op.inputs)) == 1 else None


def _of_cond(op: Operation, output: int) -> Value | None:
    found = {_of_region(op, region, op.inputs[1:], output) for region in op.regions.values()}
    return found.pop() if len(found) == 1 else None


def _of_loop(op: Operation, output: int) -> Value | None:
    body = op.regions["body"]
    return op.inputs[output] if body.outputs[output] is body.inputs[output] else None


_GIVES: Mapping[str, Callable[[Operation, int], Value | None]] = {
    "func.call": _of_call,
    "func.launch": _of_call,
    "simp.pcall_dynamic": _of_dynamic,
    "simp.pcall_static": _of_call,
    "simp.uniform_cond": _of_cond,
    "simp.while_loop": _of_loop,
}

_RULES: Mapping[str, Callable[[_Fold, Operation], bool]] = {
    "simp.converge": _Fold.converge,
    "simp.pcall_static": _Fold.pcall_static,
    "simp.shuffle_static": _Fold.shuffle_static,
    "simp.uniform_cond": _Fold.uniform_cond,
}
