"""Arrays that all members of an SPU know, as libspu has them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mplang_core import Mask
from mplang_spu import engine

SMALL = 1 << 10  # bytes of a public array whose shares are kept for the next run


def digest_of(arrays: Sequence[np.ndarray[Any, Any]]) -> str:
    """Return the SHA-256 of arrays, of their types and elements, in hexadecimal."""
    found = hashlib.sha256()
    for each in arrays:
        found.update(f"{each.dtype.str}{each.shape}".encode())
        found.update(np.ascontiguousarray(each).data)
    return found.hexdigest()


def public_share(x: Any, parties: Mask, config: Mapping[str, Any], rank: int) -> Any:
    """Return a member's libspu share of an array that all members know.

    Args:
        x: the array.
        parties: the members.
        config: of the device.
        rank: the member.
    """
    setting = len(parties), config["protocol"], config["field"], config["fxp_fraction_bits"]
    array = np.asarray(x, order="C")
    if array.nbytes <= SMALL:
        shares = engine.public_shares(setting, array.dtype.str, array.shape, array.tobytes())
    else:
        shares = engine.io(*setting).make_shares(array, engine.visibility(False))
    return shares[parties.global_to_relative_rank(rank)]
