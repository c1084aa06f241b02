"""Admission of code to libspu's compiler. Imports JAX.

A failure of libspu's compiler is not a refusal. It translates op by op, and inserts casts of
secrets that its library for such translations does not know of; where it meets an op that it lacks,
that library undoes the translation, and frees what the casts still use. So the heap of the process
is broken, and the next compilation, or the end of a thread, aborts it. Nothing may reach the
compiler at which it fails: an op is listed here if the translation has a pattern for it, or if XLA,
which runs before, always expands it; a rule has the forms of an op at which patterns fail.

References:
    libspu 0.10.0.dev20251211: ``hlo_legalize_to_pphlo.cc`` (the patterns), ``hlo_importer.cc``
    (XLA's passes), ``visibility_inference.cc``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from mplang_stablehlo.ext import number_columns, target_of, walk

_TRANSLATED = """
abs add and atan2 bitcast_convert broadcast_in_dim case ceil clamp compare concatenate constant
convert convolution cosine divide dot_general dynamic_slice dynamic_update_slice exponential
exponential_minus_one floor gather iota is_finite log log_plus_one logistic maximum minimum
multiply negate not or pad popcnt power reduce reduce_window remainder reshape return reverse
round_nearest_afz round_nearest_even rsqrt select select_and_scatter shift_left
shift_right_arithmetic shift_right_logical sign sine slice sort sqrt subtract tanh transpose while
xor
"""
_EXPANDED = "scatter"  # by XLA's ScatterExpander, to a loop

OPS = frozenset(_TRANSLATED.split()) | {_EXPANDED}
"""StableHLO ops that libspu compiles, by name without the prefix."""

CALLS = frozenset({"mhlo.topk"})
"""Targets of custom calls that its runtime has, and that print or reveal nothing."""


REWRITTEN = frozenset({"cbrt", "count_leading_zeros", "if", "optimization_barrier", "tan"})
"""Ops that libspu lacks, and that the lowering replaces."""


def check(module: ir.Module) -> None:
    """Refuse a lowered module at which libspu's compiler would fail.

    Raises:
        ValueError: names the op.
    """
    for op in walk(module.operation):
        name = target_of(op) or op.name.removeprefix("stablehlo.")
        if name not in CALLS | OPS and op.name not in ("func.func", "func.return"):
            outer = op.parent.name.removeprefix("stablehlo.")
            raise ValueError(f"SPU cannot run {name} in the region of a {outer}; write it outside")
        if name in FORMS:
            FORMS[name](op)


def _convolution(op: ir.Operation) -> None:
    if ir.IntegerAttr(op.attributes["batch_group_count"]).value != 1:
        raise ValueError(
            "it has no groups of a batch, as gradients of convolutions with feature_group_count "
            "have; take a convolution per group"
        )


def _dynamic_slice(op: ir.Operation) -> None:
    if ir.RankedTensorType(op.operands[0].type).rank == 0:
        raise ValueError("a scalar has no slices; leave it out")


def _gather(op: ir.Operation) -> None:
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    last = ir.RankedTensorType(op.operands[1].type).rank - 1
    if numbers.operand_batching_dims and numbers.index_vector_dim < last:
        raise ValueError("in a batch, its indices stand in the last dimension only")


def _scatter(op: ir.Operation) -> None:
    *body, _ = op.regions[0].blocks[0].operations
    if len(body) > 1 or any(each.operation.regions for each in body):
        raise ValueError(
            "it combines two elements by one op, as .at[...].add, .max or .set do; write the "
            "rest before or after it"
        )


def _select_and_scatter(op: ir.Operation) -> None:
    if any(number < 0 for number in number_columns(op, "padding")):
        raise ValueError("it crops nothing; its padding is not negative")


FORMS: Mapping[str, Callable[[ir.Operation], None]] = {
    "convolution": _convolution,
    "dynamic_slice": _dynamic_slice,
    "gather": _gather,
    "scatter": _scatter,
    "select_and_scatter": _select_and_scatter,
}
"""Rules for forms of listed ops at which libspu fails; each raises ``ValueError``."""
