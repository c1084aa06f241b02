"""An op that works for a while, for workers that import this module."""

from __future__ import annotations

from typing import Any

from mplang_testing.waiting import pause

import mplang_core as mp


@mp.simple_op("working.spend", reads=())
def spend(x: mp.TensorType, *, seconds: float) -> mp.TensorType:
    """Works for some seconds."""
    return x


@mp.kernel("working.spend")
def _spend(ctx: Any, x: Any, *, seconds: float) -> Any:
    pause(seconds, "it is work")
    return x
