"""What may be secret: what depends on the operands of ``main``. Imports JAX."""

from __future__ import annotations

from jaxlib.mlir import ir
from mplang_stablehlo.module import walk

__all__ = ["secrets_of"]


def secrets_of(main: ir.Operation) -> set[ir.Value]:
    """Return the values that depend on an operand; the others are the same for all data.

    The counter of a loop is none of them, unless its start or its step is.
    """
    found = set(main.regions[0].blocks[0].arguments)
    size = 0
    while size != len(found):
        size = len(found)
        for op in walk(main):
            if op.name == "stablehlo.while":
                _follow_loop(op, found)
            elif op is not main and _takes_any(op, found):
                found.update(op.results)
                found.update(value for region in op.regions for block in region.blocks
                             for value in block.arguments)  # fmt: skip
    return found


def _takes_any(op: ir.Operation, found: set[ir.Value]) -> bool:
    inner = walk(op) if op.regions else ()
    return any(value in found for each in (op, *inner) for value in each.operands)


def _follow_loop(op: ir.Operation, found: set[ir.Value]) -> None:
    """Follow each value that is carried; a loop whose length is secret has secret results."""
    condition, body = (region.blocks[0] for region in op.regions)
    ends, gives = (
        block.operations[len(block.operations) - 1].operands for block in (condition, body)
    )
    for i, start in enumerate(op.operands):
        if start in found or gives[i] in found or ends[0] in found:
            found.update((condition.arguments[i], body.arguments[i], op.results[i]))
