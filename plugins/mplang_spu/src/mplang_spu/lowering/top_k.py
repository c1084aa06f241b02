"""A pass over the largest elements. Imports JAX."""

from __future__ import annotations

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo
from mplang_stablehlo.custom_calls import target_of

from mplang_spu.lowering.draft import Draft

__all__ = ["sort_largest"]


def sort_largest(draft: Draft) -> None:
    """Sort what ``top_k`` gives: libspu finds the largest elements in no order."""
    for op in draft.ops("custom_call"):
        if target_of(op) != "mhlo.topk" or op.results[0].type.shape[-1] < 2:
            continue
        kinds = [result.type for result in op.results]
        uses = [[(use.owner, use.operand_number) for use in value.uses] for value in op.results]
        with op.location, ir.InsertionPoint.after(op):
            ordered = hlo.SortOp(
                kinds, list(op.results), dimension=len(kinds[0].shape) - 1, is_stable=True
            )
            _by_size_then_index(ordered, kinds)
        for result, users in zip(ordered.results, uses, strict=True):
            for user, i in users:
                user.operands[i] = result


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
