"""What tests of ``phe`` share: one key pair, and numbers encrypted under it."""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np
from mplang_phe import compute
from mplang_phe.types import Ciphertexts, PheCiphertextType, PhePrivateKey, PhePublicKey

from mplang_core import TensorType

BITS = 2048


@cache
def key_pair():
    """Return a private key, and its public one."""
    secret, modulus, base = compute.run("keygen", {"bits": BITS}, [])
    public = PhePublicKey(modulus, base)
    return PhePrivateKey(secret, public), public


def encrypted(numbers, bits=40, scale=0):
    """Return ciphertexts of integers, or of fixed-point numbers that are times two to a scale."""
    numbers = np.asarray(numbers, np.int64)
    _, public = key_pair()
    plain = np.ascontiguousarray(numbers.astype("<i8")).tobytes()
    (data,) = compute.run("encrypt", {}, [public.modulus, public.base, plain])
    inner = TensorType("f64" if scale else "i64", numbers.shape)
    return Ciphertexts(PheCiphertextType(inner, BITS, bits, scale), data)


def decrypted(data, shape, size=64):
    """Return the integers in ciphertexts, as Python has them."""
    private, public = key_pair()
    buffers = [private.secret, public.modulus, public.base, data]
    (plain,) = compute.run("decrypt", {"size": size}, buffers)
    numbers = [
        int.from_bytes(plain[i : i + size], "big", signed=True)
        for i in range(0, size * prod(shape), size)
    ]
    return np.array(numbers, object).reshape(shape)
