"""An op whose native code harms its process, for workers that import this module."""

from __future__ import annotations

import mplang_core as mp
from mplang_core.ext import DamagedProcessError


@mp.simple_op("damaging.fail")
def fail(x: mp.TensorType) -> mp.TensorType:
    """Fails, and leaves its process in doubt."""
    return x


@mp.kernel("damaging.fail")
def _fail(ctx, x):
    raise DamagedProcessError("a compiler freed what is in use")
