"""Admission list of StableHLO on ciphertexts. Imports JAX."""

from __future__ import annotations

from mplang_stablehlo.ext import Admission

from mplang_he.interpreter import RULES

_ELEMENTS = "i1 i8 i16 i32 i64 ui8 ui16 ui32 ui64 f16 f32 f64"

ADVICE = "an SPU computes it on shares, or the key's holder in plain"

_COMPARISONS = "it has no comparisons: " + ADVICE
_FUNCTIONS = "it adds and multiplies, and has no such function: " + ADVICE

HE = Admission(
    "HE",
    frozenset(RULES) | {"return"},
    frozenset(_ELEMENTS.split()),
    {},
    advice={
        **dict.fromkeys(
            ("compare", "maximum", "minimum", "select", "sign", "abs", "clamp", "sort", "argmax"),
            _COMPARISONS,
        ),
        **dict.fromkeys(
            ("exponential", "log", "logistic", "tanh", "sqrt", "rsqrt", "power", "cosine", "sine"),
            _FUNCTIONS,
        ),
        "gather": "it has no gather: slice columns, or index at the party that has the index",
        "while": "it has no loops: write the steps out, in Python",
    },
    largest=1 << 28,
)
"""Ops that ciphertexts have."""
