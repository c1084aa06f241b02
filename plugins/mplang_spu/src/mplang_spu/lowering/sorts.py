"""Passes over sorts. Imports JAX."""

from __future__ import annotations

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo
from mplang_stablehlo.custom_calls import target_of

from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.term import Term


def sort_largest(rewriter: Rewriter) -> None:
    """Sort the results of ``top_k``: libspu returns the largest elements unordered."""
    for op in rewriter.ops("custom_call"):
        if target_of(op) != "mhlo.topk" or op.results[0].type.shape[-1] < 2:
            continue
        kinds = [result.type for result in op.results]
        users = [_users(value) for value in op.results]
        with op.location, ir.InsertionPoint.after(op):
            ordered = hlo.SortOp(
                kinds, list(op.results), dimension=len(kinds[0].shape) - 1, is_stable=True
            )
            _by_size_then_index(ordered, kinds)
        for result, each in zip(ordered.results, users, strict=True):
            _give(result, each)


def _by_size_then_index(op: hlo.SortOp, kinds: list[ir.RankedTensorType]) -> None:
    scalars = [ir.RankedTensorType.get([], kind.element_type) for kind in kinds for _ in "ab"]
    block = op.regions[0].blocks.append(*scalars)
    with ir.InsertionPoint(block):
        a, b, first, second = block.arguments
        larger, same = (
            hlo.compare(a, b, hlo.ComparisonDirectionAttr.get(how)) for how in ("GT", "EQ")
        )
        earlier = hlo.compare(first, second, hlo.ComparisonDirectionAttr.get("LT"))
        hlo.return_([hlo.or_(larger, hlo.and_(same, earlier))])


def sort_bools(rewriter: Rewriter) -> None:
    """Sort bools as integers: libspu takes their one bit for a sign, so true sorts below false.

    A converted bool is still shared as one bit; a sum is shared as an integer.
    """
    wide = ir.IntegerType.get_unsigned(32, rewriter.module.context)
    for op in rewriter.ops("sort"):
        for i, operand in enumerate(op.operands):
            kind = ir.RankedTensorType(operand.type)
            if kind.element_type.width != 1:
                continue
            with rewriter.before(op):
                op.operands[i] = (Term(operand).to(wide) + rewriter.public(0, wide)).value
                scalar = ir.RankedTensorType.get([], wide)
            result = op.results[i]
            users = _users(result)
            result.set_type(op.operands[i].type)
            for argument in list(op.regions[0].blocks[0].arguments)[2 * i : 2 * i + 2]:
                argument.set_type(scalar)
            with op.location, ir.InsertionPoint.after(op):
                _give(Term(result).to(kind.element_type).value, users)


def _users(value: ir.Value) -> list[tuple[ir.Operation, int]]:
    return [(use.owner.operation, use.operand_number) for use in value.uses]


def _give(value: ir.Value, users: list[tuple[ir.Operation, int]]) -> None:
    for user, i in users:
        user.operands[i] = value
