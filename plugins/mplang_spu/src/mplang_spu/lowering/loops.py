"""Pass over loops whose state goes in circles. Imports JAX."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir
from mplang_stablehlo.ext import walk

from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.term import Term, where


def settle_states(rewriter: Rewriter) -> None:
    """Add a dependency on itself to a value of each cycle in the state of a loop.

    libspu's compiler follows which values of a state are secret, turn by turn, until nothing
    changes. Where a loop swaps a public value and a secret one, that never ends, and holds Python's
    lock. A selection by a public operand adds the dependency, and changes no number.
    """
    integer = ir.IntegerType.get_signless(32, rewriter.module.context)
    for op in rewriter.ops("while"):
        body = op.regions[1].blocks[0]
        end = body.operations[len(body.operations) - 1].operation
        for i in _circles([_arguments(value, body) for value in end.operands]):
            with rewriter.before(end):
                always = rewriter.public(1, integer) > 0
                kept = where(always, Term(end.operands[i]), Term(body.arguments[i]))
                end.operands[i] = kept.value


def _arguments(value: ir.Value, body: ir.Block) -> set[int]:
    """Return the numbers of the body's arguments that a value of it depends on."""
    todo, seen, found = [value], {value}, set[int]()
    while todo:
        owner = (made := todo.pop()).owner
        if isinstance(owner, ir.Block):
            if owner == body:
                found.add(ir.BlockArgument(made).arg_number)
            continue
        for each in (owner, *walk(owner)):
            new = set(each.operands) - seen
            seen |= new
            todo += new
    return found


def _circles(sources: Sequence[set[int]]) -> list[int]:
    """Return a value of each circle in which none depends on itself.

    Args:
        sources: per value of the state, what its next one depends on.
    """
    reached = [_reached(sources, i) for i in range(len(sources))]
    found: list[int] = []
    for i, mine in enumerate(reached):
        circle = {j for j in mine if i in reached[j]}
        if i in circle and not any(j in sources[j] or j in found for j in circle):
            found.append(i)
    return found


def _reached(sources: Sequence[set[int]], start: int) -> set[int]:
    todo, found = [start], set[int]()
    while todo:
        new = sources[todo.pop()] - found
        found |= new
        todo += new
    return found
