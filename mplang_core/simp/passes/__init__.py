"""Program passes: programs from programs, smaller and with the same results.

A pass is a pure function of a program. It never changes its input, keeps every result, and
never makes a program longer. :data:`DEFAULT` lists those that :func:`run_passes` applies.
"""

from mplang_core.simp.passes.dce import eliminate_dead_code
from mplang_core.simp.passes.effects import effects_of
from mplang_core.simp.passes.fuse import fuse_pcalls
from mplang_core.simp.passes.pipeline import DEFAULT, Pass, run_passes

__all__ = [
    "DEFAULT",
    "Pass",
    "effects_of",
    "eliminate_dead_code",
    "fuse_pcalls",
    "run_passes",
]
