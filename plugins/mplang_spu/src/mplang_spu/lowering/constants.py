"""Diagnostics of constants that the fixed point cannot represent. Imports JAX."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from jaxlib.mlir import ir
from mplang_stablehlo.ext import walk

from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.splats import dtype_of, splat_of
from mplang_spu.target import Target

_OP_INDEX = "mplang.place"


@dataclass(frozen=True, slots=True)
class BadConstant:
    """Constant that the fixed point cannot represent.

    Attributes:
        op_index: index of the op that uses it, or of the loop around that op, in the inlined
            ``main``.
        text: the problem and its remedy.
        fatal: whether the op's result is certainly wrong.
        chosen_of: the number of the operand of ``main`` that the op combines with it, if a select
            may discard the result; else ``None``.
    """

    op_index: int
    text: str
    fatal: bool = False
    chosen_of: int | None = None


def index_ops(rewriter: Rewriter) -> None:
    """Attach to each op its index in ``main``, or that of the op around it."""
    with rewriter.module.context:
        kind = ir.IntegerType.get_signless(32)
        for i, outer in enumerate(rewriter.main.regions[0].blocks[0].operations):
            for op in (outer.operation, *walk(outer.operation)):
                op.attributes[_OP_INDEX] = ir.IntegerAttr.get(kind, i)


def erase_op_indices(rewriter: Rewriter) -> None:
    """Erase the attributes of :func:`index_ops`."""
    for op in walk(rewriter.main):
        if _OP_INDEX in op.attributes:
            del op.attributes[_OP_INDEX]


_Use: TypeAlias = tuple[ir.Operation, int, bool]
"""Op, index of its operand, and whether a select lies between the constant and the op."""

_MOVES = {"broadcast_in_dim", "reshape", "transpose", "slice", "reverse", "concatenate", "pad",
          "gather", "dynamic_slice", "dynamic_update_slice", "convert"}  # fmt: skip
_ORDERS = {"compare", "maximum", "minimum", "clamp", "sort", "is_finite", "sign"}
_REDUCTIONS = {"reduce", "reduce_window", "select_and_scatter"}
_SATURATES = {"exponential", "logistic", "tanh", "erf"}


def unrepresentable_constants(rewriter: Rewriter) -> list[BadConstant]:
    """Diagnose constants that vanish, overflow, are NaN or infinite, and can reach a result.

    Many are harmless: infinity as the initial value of a maximum, or as the mask of a softmax; the
    NaN of a median is gone once comparisons with NaN are folded.
    """
    diagnostics: list[BadConstant] = []
    for op in rewriter.ops("constant"):
        kind = dtype_of(op.results[0])
        if kind.kind != "b":
            numbers = _numbers(op)
            check = _check_floats if kind.kind == "f" else _check_integers
            diagnostics += (
                [diagnostic]
                if (diagnostic := check(rewriter.target, op.results[0], numbers))
                else []
            )
    return diagnostics


def _numbers(op: ir.Operation) -> np.ndarray[Any, Any]:
    number = splat_of(op.results[0])
    data = ir.DenseElementsAttr(op.attributes["value"]) if number is None else number
    return np.atleast_1d(np.asarray(data).astype(dtype_of(op.results[0]), copy=False))


def _check_floats(
    target: Target, value: ir.Value, numbers: np.ndarray[Any, Any]
) -> BadConstant | None:
    sizes = np.abs(numbers.astype(np.float64))
    if not sizes.all() and (found := _diagnose_divisor(value)):
        return found
    if np.isnan(sizes).any():
        return _diagnose(
            _of_nan(value), "the constant NaN", "there is none on SPU, and it becomes 0"
        )
    if np.isinf(sizes).any():
        why = f"SPU has none: it becomes {target.limit:.1e}"
        return _diagnose(_of_large(value), "the constant infinity", why)
    if (sizes >= target.limit).any():
        number = numbers[sizes >= target.limit][0]
        why = f"{_how(target)} hold numbers below {target.limit:.1e}; scale the data down"
        return _diagnose(_of_large(value), f"the constant {number:g}", why, fatal=True)
    small = (sizes > 1e-3 * sizes.max(initial=0)) & (sizes < target.step)
    if small.any():
        why = (
            f"the smallest step of {_how(target)} is {target.step:.1e}, so it vanishes; scale the "
            "data, or take more fxp_fraction_bits"
        )
        return _diagnose(
            _of_small(target, value, numbers), f"the constant {numbers[small][0]:g}", why
        )
    return None


def _check_integers(
    target: Target, value: ir.Value, numbers: np.ndarray[Any, Any]
) -> BadConstant | None:
    if not numbers.all() and (found := _diagnose_divisor(value)):
        return found
    large = [int(number) for number in (numbers.min(), numbers.max())]
    large = [number for number in large if not -target.integers <= number < target.integers]
    if not large:
        return None
    why = f"{target.field} compares integers below {target.integers:.1e}; take a larger field"
    uses = ((op, i, False) for op, i, _ in _of_order(value))
    return _diagnose(uses, f"the constant {large[0]}", why, fatal=True)


def _diagnose_divisor(value: ir.Value) -> BadConstant | None:
    """Diagnose a 0 by which something is divided, unless a select may discard it."""
    uses = (
        (op, i, chosen)
        for op, i, chosen in _uses(value)
        if _name(op) in ("divide", "remainder") and i == 1 and not chosen
    )
    why = "SPU has no infinity and no NaN, and gives another number; divide by another one"
    return _diagnose(uses, "the divisor 0", why)


def _how(target: Target) -> str:
    return f"{target.field} with {target.fxp} fraction bits"


def _diagnose(
    uses: Iterator[_Use], what: str, why: str, *, fatal: bool = False
) -> BadConstant | None:
    """Diagnose the first use; it is not fatal if a select may discard the constant."""
    for op, i, chosen in uses:
        ends = _name(op) in ("func.return", "return")
        name, place = ("the result", op.operands[i].owner) if ends else (_name(op), op)
        chosen = chosen or _is_selected(op)
        text = f"{what} reaches {name}{' if it is selected' if chosen else ''}: {why}"
        of = _argument(op, i) if chosen else None
        return BadConstant(op_index(place), text, fatal and not chosen, of)
    return None


def _argument(op: ir.Operation, i: int) -> int | None:
    """Return the operand of ``main`` that an op of two has beside operand ``i``, by number."""
    if len(op.operands) != 2:
        return None
    value = op.operands[1 - i]
    while isinstance(value.owner, ir.Operation) and _name(value.owner) in _MOVES:
        value = value.owner.operands[0]
    if isinstance(value.owner, ir.Operation):
        return None
    if value.owner.owner.operation.name != "func.func":
        return None
    return int(ir.BlockArgument(value).arg_number)


def _is_selected(op: ir.Operation) -> bool:
    """Return whether what an op gives may be discarded, as in JAX's ``erf_inv`` and ``expm``."""
    if op.name == "stablehlo.return" and op.parent.name in ("stablehlo.case", "stablehlo.if"):
        return True
    uses = [use for result in op.results for use in result.uses]
    owners = [use.owner.operation for use in uses if use.operand_number > 0]
    return 0 < len(uses) == len(owners) and all(_name(each) == "select" for each in owners)


def _of_nan(value: ir.Value) -> Iterator[_Use]:
    return (use for use in _uses(value) if _name(use[0]) not in ("compare", "is_finite"))


def _of_order(value: ir.Value) -> Iterator[_Use]:
    """Yield the uses that compare it; initial values of reductions are clamped."""
    for op, i, chosen in _uses(value):
        name = _name(op)
        starts = name in _REDUCTIONS and i >= (len(op.operands) + 1) // 2
        if name in _ORDERS or name == "divide" or (name in _REDUCTIONS and not starts):
            yield op, i, chosen


def _of_large(value: ir.Value) -> Iterator[_Use]:
    """Yield the uses that compute with it; a bound larger than all numbers may be intended."""
    for op, i, chosen in _uses(value):
        name = _name(op)
        if name in ("add", "subtract", "negate"):
            rest = _of_large(op.results[0])
            yield from ((op, i, chosen or late) for _, _, late in rest)
        elif not (name in _ORDERS | _SATURATES or (name in _REDUCTIONS and _orders(op))):
            yield op, i, chosen


def _of_small(target: Target, value: ir.Value, numbers: np.ndarray[Any, Any]) -> Iterator[_Use]:
    """Yield the uses except comparisons, and divisions, which multiply by the reciprocal."""
    inverts = numbers.min() == numbers.max() and abs(1 / numbers.flat[0]) < target.factors
    for op, i, chosen in _uses(value):
        if _name(op) != "compare" and not (_name(op) == "divide" and i == 1 and inverts):
            yield op, i, chosen


def _uses(value: ir.Value, chosen: bool = False) -> Iterator[_Use]:
    """Yield the uses of a value, through ops that only move and select elements."""
    for use in value.uses:
        op, i = use.owner.operation, use.operand_number
        if _name(op) in _MOVES:
            yield from _uses(op.results[0], chosen)
        elif _name(op) == "select" and i > 0:
            if not _is_gathered(op.operands[3 - i]):  # JAX's fill value for indices out of range
                yield from _uses(op.results[0], True)
        else:
            yield op, i, chosen


def _is_gathered(value: ir.Value) -> bool:
    owner = value.owner
    while isinstance(owner, ir.Operation) and _name(owner) in ("reshape", "transpose", "convert"):
        owner = owner.operands[0].owner
    return isinstance(owner, ir.Operation) and _name(owner) == "gather"


def _orders(op: ir.Operation) -> bool:
    """Return whether a reduction selects one of its elements."""
    names = {_name(inner.operation) for region in op.regions for inner in region.blocks[0]}
    return bool(names & {"maximum", "minimum", "compare"})


def _name(op: ir.Operation) -> str:
    name: str = op.name.removeprefix("stablehlo.")
    return name


def op_index(op: ir.Operation) -> int:
    """Return the index that :func:`index_ops` attached to an op."""
    return ir.IntegerAttr(op.attributes[_OP_INDEX]).value if _OP_INDEX in op.attributes else 0
