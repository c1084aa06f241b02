"""Labels of ops in NumPy's terms, for messages."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir
from mplang_stablehlo.ext import target_of

_WORDS = {
    "dot_general": "matmul",
    "exponential": "exp",
    "exponential_minus_one": "expm1",
    "log_plus_one": "log1p",
    "logistic": "sigmoid",
    "sine": "sin",
    "cosine": "cos",
    "remainder": "remainder (%)",
    "round_nearest_even": "round",
    "round_nearest_afz": "round",
    "select": "where",
    "while": "loop",
    "if": "cond",
    "case": "switch",
}
_REDUCERS = {"add": "sum", "maximum": "max", "minimum": "min", "multiply": "prod"}
_REDUCERS |= {"and": "all", "or": "any"}


def label_of(op: ir.Operation, inner: Sequence[ir.Operation]) -> str:
    """Return the label of an op in NumPy's terms.

    Args:
        op: an op of StableHLO.
        inner: the ops of its regions.

    Returns:
        A label such as ``sum`` or ``where``.
    """
    target = target_of(op)
    if target is not None:
        return target.removeprefix("mhlo.")
    name = op.name.removeprefix("stablehlo.")
    if name in ("reduce", "reduce_window"):
        if len(op.results) > 1:
            return "argmax or argmin"
        return _REDUCERS.get(str(inner[0].name).removeprefix("stablehlo."), str(name))
    return _WORDS.get(name, str(name))
