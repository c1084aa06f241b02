"""Op that counts the objects of its engine, for workers that import this module."""

from __future__ import annotations

import gc

import numpy as np

import mplang_core as mp
from mplang_core import TensorType


@mp.simple_op("counting.objects")
def objects(x: TensorType) -> TensorType:
    """Return how many objects the garbage collector of the engine tracks."""
    return x


@mp.kernel("counting.objects")
def objects_kernel(ctx, x):
    """Count them, without those that nothing refers to."""
    gc.collect()
    return np.int64(len(gc.get_objects()))
