"""Calls in a traced function that are hints to an engine and change no value. Imports JAX."""

from __future__ import annotations

from mplang_stablehlo.ext import parse, target_of, walk

HINTS = ("spu.make_cached_var", "spu.drop_cached_var")
"""Those of :mod:`spu.experimental`: what is computed from an operand may be kept, or no more."""


def without_hints(text: str) -> str:
    """Return StableHLO in which each hint is its first operand.

    Args:
        text: with source lines, which stay.
    """
    if not any(hint in text for hint in HINTS):
        return text
    parsed = parse(text)
    for op in [op for op in walk(parsed.operation) if target_of(op) in HINTS]:
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()
    whole: str = parsed.operation.get_asm(enable_debug_info=True)
    return whole
