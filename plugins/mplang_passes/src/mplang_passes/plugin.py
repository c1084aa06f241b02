"""Plugin hooks of this package."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core.ext import Pass, hookimpl
from mplang_passes import PASSES


@hookimpl
def mplang_passes() -> Sequence[Pass]:
    """Provide the passes."""
    return PASSES
