"""Reconstruction of tensors from the shares of all members, for checks in a simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import spu.libspu as libspu

from mplang_core import TensorType
from mplang_spu import engine
from mplang_spu.reference_check.reference import Array

__all__ = ["reconstruct_tensor"]


def reconstruct_tensor(pieces: Sequence[Any], kind: TensorType, config: Mapping[str, Any]) -> Array:
    """Reconstruct a tensor from its shares.

    Args:
        pieces: the share of each member: libspu's ``meta`` and ``share_chunks``.
        kind: the type of the tensor.
        config: of the device.

    Returns:
        The tensor; floats as float64, since a fixed-point number may have more digits than its own
        type.
    """
    io = engine.io(len(pieces), config["protocol"], config["field"], config["fxp_fraction_bits"])
    is_float = kind.dtype.numpy.kind == "f"
    given = [
        engine.share(_as_float64(piece.meta) if is_float else piece.meta, piece.share_chunks)
        for piece in pieces
    ]
    found = np.asarray(io.reconstruct(given)).reshape(kind.shape)
    return found if is_float else found.astype(kind.dtype.numpy, copy=False)


def _as_float64(description: bytes) -> bytes:
    meta = libspu.ValueMeta()
    meta.ParseFromString(description)
    meta.data_type = libspu.DataType.DT_F64
    made: bytes = meta.SerializeToString()
    return made
