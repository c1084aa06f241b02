"""Changed ciphertexts, wrong keys and chosen points are refused."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from crypto_programs import ALICE, SEALED, Ctx, new_key, sealed_pair, send
from mplang_crypto import CiphertextType, kernels, primitives
from mplang_crypto.types import Ciphertext, PrivateKey, PublicKey

import mplang_core as mp
from mplang_core.errors import KernelError, PartyError
from mplang_core.types import TensorType


def flipped(data, at):
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


@pytest.mark.parametrize(
    "change",
    [
        lambda ct: replace(ct, data=flipped(ct.data, 0)),
        lambda ct: replace(ct, data=flipped(ct.data, -1)),
        lambda ct: replace(ct, data=ct.data[:-1]),
        lambda ct: replace(ct, data=ct.data + b"\0"),
        lambda ct: replace(ct, data=ct.data[-16:]),
        lambda ct: replace(ct, data=bytes(16)),
        lambda ct: replace(ct, nonce=flipped(ct.nonce, 3)),
        lambda ct: replace(ct, type=CiphertextType(TensorType("i32", (2,)))),
        lambda ct: replace(ct, type=CiphertextType(TensorType("f32", (1, 2)))),
        lambda ct: replace(ct, type=CiphertextType(ct.type)),
    ],
)
def test_a_changed_ciphertext_is_refused(change):
    key = new_key()
    ct = sealed_pair(key)
    np.testing.assert_array_equal(kernels.decrypt(None, ct, key), [1, 2])
    with pytest.raises(KernelError, match="the ciphertext is not authentic"):
        kernels.decrypt(None, change(ct), key)


def test_every_bit_counts():
    key = new_key()
    ct = sealed_pair(key)
    for i in range(len(ct.data) * 8):
        data = bytearray(ct.data)
        data[i // 8] ^= 1 << i % 8
        with pytest.raises(KernelError):
            kernels.decrypt(None, replace(ct, data=bytes(data)), key)


def test_another_key_is_refused_and_the_error_tells_nothing_secret(sim, mode):
    with pytest.raises(PartyError, match="crypto.decrypt .*the ciphertext is not authent") as error:
        mp.evaluate(sim, lambda: send([1, 2], info1="another purpose"), mode=mode)
    assert error.value.rank == 1
    assert "InvalidTag" not in str(error.value)


@pytest.mark.parametrize(
    "plain",
    [
        b"",
        b"\xc1",
        msgspec.msgpack.encode([1, 2, 3]),
        msgspec.msgpack.encode([{}, []]),
        msgspec.msgpack.encode([{"dtype": "f32", "shape": [2]}, ["12345678"]]),
        msgspec.msgpack.encode([{"dtype": "f32", "shape": [3]}, [bytes(12)]]),
        msgspec.msgpack.encode([{"dtype": "f32", "shape": [2]}, [bytes(8)]]) + b"\0",
        msgspec.msgpack.encode([{"dtype": "f32", "shape": [2]}, [bytes(9)]]),
    ],
)
def test_one_who_has_the_key_cannot_pass_off_another_value(plain):
    key, nonce = new_key(), bytes(12)
    data = primitives.seal(key.secret, nonce, plain, str(SEALED).encode())
    with pytest.raises(KernelError, match=r"(?m)^what was encrypted is not of type f32\[2\]$"):
        kernels.decrypt(None, Ciphertext(SEALED, nonce, data), key)


LOW_ORDER = [
    bytes(32),
    b"\1" + bytes(31),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
    bytes.fromhex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
    bytes.fromhex("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
    bytes.fromhex("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
]


@pytest.mark.parametrize("point", LOW_ORDER, ids=lambda point: point.hex()[:4])
def test_points_of_low_order_are_refused(point):
    with pytest.raises(KernelError, match="low order"):
        kernels.agree(None, PrivateKey(ALICE), PublicKey(point), info="")


def test_a_value_that_is_too_large_is_refused():
    x = np.zeros(1 << 32, np.uint8)  # pages that nobody touches
    with pytest.raises(KernelError, match="split it"):
        kernels.encrypt(Ctx(CiphertextType(TensorType.of(x))), x, new_key())
