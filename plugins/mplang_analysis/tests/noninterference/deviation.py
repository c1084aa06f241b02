"""A party that does not follow the protocol: other values, requests to all, other tokens."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from mplang_crypto.types import Ciphertext, PublicKey
from mplang_spu.shares import SpuShare

from mplang_core.ext import CommError, Communicator

from .dealer import digest
from .lab import Deviate


def deviation(seed: int, world_size: int) -> Deviate:
    """Return what a party sends that deviates in about half of its messages.

    It asks all others in a shuffle by an index, sends a number plus noise, the opposite of a truth
    value, and of tokens of one type an earlier one. What it does depends on nothing but the seed
    and what it has sent, so that it is a function of what it saw.

    Args:
        seed: of the noise.
        world_size: the number of parties.
    """
    earlier: dict[Any, Any] = {}

    def deviate(comm: Communicator, to: int, key: str, data: Any) -> Any:
        position = key.partition("/")[2]
        everyone = digest(seed, position)[0] % 2  # the same to all, or another to each
        noise = digest(seed, position, None if everyone else to, size=2)
        if key.endswith("?"):
            return True
        for rank in range(world_size):  # asks whoever may answer, and more than once
            if rank != comm.rank:
                with contextlib.suppress(CommError):
                    comm.send(rank, f"{key}?", True)
        if noise[0] % 2:
            return data
        if isinstance(data, bool):  # a predicate: all see at once that they disagree
            return data if noise[1] % 8 else not data
        if isinstance(data, np.ndarray) and data.dtype == np.int64:
            return data + noise[1]
        if isinstance(data, SpuShare | Ciphertext | PublicKey):
            kind = getattr(data, "type", None)
            return earlier.setdefault(kind, data)
        return data

    return deviate
