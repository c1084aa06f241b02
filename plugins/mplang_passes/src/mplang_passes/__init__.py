"""Optimization passes: programs from programs, smaller and with the same results.

A pass is a pure function of a program. It never changes its input, keeps every result, and
never makes a program longer.
"""

from collections.abc import Sequence

from mplang_core.ext import Pass
from mplang_passes.agree import Exact, clear_agreements
from mplang_passes.dce import eliminate_dead_code
from mplang_passes.effects import effects_of
from mplang_passes.fuse import fuse_pcalls
from mplang_passes.reads import bring_reads

PASSES: Sequence[Pass] = (bring_reads, clear_agreements, eliminate_dead_code, fuse_pcalls)
"""All passes of this package, in their order."""

__all__ = [
    "PASSES",
    "Exact",
    "bring_reads",
    "clear_agreements",
    "effects_of",
    "eliminate_dead_code",
    "fuse_pcalls",
]
