"""Lowering of StableHLO for libspu.

A module is admitted, inlined, and rewritten by named passes; the docstring of each says what libspu
would do without it. All passes know protocol and field. Imports JAX, whose MLIR bindings parse and
rewrite the module; libspu reads the lowered text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from jaxlib.mlir import ir
from mplang_stablehlo.ext import inline, text_of

from mplang_spu.lowering import (
    arithmetic,
    constants,
    functions,
    largest,
    libspu_ops,
    lookups,
    loops,
    near_constants,
    reciprocals,
    rounding,
    shifts,
    sorts,
    sums,
    ties,
    wraps,
)
from mplang_spu.lowering.admission import SPU
from mplang_spu.lowering.constants import BadConstant
from mplang_spu.lowering.rewriter import Rewriter
from mplang_spu.lowering.splats import drop_unused, fold_splats
from mplang_spu.lowering.structure import (
    check_depth,
    check_field,
    erase_barriers,
    nest_cases,
    pad_operands,
    write_cases,
)
from mplang_spu.lowering.tables import erase_exact_values, fold_tables
from mplang_spu.target import Target

__all__ = ["PASSES", "SPU", "BadConstant", "Lowered", "Pass", "Target", "lower", "lower_module"]

Pass: TypeAlias = Callable[[Rewriter], None]
"""Rewrites a module in place."""

PASSES: Sequence[Pass] = (
    shifts.count_leading_zeros,
    shifts.bound_shifts,
    shifts.shift_signs,
    wraps.wrap_integers,
    ties.compare_floats,
    functions.find_logistic,
    reciprocals.divide_by_bounded,
    reciprocals.divide_by_spread,
    largest.pick_largest,
    sums.scan_in_steps,
    sums.clamp_starts,
    sums.sum_by_products,
    lookups.add_by_comparison,
    lookups.scatter_to_integers,
    lookups.take_by_comparison,
    sorts.sort_largest,
    sorts.sort_bools,
    sorts.sort_by_place,
    arithmetic.multiply_bools,
    rounding.round_floats,
    rounding.divide_integers,
    arithmetic.interpolate,
    arithmetic.divide_by_constants,
    arithmetic.divide_widely,
    functions.write_functions,
    functions.write_roots,
    arithmetic.multiply_by_small,
    shifts.shift_all_bits,
    loops.settle_states,
)
"""Passes in order: a later one may rewrite what an earlier one wrote."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """Lowered module for libspu.

    Attributes:
        text: StableHLO.
        operands: public scalars that ``main`` takes after its own operands.
        diagnostics: constants that the fixed point cannot represent.
        unreduced: the numbers of the results whose integers may be beyond their type.
    """

    text: str
    operands: tuple[np.ndarray[Any, Any], ...] = ()
    diagnostics: tuple[BadConstant, ...] = ()
    unreduced: frozenset[int] = frozenset()


def lower(
    text: str,
    target: Target,
    passes: Sequence[Pass] | None = None,
    unreduced: frozenset[int] = frozenset(),
) -> Lowered:
    """Lower StableHLO for libspu's compiler.

    Args:
        text: within the limits of :func:`mplang_stablehlo.read`.
        target: protocol, field and fixed point.
        passes: the passes to run; all of :data:`PASSES` by default.
        unreduced: the numbers of the operands whose integers may be beyond their type, as results
            of another module.

    Returns:
        The lowered module.

    Raises:
        ValueError: it is not valid StableHLO, or SPU cannot run it; names the op.

    Example:
        >>> lowered = lower('''module @main {
        ...   func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
        ...     %c = stablehlo.constant dense<4.0> : tensor<2xf32>
        ...     %0 = stablehlo.divide %arg0, %c : tensor<2xf32>
        ...     return %0 : tensor<2xf32>
        ...   }
        ... }''', Target("ABY3", "FM128", 40))
        >>> lowered.operands
        (array(0., dtype=float32), array(0.25, dtype=float32))
        >>> print(lowered.text)
        module @main {
          func.func public @main(%arg0: tensor<2xf32>, ...) -> tensor<2xf32> {
            %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : ...
            %1 = stablehlo.add %arg0, %0 : tensor<2xf32>
            %2 = stablehlo.broadcast_in_dim %arg2, dims = [] : ...
            %3 = stablehlo.multiply %1, %2 : tensor<2xf32>
            %4 = stablehlo.broadcast_in_dim %arg1, dims = [] : ...
            %5 = stablehlo.add %3, %4 : tensor<2xf32>
            return %5 : tensor<2xf32>
          }
        }
        <BLANKLINE>
    """
    return lower_module(text, target, passes, unreduced)[1]


def lower_module(
    text: str,
    target: Target,
    passes: Sequence[Pass] | None = None,
    unreduced: frozenset[int] = frozenset(),
) -> tuple[ir.Module, Lowered]:
    """Lower StableHLO, and return the module as well: its ops have the places of the text.

    Args:
        text: see :func:`lower`.
        target: see :func:`lower`.
        passes: see :func:`lower`.
        unreduced: see :func:`lower`.

    Raises:
        ValueError: it is not valid StableHLO, or SPU cannot run it; names the op.
    """
    module = SPU.admit(text)
    inline(module)
    rewriter = Rewriter(module, target, unreduced)
    erase_barriers(module)
    constants.index_ops(rewriter)
    fold_splats(rewriter)
    erase_exact_values(rewriter)  # untrusted code may bring such attributes
    fold_tables(rewriter)
    drop_unused(rewriter)
    diagnostics = constants.unrepresentable_constants(rewriter)
    diagnostics += near_constants.near_constants(rewriter)
    constants.erase_op_indices(rewriter)
    write_cases(module)
    nest_cases(module)
    pad_operands(module)
    check_depth(module)
    for rewrite in PASSES if passes is None else passes:
        rewrite(rewriter)
    erase_exact_values(rewriter)
    drop_unused(rewriter)
    check_field(module, target.field)
    libspu_ops.check(module)
    rewriter.update_signature()
    return module, Lowered(
        text_of(module), tuple(rewriter.operands), tuple(diagnostics), rewriter.unreduced_results
    )
