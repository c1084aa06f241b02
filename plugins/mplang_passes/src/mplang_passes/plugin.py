"""Plugin hooks of this package."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core.ext import Pass, hookimpl
from mplang_passes.dce import eliminate_dead_code
from mplang_passes.fuse import fuse_pcalls


@hookimpl
def mplang_passes() -> Sequence[Pass]:
    """Provide the passes."""
    return [eliminate_dead_code, fuse_pcalls]
