"""Conformance of ``mplang_phe`` with the kit for frontends."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from mplang_phe import PheCiphertextType, PhePrivateKeyType, PhePublicKeyType
from mplang_phe.types import KEY_BITS, Ciphertexts, PhePrivateKey, PhePublicKey
from mplang_testing import (
    FeopSuite,
    KernelSuite,
    NativeCall,
    NativeSuite,
    Of,
    PluginSuite,
    Sample,
    TypeSuite,
)
from phe_keys import BITS, decrypted, encrypted, key_pair

from mplang_core import TensorType

PRIVATE, PUBLIC = key_pair()
KEY, SECRET = Of(PhePublicKeyType(BITS), PUBLIC), Of(PhePrivateKeyType(BITS), PRIVATE)


def sealed(numbers, **fields):
    made = encrypted(numbers, **fields)
    return Of(made.type, made)


def gives(numbers):
    """Return what tells whether ciphertexts are of some numbers."""
    right = np.asarray(numbers, object)
    return lambda x: (decrypted(x.data, right.shape) == right).all()


TWO, FOUR = sealed([3, -4]), sealed([[1, -2], [5, 0]])
SAMPLES = (
    Sample("phe.keygen", attrs={"bits": BITS}, random=True),
    Sample(
        "phe.encrypt", np.int8([3, -128]), KEY, attrs={"scale": 0}, random=True,
        expect=gives([3, -128]),
    ),
    Sample(
        "phe.encrypt", np.float32([1.5, -2]), KEY, attrs={"limit": 2.0, "scale": 4}, random=True,
        expect=gives([24, -32]), name="phe.encrypt-floats",
    ),
    Sample("phe.decrypt", TWO, SECRET, expect=lambda x: x.tolist() == [3, -4]),
    Sample(
        "phe.decrypt", sealed([24, -1], scale=4), SECRET, name="phe.decrypt-floats",
        expect=lambda x: x.tolist() == [1.5, -0.0625],
    ),
    Sample("phe.add", TWO, sealed([7, 4]), KEY, random=True, expect=gives([10, 0])),
    Sample("phe.sub", TWO, sealed([7, 4]), KEY, random=True, expect=gives([-4, -8])),
    Sample(
        "phe.multiply_plain", TWO, np.int64([0, -5]), KEY, attrs={"limit": 9, "scale": 0},
        random=True, expect=gives([0, 20]),
    ),
    Sample(
        "phe.matmul_plain", FOUR, np.int64([[1, 2, 0], [-1, 0, 3]]), KEY,
        attrs={"limit": 9, "scale": 0}, random=True, expect=gives([[3, 2, -6], [5, 10, 0]]),
    ),
    Sample("phe.sum", FOUR, KEY, random=True, expect=gives([6, -2])),
    Sample(
        "phe.segment_sum", FOUR, np.int32([2, 2]), KEY, attrs={"count": 3}, random=True,
        expect=gives([[0, 0], [0, 0], [6, -2]]),
    ),
)  # fmt: skip


class TestFeops(FeopSuite):
    family = "phe"
    samples = SAMPLES


class TestKernels(KernelSuite):
    family = "phe"
    samples = SAMPLES


class TestPublicKey(TypeSuite):
    kinds = st.just(PhePublicKeyType(BITS))

    def values(self, kind):
        return st.integers(2, 2**kind.bits).map(
            lambda h: PhePublicKey(PUBLIC.modulus, h.to_bytes(kind.bits // 4, "big"))
        )


class TestPrivateKey(TypeSuite):
    kinds = st.just(PhePrivateKeyType(BITS))

    def values(self, kind):
        return st.binary(min_size=1, max_size=40).map(lambda secret: PhePrivateKey(secret, PUBLIC))


@st.composite
def ciphertext_types(draw):
    scale = draw(st.integers(0, 40))
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    inner = TensorType("f64" if scale else "i64", shape)
    return PheCiphertextType(
        inner, draw(st.sampled_from(KEY_BITS)), draw(st.integers(0, 2046)), scale
    )


class TestCiphertexts(TypeSuite):
    kinds = ciphertext_types()

    def values(self, kind):
        data = st.binary(min_size=kind.nbytes, max_size=kind.nbytes)
        return data.map(lambda data: Ciphertexts(kind, data))


class TestNative(NativeSuite):
    family = "phe"

    def calls(self, rank, run):
        key = [PUBLIC.modulus, PUBLIC.base]
        return [
            NativeCall("encrypt", {}, [*key, bytes(16)]),
            NativeCall("add", {}, [*key, encrypted([rank]).data, encrypted([5]).data]),
        ]


class TestPlugin(PluginSuite):
    distribution = "mplang-phe"
    heavy = ("heu", "jax")
