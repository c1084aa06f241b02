"""Taint analysis of secrets: values that depend on the operands of ``main``. Imports JAX."""

from __future__ import annotations

from jaxlib.mlir import ir
from mplang_stablehlo.ext import walk

MAX_TURNS = 32
"""Maximum number of iterations to a fixed point; beyond it, all values count as secret."""


def secret_values(main: ir.Operation) -> set[ir.Value]:
    """Return the values that depend on an operand of ``main``.

    The counter of a loop is not among them, unless its start or step is secret.
    """
    found = set(main.regions[0].blocks[0].arguments)
    for _ in range(MAX_TURNS):
        size = len(found)
        for op in walk(main):
            if op.name == "stablehlo.while":
                _follow_loop(op, found)
            elif _takes_any(op, found):
                found.update(_values(op))
        if len(found) == size:
            return found
    return found.union(*map(_values, walk(main)))


def _values(op: ir.Operation) -> set[ir.Value]:
    blocks = [block for region in op.regions for block in region.blocks]
    return {*op.results, *(value for block in blocks for value in block.arguments)}


def _takes_any(op: ir.Operation, found: set[ir.Value]) -> bool:
    inner = walk(op) if op.regions else ()
    return any(value in found for each in (op, *inner) for value in each.operands)


def _follow_loop(op: ir.Operation, found: set[ir.Value]) -> None:
    """Propagate secrecy through a loop's state; a secret trip count makes all results secret."""
    condition, body = (region.blocks[0] for region in op.regions)
    ends, gives = (
        block.operations[len(block.operations) - 1].operands for block in (condition, body)
    )
    for i, start in enumerate(op.operands):
        if start in found or gives[i] in found or ends[0] in found:
            found.update((condition.arguments[i], body.arguments[i], op.results[i]))
