"""Functions of the dialect ``dp``, as rules of owners name them. Imports no engine."""

from __future__ import annotations

from mplang_analysis import Function, Words
from mplang_tables import is_number

WORDS = Words(
    [
        Function("count"),
        Function("sum", is_number),
        Function("mean", is_number),
        Function("histogram"),
    ]
)
"""The entry point ``dp`` of the group ``mplang.words``."""
