"""Rewriter of a module: finds its ops, replaces them, and adds public operands. Imports JAX."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from mplang_stablehlo.ext import walk

from mplang_spu.lowering.term import Term, before, numpy_type
from mplang_spu.target import Target

MAX_REWRITTEN = 20_000
"""Maximum number of replaced ops; each becomes some dozens."""

_PER_PAIR = {
    f"stablehlo.{name}"
    for name in ("reduce", "reduce_window", "scatter", "select_and_scatter", "sort")
}
"""Ops whose regions libspu evaluates on pairs of elements; no outer values may be used there."""


class Rewriter:
    """Rewriter of a module with one function, ``main``.

    Args:
        module: parsed, admitted, and inlined.
        target: protocol, field and fixed point.
        unreduced: the numbers of the operands whose integers may be beyond their type.

    Attributes:
        unreduced_results: the numbers of such results.
        operands: public operands that ``main`` takes after its own. libspu's compiler folds and
            reassociates constants, which is exact for reals only, but not operands.
    """

    def __init__(
        self, module: ir.Module, target: Target, unreduced: frozenset[int] = frozenset()
    ) -> None:
        self.module, self.target, self.unreduced = module, target, unreduced
        self.unreduced_results: frozenset[int] = frozenset()
        self.main: ir.Operation = next(iter(module.body.operations)).operation
        self.operands: list[np.ndarray[Any, Any]] = []
        self._lifted: dict[tuple[float, str], Term] = {}
        self._rewritten = 0
        self._present: set[str] | None = None  # names of its ops, if known: saves walks

    def ops(self, *names: str) -> list[ir.Operation]:
        """Return the ops with these names, except those in reducers and comparators."""
        wanted = {f"stablehlo.{name}" for name in names}
        if self._present is not None and wanted.isdisjoint(self._present):
            return []
        every = [(op.name, op) for op in self.all_ops()]
        chosen = [op for name, op in every if name in wanted]
        self._present = None if chosen else {name for name, _ in every}  # else it may be rewritten
        return chosen

    def all_ops(self) -> Iterator[ir.Operation]:
        """Yield the ops except those in reducers and comparators, outer ones before inner ones."""
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
        """Insert ops before an op that they replace.

        Raises:
            ValueError: more than :data:`MAX_REWRITTEN` ops are replaced.
        """
        self._present = None
        self._rewritten += 1
        if self._rewritten > MAX_REWRITTEN:
            raise ValueError(f"over {MAX_REWRITTEN} of its ops have to be written anew")
        return before(op)

    @property
    def integer(self) -> ir.Type:
        """Largest integer type of the field."""
        width = min(64, self.target.bits)
        return ir.IntegerType.get_signless(width, self.module.context)

    def public(self, number: float, element: ir.Type) -> Term:
        """Return a number as a public scalar operand.

        A float becomes the sum of two operands if its type has fewer bits than the fixed point.

        Args:
            number: the number.
            element: the element type of the operand.

        Returns:
            The scalar.
        """
        kind = numpy_type(element)
        rest = float(number) - float(kind.type(number)) if kind.kind == "f" else 0.0
        found = self._operand(number, element)
        return found if abs(rest) < self.target.step else found + self._operand(rest, element)

    def _operand(self, number: float, element: ir.Type) -> Term:
        key = np.array(number, numpy_type(element)).item(), str(element)
        if key not in self._lifted:
            kind = ir.RankedTensorType.get([], element)
            with self.main.location:
                value = self.main.regions[0].blocks[0].add_argument(kind, self.main.location)
            self._lifted[key] = Term(value)
            self.operands.append(np.array(number, numpy_type(element)))
        return self._lifted[key]

    def scaled(self, x: Term, *factors: float) -> Term:
        """Multiply a float by public factors, one after the other.

        libspu's compiler reassociates ``(x*a)*b`` to ``x*(a*b)``, also for operands, but not
        through a sum.

        Args:
            x: a float.
            *factors: numbers.

        Returns:
            The product.
        """
        x = self.barrier(x)
        for factor in factors:
            x = self.barrier(x * self.public(factor, x.kind.element_type))
        return x

    def barrier(self, x: Term) -> Term:
        """Return a float plus a public zero, an optimization barrier for libspu's compiler.

        The compiler rewrites ``exp(x)²`` to ``exp(x+x)``, and ``x/exp(y)`` to ``x*exp(-y)``.
        """
        return x + self.public(0.0, x.kind.element_type)

    def update_signature(self) -> None:
        """Update the function type of ``main``."""
        block = self.main.regions[0].blocks[0]
        takes = [argument.type for argument in block.arguments]
        gives = [value.type for value in block.operations[len(block.operations) - 1].operands]
        with self.module.context:
            kind = ir.TypeAttr.get(ir.FunctionType.get(takes, gives))
        self.main.attributes["function_type"] = kind
