"""A party that does not follow the protocol: other values, requests to all, keys of its own."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mplang_crypto.types import Ciphertext, PrivateKey, PublicKey
from mplang_spu.shares import SpuShare

from mplang_core.ext import CommError, Communicator

from .dealer import digest, public_of


@dataclass
class Deviation:
    """What a dishonest party does in place of sending and receiving.

    It deviates in about half of its messages: sends a number plus noise, the opposite of a truth
    value, the first token of the same type that it sent or got, a public key whose private one it
    has. It asks all others in a shuffle by an index, whether or not it holds one. What it does
    depends on nothing but the seed and what it saw.

    Args:
        rank: the party.
        seed: of the noise.
    """

    rank: int
    seed: int
    _earlier: dict[Any, Any] = field(default_factory=dict)

    @property
    def private(self) -> PrivateKey:
        """A key of its own."""
        return PrivateKey(digest("liar", self.seed))

    def sent(self, comm: Communicator, to: int, key: str, data: Any) -> Any:
        """Return what it sends in place of a value."""
        if key.endswith("?"):
            return True
        self.ask(comm, f"{key}?")
        position = key.partition("/")[2]
        alike = digest(self.seed, position)[0] % 2  # the same to all, or another to each
        noise = digest(self.seed, position, None if alike else to, size=2)
        if noise[0] % 2:
            return data
        if isinstance(data, bool):  # a predicate: all see at once that they disagree
            return data if noise[1] % 8 else not data
        if isinstance(data, np.ndarray) and data.dtype == np.int64:
            return data + noise[1]
        if isinstance(data, SpuShare | Ciphertext):
            return self._earlier.setdefault(data.type, data)
        if isinstance(data, PublicKey):
            return PublicKey(public_of(self.private.secret))
        return data

    def got(self, data: Any) -> None:
        """Note a value that it received."""
        if isinstance(data, SpuShare | Ciphertext):
            self._earlier.setdefault(data.type, data)

    def ask(self, comm: Communicator, key: str) -> None:
        """Ask all others for their values in a shuffle, though it may hold no index."""
        for rank in range(comm.world_size):
            if rank != comm.rank:
                with contextlib.suppress(CommError):
                    comm.send(rank, key, True)
