"""Passes over control structure that libspu's compiler cannot take: barriers and wide cases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from mplang_stablehlo.ext import attribute_names, number_columns, walk

MAX_DEPTH = 100


def erase_barriers(module: ir.Module) -> None:
    """Replace optimization barriers by their operands.

    A barrier only limits optimizations, so it changes no result. JAX writes one for
    ``jax.checkpoint``. libspu's compiler ends the process at one with two operands.
    """
    for op in _ops(module, "stablehlo.optimization_barrier"):
        for result, operand in zip(op.results, op.operands, strict=True):
            result.replace_all_uses_with(operand)
        op.erase()


def write_cases(module: ir.Module) -> None:
    """Replace each ``if`` by a case: libspu fails at one with a secret predicate when it runs."""
    for op in _ops(module, "stablehlo.if"):
        then, otherwise = (region.blocks[0] for region in op.regions)
        with op.location, ir.InsertionPoint(op):
            kind = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
            index = stablehlo.convert(kind, op.operands[0])
            made = stablehlo.CaseOp([result.type for result in op.results], index, 2)
        otherwise.append_to(made.branches[0])
        then.append_to(made.branches[1])
        _replace(op, made.results)


def pad_operands(module: ir.Module) -> None:
    """Pad what is selected from before it is, and slice the result.

    libspu's compiler does that itself, but fails if the operand is public and the source secret.
    """
    for op in _ops(module, "stablehlo.select_and_scatter"):
        padding = number_columns(op, "padding")
        if not any(padding):
            continue
        x, source, start = op.operands
        low, high, shape = padding[::2], padding[1::2], ir.RankedTensorType(x.type).shape
        names = {"window_dimensions", "window_strides"} & attribute_names(op)
        with op.location, ir.InsertionPoint(op):
            wide = stablehlo.pad(x, start, low, high, [0] * len(shape))
            made = stablehlo.SelectAndScatterOp(
                wide.type, wide, source, start, **{name: op.attributes[name] for name in names}
            )
            ends = [first + size for first, size in zip(low, shape, strict=True)]
            found = stablehlo.slice(made.result, low, ends, [1] * len(shape))
        for region, other in zip(op.regions, made.regions, strict=True):
            region.blocks[0].append_to(other)
        _replace(op, [found])


def nest_cases(module: ir.Module) -> None:
    """Replace cases of three or more branches by nested ones of two.

    libspu's compiler ends the process at such a case with a public index. An index out of range
    selects the last branch, as StableHLO specifies.
    """
    for op in _ops(module, "stablehlo.case"):
        if len(op.regions) > 2:
            _nest(op)


def _nest(case: ir.Operation) -> None:
    """Write ``case index != 0 of (…, case index != 1 of (…, …))``, moving the branches."""
    index, kinds = case.operands[0], [result.type for result in case.results]
    first, *rest = [region.blocks[0] for region in case.regions]
    with case.location, ir.InsertionPoint(case):
        outer = made = _choice(index, 0, kinds)
    first.append_to(made.branches[0])
    for number, branch in enumerate(rest[:-1], 1):
        with case.location, ir.InsertionPoint(made.branches[1].blocks.append()):
            inner = _choice(index, number, kinds)
            stablehlo.return_(inner.results)
        branch.append_to(inner.branches[0])
        made = inner
    rest[-1].append_to(made.branches[1])
    _replace(case, outer.results)


def _choice(index: ir.Value, number: int, kinds: Sequence[ir.Type]) -> stablehlo.CaseOp:
    """Write a case of two empty branches; the index ``number`` selects the first."""
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), number)
    wanted = stablehlo.constant(ir.DenseElementsAttr.get_splat(index.type, number))
    other = stablehlo.compare(index, wanted, stablehlo.ComparisonDirectionAttr.get("NE"))
    return stablehlo.CaseOp(kinds, stablehlo.convert(index.type, other), 2)


def _replace(op: ir.Operation, results: Iterable[ir.Value]) -> None:
    for result, other in zip(op.results, results, strict=True):
        result.replace_all_uses_with(other)
    op.erase()


def check_depth(module: ir.Module) -> None:
    """Refuse deeply nested regions: libspu's compiler recurses over them."""
    level = [module.operation]
    for _ in range(MAX_DEPTH):
        level = [
            op.operation
            for outer in level
            for region in outer.regions
            for block in region.blocks
            for op in block.operations
            if op.operation.regions
        ]
        if not level:
            return
    raise ValueError(f"SPU cannot run regions nested deeper than {MAX_DEPTH}, or as many branches")


_NOT_IN_FM32 = frozenset(
    f"stablehlo.{name}"
    for name in ("atan2", "divide", "exponential", "log", "logistic", "power", "rsqrt", "sqrt")
)


def check_field(module: ir.Module, field: str) -> None:
    """Refuse ops that libspu lacks in a 32-bit ring, which only sums, multiplies and compares.

    Args:
        module: a lowered module.
        field: ``FM32``, ``FM64`` or ``FM128``.

    Raises:
        ValueError: names the op.
    """
    if field == "FM32":
        for op in walk(module.operation):
            if op.name in _NOT_IN_FM32:
                raise ValueError(f"SPU cannot run {op.name} in FM32; take FM64 or FM128")


def _ops(module: ir.Module, name: str) -> list[ir.Operation]:
    return [op for op in walk(module.operation) if op.name == name]
