"""What tests of ``he`` share: a cluster, key pairs, and values encrypted under them."""

from __future__ import annotations

from functools import cache

import numpy as np
from mplang_he import compute
from mplang_he.circuit import fresh
from mplang_he.parameters import BFV_PRIMES, Parameters
from mplang_he.types import (
    EncryptedColumns,
    HePrivateKey,
    HePrivateKeyType,
    HePublicKey,
    HePublicKeyType,
    HeRelinKeyType,
    HeRotationKeyType,
)

import mplang_core as mp
from mplang_core import TensorType

SMALL = Parameters("bfv", 8192, BFV_PRIMES[8192], 24)
FLOATS = Parameters("ckks", 8192, (45, 40, 40, 45), 40)


def cluster(**config):
    """Return one of a clinic with the key, a vendor that computes, and a lab."""
    names = ("clinic", "vendor", "lab")
    devices = {name[0].upper(): {"kind": "PPU", "members": [name]} for name in names}
    h = {"kind": "HE", "members": ["clinic", "vendor"], "config": {"holder": 0, **config}}
    return mp.ClusterSpec.from_dict(
        {"nodes": [{"name": name} for name in names], "devices": {**devices, "H": h}}
    )


@cache
def keys(parameters):
    """Return a private key, its public one, and its relinearization keys."""
    made = compute.run("keygen", {"parameters": parameters.params()}, []).buffers
    return (
        HePrivateKey(HePrivateKeyType(parameters), made[0]),
        HePublicKey(HePublicKeyType(parameters), made[1]),
        HePublicKey(HeRelinKeyType(parameters), made[2]),
    )


@cache
def rotation(parameters, steps):
    """Return keys by which slots are rotated."""
    about = {"parameters": parameters.params(), "steps": steps}
    made = compute.run("rotation_keys", about, [keys(parameters)[0].data]).buffers
    return HePublicKey(HeRotationKeyType(parameters, steps), made[0])


def encrypted(parameters, x, low, high):
    """Return the ciphertexts of an array, whose rows are along the first axis."""
    kind = "<i8" if parameters.scheme == "bfv" else "<f8"
    plain = np.ascontiguousarray(np.moveaxis(x, 0, -1).astype(kind)).tobytes()
    about = {"parameters": parameters.params(), "rows": len(x)}
    made = compute.run("encrypt", about, [keys(parameters)[1].data, plain]).buffers
    return EncryptedColumns(fresh(TensorType.of(x), parameters, low, high), tuple(made))


def decrypted(value):
    """Return the numbers in ciphertexts."""
    kind = value.type
    about = {"parameters": kind.parameters.params(), "rows": kind.rows, "count": kind.count}
    secret = keys(kind.parameters)[0].data
    (data,) = compute.run("decrypt", about, [secret, *value.parts]).buffers
    numbers = np.frombuffer(data, "<i8" if kind.parameters.scheme == "bfv" else "<f8")
    return np.moveaxis(numbers.reshape(*kind.shape, kind.rows), -1, kind.axis)
