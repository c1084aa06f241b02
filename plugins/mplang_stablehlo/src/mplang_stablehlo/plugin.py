"""Plugin hooks of this package. Imports no JAX."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core.ext import Pass, hookimpl
from mplang_stablehlo.conditions import fold_conditions
from mplang_stablehlo.control_flow import convert_control_flow
from mplang_stablehlo.link import link_modules


@hookimpl
def mplang_passes() -> Sequence[Pass]:
    """Provide the passes."""
    return [convert_control_flow, fold_conditions, link_modules]
