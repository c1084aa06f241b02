"""Lowering of StableHLO for libspu: admission, then passes that avoid what libspu cannot compile.

Imports JAX, whose MLIR bindings parse and rewrite the module. libspu reads the lowered text.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from mplang_stablehlo.admission import ARITHMETIC, STRUCTURE, Admission
from mplang_stablehlo.custom_calls import CALLS
from mplang_stablehlo.module import text_of, walk

__all__ = ["SPU", "lower"]

MAX_DEPTH = 100
_ELSEWHERE = "do that part in plain at one party"
_ELEMENTS = "i1 i8 i16 i32 i64 ui8 ui16 ui32 ui64 f16 f32 f64"


def _bitcast(op: ir.Operation) -> None:
    kinds = [ir.RankedTensorType(value.type) for value in (*op.operands, *op.results)]
    if any(isinstance(kind.element_type, ir.FloatType) for kind in kinds):
        raise ValueError(
            "bitcast_convert of floats: its numbers have no such bits; where that is of "
            "jax.random, draw the numbers in plain at one party"
        )


SPU = Admission(
    "SPU",
    (STRUCTURE | ARITHMETIC) - {"cbrt"},
    frozenset(_ELEMENTS.split()),
    CALLS,
    rules={"bitcast_convert": _bitcast},
    advice={
        "rng_bit_generator": f"it has no random bits (of a JAX key of kind 'rbg'); {_ELSEWHERE}",
        "fft": f"it has no Fourier transforms; {_ELSEWHERE}",
        "complex": f"it has no complex numbers; {_ELSEWHERE}",
        "imag": f"it has no complex numbers; {_ELSEWHERE}",
        "real": f"it has no complex numbers; {_ELSEWHERE}",
        "cholesky": f"it has no Cholesky decompositions; {_ELSEWHERE}",
        "triangular_solve": f"it has no solver of triangular systems; {_ELSEWHERE}",
        "cbrt": f"it has no cube roots; {_ELSEWHERE}",
        "lapack_": f"it has no linear algebra of LAPACK (decompositions, solve); {_ELSEWHERE}",
    },
    largest=4 << 30,
)
"""What libspu compiles and runs. It knows more custom calls: one of them prints secrets."""


def lower(text: str) -> str:
    """Return the StableHLO that libspu compiles in place of another.

    Args:
        text: within the limits of :func:`mplang_stablehlo.read`.

    Raises:
        ValueError: it is no StableHLO, or SPU cannot run it; names the op.

    Example:
        >>> print(lower('''module @main {
        ...   func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
        ...     %0 = stablehlo.optimization_barrier %arg0 : tensor<2xf32>
        ...     return %0 : tensor<2xf32>
        ...   }
        ... }'''))
        module @main {
          func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
            return %arg0 : tensor<2xf32>
          }
        }
        <BLANKLINE>
    """
    module = SPU.admit(text)
    erase_barriers(module)
    nest_cases(module)
    _check_depth(module)
    return text_of(module)


def erase_barriers(module: ir.Module) -> None:
    """Replace optimization barriers by their operands.

    A barrier keeps a compiler from merging what stands on its sides, so it changes no result. JAX
    writes one for ``jax.checkpoint``. libspu's compiler ends the process at one of two operands.
    """
    for op in _ops(module, "stablehlo.optimization_barrier"):
        for result, operand in zip(op.results, op.operands, strict=True):
            result.replace_all_uses_with(operand)
        op.erase()


def nest_cases(module: ir.Module) -> None:
    """Replace a case of three branches or more by nested ones of two.

    libspu's compiler ends the process at such a case whose index is public. What is out of range
    takes the last branch, as the specification of StableHLO says.
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
    for result, other in zip(case.results, outer.results, strict=True):
        result.replace_all_uses_with(other)
    case.erase()


def _choice(index: ir.Value, number: int, kinds: Sequence[ir.Type]) -> stablehlo.CaseOp:
    """Write a case of two empty branches: the first one where the index is the number."""
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), number)
    wanted = stablehlo.constant(ir.DenseElementsAttr.get_splat(index.type, number))
    other = stablehlo.compare(index, wanted, stablehlo.ComparisonDirectionAttr.get("NE"))
    return stablehlo.CaseOp(kinds, stablehlo.convert(index.type, other), 2)


def _check_depth(module: ir.Module) -> None:
    """Refuse regions that nest deeply: libspu's compiler recurses over them."""
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


def _ops(module: ir.Module, name: str) -> list[ir.Operation]:
    return [op for op in walk(module.operation) if op.name == name]
