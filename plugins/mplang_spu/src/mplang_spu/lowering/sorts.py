"""Passes over sorts. Imports JAX."""

from __future__ import annotations

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo
from mplang_stablehlo.ext import target_of

from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.splats import direction_of
from mplang_spu.lowering.term import Term, is_float, replace


def sort_largest(rewriter: Rewriter) -> None:
    """Sort for ``top_k``: libspu selects, in no order, and its messages tell how many are equal.

    Of equal elements the first comes first. A descending sort of libspu has them backwards, so
    what is sorted, in ascending order, is backwards.
    """
    for op in rewriter.ops("custom_call"):
        if target_of(op) != "mhlo.topk":
            continue
        (operand,), count = op.operands, op.results[0].type.shape[-1]
        axis, size = ir.RankedTensorType(operand.type).rank - 1, operand.type.shape[-1]
        with rewriter.before(op):
            places = _places(operand.type, axis, _scalar(op.results[1].type).element_type)
            taken = [hlo.reverse(each, [axis]) for each in (operand, places)]
            ordered = hlo.SortOp([v.type for v in taken], taken, dimension=axis, is_stable=True)
            scalars = [_scalar(v.type) for v in taken for _ in "ab"]
            block = ordered.regions[0].blocks.append(*scalars)
            with ir.InsertionPoint(block):
                hlo.return_([(Term(block.arguments[0]) < Term(block.arguments[1])).value])
            last = [Term(v).part(axis, size - count, size).value for v in ordered.results]
            replace(op, *(Term(hlo.reverse(each, [axis])) for each in last))


def sort_by_place(rewriter: Rewriter) -> None:
    """Sort by place where keys are equal, on CHEETAH, by other methods, and in descending order.

    libspu's quick sort gives equal elements another order each time, and its messages tell how many
    there are. Places make them differ: it compares what it has shuffled. A network swaps equal
    ones, and by a radix sort, the default of other protocols, a descending sort has them backwards.
    """
    for op in rewriter.ops("sort"):
        if rewriter.target.keeps_order and not _descends(op):
            continue
        axis, count = ir.IntegerAttr(op.attributes["dimension"]).value, len(op.operands)
        own = next((i for i, v in enumerate(op.operands) if _is_places(v, axis)), count)
        if own == count:
            op = _with_places(rewriter, op, axis)
        block = op.regions[0].blocks[0]
        last = _last_comparison(block)
        users = _users(last.results[0])
        with last.location, ir.InsertionPoint.after(last):
            less, (a, b) = Term(last.results[0]), map(Term, last.operands)
            first, second = map(Term, list(block.arguments)[2 * own : 2 * own + 2])
            _give((less | a.equals(b) & (first < second)).value, users)


def _descends(op: ir.Operation) -> bool:
    return any(
        each.name == "stablehlo.compare" and direction_of(each) == "GT"
        for each in op.regions[0].blocks[0].operations
    )


def _with_places(rewriter: Rewriter, op: ir.Operation, axis: int) -> ir.Operation:
    """Return a sort of the same operands and of their places."""
    integer = ir.IntegerType.get_signless(32, rewriter.module.context)
    with rewriter.before(op):
        places = _places(op.operands[0].type, axis, integer)
        taken = [*op.operands, places]
        made = hlo.SortOp([v.type for v in taken], taken, dimension=axis, is_stable=True)
        op.regions[0].blocks[0].append_to(made.regions[0])
        for _ in "ab":
            made.regions[0].blocks[0].add_argument(_scalar(places.type), op.location)
    replace(op, *map(Term, list(made.results)[:-1]))
    return made.operation


def _places(kind: ir.Type, axis: int, element: ir.Type) -> ir.Value:
    shape = list(ir.RankedTensorType(kind).shape)
    return hlo.iota(ir.RankedTensorType.get(shape, element), axis)


def _is_places(value: ir.Value, axis: int) -> bool:
    op = value.owner
    if not isinstance(op, ir.Operation) or op.name != "stablehlo.iota":
        return False
    return bool(ir.IntegerAttr(op.attributes["iota_dimension"]).value == axis)


def _last_comparison(block: ir.Block) -> ir.Operation:
    """Return what compares the last key: admission takes ``a < b or (a == b and next)`` alone."""
    *_, ends = block.operations
    found = ends.operands[0].owner
    while found.name == "stablehlo.or":
        found = found.operands[1].owner.operands[1].owner
    return found


_SUMS = {f"stablehlo.{name}" for name in ("add", "iota", "multiply", "negate", "subtract")}


def sort_bools(rewriter: Rewriter) -> None:
    """Sort bools as integers: libspu takes their one bit for a sign, so true sorts below false.

    A converted bool is still shared as one bit, and ``x & 255`` as eight; a sum is shared as an
    integer.
    """
    wide = ir.IntegerType.get_unsigned(32, rewriter.module.context)
    for op in rewriter.ops("sort"):
        for i, operand in enumerate(op.operands):
            kind = ir.RankedTensorType(operand.type)
            if kind.element_type.width != 1:
                if _may_be_bits(operand):
                    with rewriter.before(op):
                        zero = rewriter.public(0, kind.element_type)
                        op.operands[i] = (Term(operand) + zero).value
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


def _may_be_bits(value: ir.Value) -> bool:
    """Return whether an integer may be shared as its lower bits alone."""
    op = value.owner
    return not is_float(value) and isinstance(op, ir.Operation) and op.name not in _SUMS


def _scalar(kind: ir.Type) -> ir.RankedTensorType:
    return ir.RankedTensorType.get([], ir.RankedTensorType(kind).element_type)


def _users(value: ir.Value) -> list[tuple[ir.Operation, int]]:
    return [(use.owner.operation, use.operand_number) for use in value.uses]


def _give(value: ir.Value, users: list[tuple[ir.Operation, int]]) -> None:
    for user, i in users:
        user.operands[i] = value
