"""Reconstruction of tensors from the shares of all members, for checks in a simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mplang_core import TensorType
from mplang_spu import conversion, engine
from mplang_spu.libspu import libspu
from mplang_spu.reference_check.reference import Array


def reconstruct_tensor(
    pieces: Sequence[Any], kind: TensorType, config: Mapping[str, Any], *, wide: bool = False
) -> Array:
    """Reconstruct a tensor from its shares.

    Args:
        pieces: the share of each member: libspu's ``meta`` and ``share_chunks``.
        kind: the type of the tensor.
        config: of the device.
        wide: whether to return integers as int64, which holds what their own type does not.

    Returns:
        The tensor; floats as float64, since a fixed-point number may have more digits than its own
        type.
    """
    io = engine.io(len(pieces), config["protocol"], config["field"], config["fxp_fraction_bits"])
    is_float = kind.dtype.numpy.kind == "f"
    read_as = libspu.DataType.DT_F64 if is_float else libspu.DataType.DT_I64 if wide else None
    given = [
        conversion.raw_share(_retyped(piece.meta, read_as), piece.share_chunks) for piece in pieces
    ]
    found = np.asarray(io.reconstruct(given)).reshape(kind.shape)
    return found if read_as is not None else found.astype(kind.dtype.numpy, copy=False)


def _retyped(description: bytes, read_as: Any) -> bytes:
    if read_as is None:
        return description
    meta = libspu.ValueMeta()
    meta.ParseFromString(description)
    meta.data_type = read_as
    made: bytes = meta.SerializeToString()
    return made
