"""Programs and kernels that the tests of cryptography share."""

from __future__ import annotations

import numpy as np
from mplang_crypto import (
    CiphertextType,
    agree,
    decrypt,
    encrypt,
    hash as hash_op,
    kernels,
    keygen,
    keypair,
)

import mplang_core as mp
from mplang_core.types import TensorType

OPS = [keygen, keypair, agree, encrypt, decrypt, hash_op]
DTYPES = [d for d in mp.DType if d is not mp.DType.BF16]
PAIR = TensorType("f32", (2,))
SEALED = CiphertextType(PAIR)


def at(party, op, *args, **attrs):
    return mp.device(party)(op)(*args, **attrs)


def agreed(info0="test", info1="test"):
    """Exchange public keys between two parties; return the key of each."""
    sk0, pk0 = at("P0", keypair)
    sk1, pk1 = at("P1", keypair)
    return (
        at("P0", agree, sk0, mp.put("P0", pk1), info=info0),
        at("P1", agree, sk1, mp.put("P1", pk0), info=info1),
    )


def send(x, **infos):
    k0, k1 = agreed(**infos)
    sealed = at("P0", encrypt, mp.put("P0", x), k0)
    return at("P1", decrypt, mp.put("P1", sealed), k1)


def trace(fn):
    return mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), fn)


class Ctx:
    """Context of the kernel of ``encrypt``."""

    def __init__(self, kind):
        self.step = self
        self.checks = (kind,)


def sealed_pair(key, x=(1, 2)):
    return kernels.encrypt(Ctx(SEALED), np.float32(x), key)


def new_key():
    return kernels.keygen(None)


ALICE = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
ALICE_PUBLIC = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
BOB = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
BOB_PUBLIC = bytes.fromhex("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f")
