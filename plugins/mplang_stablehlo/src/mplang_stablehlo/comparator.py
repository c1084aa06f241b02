"""Check of sort comparators: a strict weak order of the keys, as JAX writes it.

The engines sort with C++'s ``std::sort``, which runs past the ends of its buffer if the comparator
is not a strict weak order (ISO C++, [alg.sorting]); "less or equal" suffices.
"""

from __future__ import annotations

from typing import Any, NoReturn

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

MAX_OPS = 400
_OF_ONE_KEY = ("stablehlo.select", "stablehlo.compare", "stablehlo.real", "stablehlo.imag")


def check_comparator(block: ir.Block) -> None:
    """Check that a comparator orders its keys strictly.

    It must be ``x < y`` or ``x > y`` of one key, or of several in lexicographic order:
    ``x0 < y0 or (x0 == y0 and …)``. Both sides must compute their key in the same way.

    Raises:
        ValueError: it is anything else.
    """
    ops = list(block.operations)
    if len(ops) > MAX_OPS or len(block.arguments) % 2:
        raise ValueError("a comparator takes pairs, and compares a few keys")
    _Comparator(block).check(ops[-1].operation.operands[0])


class _Comparator:
    """Comparator of one sort."""

    def __init__(self, block: ir.Block) -> None:
        self._block = block
        self._arguments = {argument: i for i, argument in enumerate(block.arguments)}
        self._same: set[tuple[ir.Value, ir.Value]] = set()

    def check(self, value: ir.Value) -> None:
        """Check that a value is true iff the left keys are strictly before the right ones."""
        op = self._op(value)
        if op is not None and op.name == "stablehlo.compare":
            self._compare(op, "LT", "GT")
        elif op is not None and op.name == "stablehlo.or":
            first, rest = map(self._op, op.operands)
            if first is None or rest is None or rest.name != "stablehlo.and":
                self._fail()
            equal = self._op(rest.operands[0])
            keys = self._compare(first, "LT", "GT")
            if equal is None or self._compare(equal, "EQ") != keys:
                self._fail()
            self.check(rest.operands[1])
        else:
            self._fail()

    def _compare(self, op: ir.Operation, *directions: str) -> tuple[Any, ...]:
        """Check one comparison of keys; return the keys and the order of numbers."""
        if op.name != "stablehlo.compare":
            self._fail()
        direction, order = _kind(op)
        left, right = op.operands
        if direction not in directions or not self._mirrored(left, right):
            self._fail()
        return left, right, order

    def _mirrored(self, left: ir.Value, right: ir.Value) -> bool:
        """Return whether two values are the same function of the left and the right key."""
        if (left, right) in self._same:
            return True
        x, y = self._op(left), self._op(right)
        if x is None or y is None:
            same = self._is_pair(left, right)
        elif x.name == "stablehlo.constant":
            same = y.name == x.name and x.attributes["value"] == y.attributes["value"]
        else:
            same = (
                x.name == y.name
                and x.name in _OF_ONE_KEY
                and _kind(x) == _kind(y)
                and len(x.operands) == len(y.operands)
                and all(map(self._mirrored, x.operands, y.operands))
            )
        if same:
            self._same.add((left, right))
        return same

    def _is_pair(self, left: ir.Value, right: ir.Value) -> bool:
        """Return whether two outer values are equal, or both sides of a pair of arguments."""
        i, j = self._arguments.get(left), self._arguments.get(right)
        if i is None or j is None:
            return bool(left == right)
        return i % 2 == 0 and j == i + 1

    def _op(self, value: ir.Value) -> ir.Operation | None:
        """Return the op of the comparator that defines a value."""
        if isinstance(value.owner, ir.Block) or value.owner.operation.block != self._block:
            return None
        found: ir.Operation = value.owner.operation
        return found

    def _fail(self) -> NoReturn:
        raise ValueError("its comparator is not a strict order (x < y or x > y) as JAX writes it")


def _kind(op: ir.Operation) -> tuple[str, str]:
    """Return the direction of a comparison, and its order of numbers."""
    if op.name != "stablehlo.compare":
        return "", ""
    direction = stablehlo.ComparisonDirectionAttr(op.attributes["comparison_direction"]).value
    order = str(op.attributes["compare_type"]) if "compare_type" in op.attributes else ""
    return str(direction), order
