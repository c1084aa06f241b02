"""Programs from programs: what makes them smaller, and what cuts out one party's part.

A pass is a pure function of a program. It never changes its input, keeps every result, and
never makes a program longer. :data:`DEFAULT` lists those that :func:`run_passes` applies.
:func:`project` is no such pass: what it gives is another program, for one party.
"""

from mplang_core.ir.passes.cse import merge_duplicates
from mplang_core.ir.passes.dce import eliminate_dead_code
from mplang_core.ir.passes.effects import effects_of
from mplang_core.ir.passes.fold import fold_constants
from mplang_core.ir.passes.fuse import fuse_pcalls
from mplang_core.ir.passes.pipeline import DEFAULT, Pass, run_passes
from mplang_core.ir.passes.project import held, project

__all__ = [
    "DEFAULT",
    "Pass",
    "effects_of",
    "eliminate_dead_code",
    "fold_constants",
    "fuse_pcalls",
    "held",
    "merge_duplicates",
    "project",
    "run_passes",
]
