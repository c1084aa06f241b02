"""Additively homomorphic encryption: sums and plain multiples of what a party cannot read.

A party makes a key pair, and encrypts numbers, or lets others encrypt them to it. Whoever has the
ciphertexts adds them and multiplies them by numbers of its own; the holder of the private key
decrypts what comes of it, and learns that and nothing else.

Example:
    >>> import numpy as np
    >>> import mplang_core as mp
    >>> from mplang_phe import decrypt, encrypt, keygen, matmul_plain
    >>> def program():
    ...     private, public = mp.device("P0")(keygen)(bits=2048)
    ...     x = mp.device("P0")(encrypt)(mp.put("P0", [3, -4]), public, limit=100)
    ...     there, w = mp.put("P1", public), mp.put("P1", np.array([[10], [1]]))
    ...     y = mp.device("P1")(matmul_plain)(mp.put("P1", x), w, there, limit=100)
    ...     return mp.device("P0")(decrypt)(mp.put("P0", y), private)
    >>> with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
    ...     mp.fetch(sim, mp.evaluate(sim, program)).tolist()
    [26]
"""

from mplang_phe.ops import (
    add,
    decrypt,
    encrypt,
    keygen,
    matmul_plain,
    multiply_plain,
    segment_sum,
    sub,
    sum,
)
from mplang_phe.types import PheCiphertextType, PhePrivateKeyType, PhePublicKeyType

__all__ = [
    "PheCiphertextType",
    "PhePrivateKeyType",
    "PhePublicKeyType",
    "add",
    "decrypt",
    "encrypt",
    "keygen",
    "matmul_plain",
    "multiply_plain",
    "segment_sum",
    "sub",
    "sum",
]


def __dir__() -> list[str]:
    """Return the names that are for users."""
    return sorted(__all__)
