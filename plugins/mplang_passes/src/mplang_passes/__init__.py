"""Optimization passes: programs from programs, smaller and with the same results.

A pass is a pure function of a program. It never changes its input, keeps every result, and
never makes a program longer.
"""

from mplang_passes.dce import eliminate_dead_code
from mplang_passes.effects import effects_of
from mplang_passes.fuse import fuse_pcalls

__all__ = ["effects_of", "eliminate_dead_code", "fuse_pcalls"]
