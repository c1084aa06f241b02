"""What was encrypted comes back bit by bit; what was hashed is told apart."""

from __future__ import annotations

import hashlib

import ml_dtypes
import numpy as np
import pytest
from crypto_programs import DTYPES, Ctx, at, new_key, send
from mplang_crypto import (
    CiphertextType,
    decrypt,
    encrypt,
    hash as hash_op,
    kernels,
    keygen,
    keypair,
    primitives,
)

import mplang_core as mp
from mplang_core.types import TensorType

# -- what goes in comes out


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)])
@pytest.mark.parametrize("dtype", [*DTYPES, ml_dtypes.bfloat16], ids=str)
def test_every_tensor_comes_back(dtype, shape):
    numpy = dtype.numpy if isinstance(dtype, mp.DType) else dtype
    x = (np.random.default_rng(0).normal(size=shape) * 9).astype(numpy)
    kind = CiphertextType(TensorType.of(x))
    key = new_key()
    again = kernels.decrypt(None, kernels.encrypt(Ctx(kind), x, key), key)
    assert again.dtype == x.dtype
    assert again.shape == x.shape
    assert again.tobytes() == x.tobytes()


def test_a_value_reaches_the_other_party(sim, mode):
    nest = [
        np.ones(shape, dtype)
        for shape in [(), (0,), (2, 3)]
        for dtype in [*(d.numpy for d in DTYPES), ml_dtypes.bfloat16]
    ]
    results = mp.fetch(sim, mp.evaluate(sim, lambda *xs: [send(x) for x in xs], *nest, mode=mode))
    for x, found in zip(nest, results, strict=True):
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, x)


def test_strided_arrays_and_special_floats_come_back():
    key = new_key()
    x = np.array([[0.0, -0.0, np.nan], [np.inf, -np.inf, 1e-320]]).T
    kind = CiphertextType(TensorType.of(x))
    again = kernels.decrypt(None, kernels.encrypt(Ctx(kind), x, key), key)
    assert again.tobytes() == x.tobytes()


def test_public_keys_and_ciphertexts_can_be_encrypted(sim, mode):
    def program():
        key = at("P0", keygen)
        _, public = at("P0", keypair)
        twice = at("P0", encrypt, at("P0", encrypt, public, key), key)
        return public, at("P0", decrypt, at("P0", decrypt, twice, key), key)

    before, after = mp.fetch(sim, mp.evaluate(sim, program, mode=mode))
    assert before == after


def test_a_share_can_be_encrypted(sim):
    def program():
        share = mp.seal(np.float32([1, 2]))
        key = mp.invoke(keygen)
        sealed = mp.invoke(encrypt, share, key, rmask=share.pmask)
        return mp.invoke(decrypt, sealed, key), share

    after, before = mp.evaluate(sim, program)
    assert after.base_type == before.base_type
    assert after.value.values == before.value.values


# -- hashes


@pytest.mark.parametrize("algorithm", primitives.DIGEST_BYTES)
def test_the_digest_is_of_type_and_elements(sim, mode, algorithm):
    x = np.arange(6, dtype=np.int32).reshape(2, 3).T
    result = mp.evaluate(sim, lambda x: mp.invoke(hash_op, x, algorithm=algorithm), x, mode=mode)
    expected = hashlib.new(algorithm, b"i32[3, 2]\n" + np.ascontiguousarray(x).tobytes()).digest()
    assert result.base_type == TensorType("u8", (len(expected),))
    assert [bytes(found) for found in mp.fetch(sim, result)] == [expected, expected]


def test_other_types_shapes_and_data_have_other_digests():
    values = [
        np.zeros(shape, dtype)
        for shape in [(), (0,), (0, 1), (4,), (2, 2), (1, 4)]
        for dtype in [*(d.numpy for d in DTYPES), ml_dtypes.bfloat16]
    ]
    values += [np.array(-0.0), np.ones(4)]
    digests = {bytes(kernels.hash(None, x, algorithm="sha256")) for x in values}
    assert len(digests) == len(values)


def test_the_same_tensor_has_the_same_digest_however_it_lies_in_memory():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    digests = {
        bytes(kernels.hash(None, y, algorithm="sha256"))
        for y in (x, np.asfortranarray(x), x[::-1][::-1], x.astype(">f4"))
    }
    assert len(digests) == 1
