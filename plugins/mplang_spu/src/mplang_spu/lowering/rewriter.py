"""A module while it is lowered: its ops, and the public operands that passes add. Imports JAX."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from mplang_stablehlo.module import walk

from mplang_spu.lowering.term import Term, before, numpy_type
from mplang_spu.target import Target

__all__ = ["Rewriter"]

MAX_REWRITTEN = 20_000
"""Ops that are written anew; each becomes some dozens."""

_PER_PAIR = {
    f"stablehlo.{name}"
    for name in ("reduce", "reduce_window", "scatter", "select_and_scatter", "sort")
}
"""Ops whose regions libspu evaluates for pairs of elements; nothing from outside stands there."""


class Rewriter:
    """A module of one function, ``main``, and what it is lowered for.

    Args:
        module: parsed, checked, and inlined.
        target: protocol, field and fixed point.

    Attributes:
        operands: the public operands that ``main`` takes beyond its own: libspu's compiler folds
            and reassociates constants, which is right for reals only, but no operands.
    """

    def __init__(self, module: ir.Module, target: Target) -> None:
        self.module, self.target = module, target
        self.main: ir.Operation = next(iter(module.body.operations)).operation
        self.operands: list[np.ndarray[Any, Any]] = []
        self._lifted: dict[tuple[float, str], Term] = {}
        self._rewritten = 0

    def ops(self, *names: str) -> list[ir.Operation]:
        """Return the ops of these names, without those that stand in reducers and comparators."""
        wanted = {f"stablehlo.{name}" for name in names}
        return [op for op in self._flat() if op.name in wanted]

    def _flat(self) -> Iterator[ir.Operation]:
        inside: set[ir.Operation] = set()
        for op in walk(self.main):
            if op.parent in inside:
                if op.regions:
                    inside.add(op)
                continue
            if op.name in _PER_PAIR:
                inside.add(op)
            yield op

    def before(self, op: ir.Operation) -> AbstractContextManager[None]:
        """Write ops before another that they replace.

        Raises:
            ValueError: that many ops are replaced that the module would grow out of bounds.
        """
        self._rewritten += 1
        if self._rewritten > MAX_REWRITTEN:
            raise ValueError(f"over {MAX_REWRITTEN} of its ops have to be written anew")
        return before(op)

    @property
    def integer(self) -> ir.Type:
        """The largest integer of the field."""
        width = min(64, self.target.bits)
        return ir.IntegerType.get_signless(width, self.module.context)

    def public(self, number: float, element: ir.Type) -> Term:
        """Return a number as a public operand, a scalar.

        A float is the sum of two where the type of the code has fewer bits than the fixed point.
        """
        kind = numpy_type(element)
        rest = float(number) - float(kind.type(number)) if kind.kind == "f" else 0.0
        found = self._operand(number, element)
        return found if abs(rest) < self.target.step else found + self._operand(rest, element)

    def _operand(self, number: float, element: ir.Type) -> Term:
        key = float(number), str(element)
        if key not in self._lifted:
            kind = ir.RankedTensorType.get([], element)
            with self.main.location:
                value = self.main.regions[0].blocks[0].add_argument(kind, self.main.location)
            self._lifted[key] = Term(value)
            self.operands.append(np.array(number, numpy_type(element)))
        return self._lifted[key]

    def scaled(self, x: Term, *factors: float) -> Term:
        """Return a float times public factors, one after the other.

        libspu's compiler makes ``x*(a*b)`` of ``(x*a)*b``, also of operands; not through a sum.
        """
        x = self.barrier(x)
        for factor in factors:
            x = self.barrier(x * self.public(factor, x.kind.element_type))
        return x

    def barrier(self, x: Term) -> Term:
        """Return a float plus a public zero: a compiler merges nothing of both sides of it.

        libspu's makes ``exp(x+x)`` of ``exp(x)²``, and ``x*exp(-y)`` of ``x/exp(y)``.
        """
        return x + self.public(0.0, x.kind.element_type)

    def update_signature(self) -> None:
        """Write the types of ``main`` anew."""
        block = self.main.regions[0].blocks[0]
        takes = [argument.type for argument in block.arguments]
        gives = [value.type for value in block.operations[len(block.operations) - 1].operands]
        with self.module.context:
            kind = ir.TypeAttr.get(ir.FunctionType.get(takes, gives))
        self.main.attributes["function_type"] = kind
