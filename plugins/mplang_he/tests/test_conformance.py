"""Conformance of ``mplang_he`` with the kit for frontends and devices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from he_values import FLOATS, SMALL, cluster, decrypted, encrypted, keys, rotation
from hypothesis import strategies as st
from mplang_he import HeCiphertextType, HePrivateKeyType, HePublicKeyType, HeRelinKeyType
from mplang_he.parameters import BFV_PRIMES, Parameters, sum_steps
from mplang_he.types import EncryptedColumns, HePrivateKey, HePublicKey, HeRotationKeyType
from mplang_jax import jax_compile
from mplang_testing import (
    DeviceSuite,
    FeopSuite,
    KernelSuite,
    NativeCall,
    NativeSuite,
    Of,
    PluginSuite,
    Sample,
    TypeSuite,
)

from mplang_core import FeSignature, TensorType

WHOLE, REAL = np.array([[3, -4], [5, 0]]), np.array([[0.5, -1.0], [0.25, 0.0]])


def of(value):
    return Of(value.type, value)


def gives(right, error=0.0):
    """Return what tells whether ciphertexts are of some numbers."""
    return lambda x: np.abs(decrypted(x) - right).max() <= error


def code(fn, *types):
    return dict(jax_compile(fn, FeSignature(types)).pfunc.attrs)


def samples(parameters, x, ends, error):
    """Return the samples of a scheme."""
    name, sealed = parameters.scheme, of(encrypted(parameters, x, *ends))
    private, public, relin = map(of, keys(parameters))
    kind = TensorType.of(x)
    sums, circle = sum_steps(parameters), (1, 1 - len(x))
    square = {**code(lambda x: x * x, kind), "ranges": ()}
    dot = {**code(lambda x, w: (x @ w, x - w), kind, kind), "ranges": (ends,)}
    return (
        Sample(
            f"{name}.encrypt", x, public, attrs={"low": ends[0], "high": ends[1]}, random=True,
            expect=gives(x, error),
        ),
        Sample(f"{name}.decrypt", sealed, private, expect=lambda y: np.abs(y - x).max() <= error),
        Sample(
            f"{name}.run", sealed, public, relin, attrs=square, random=True,
            expect=gives(x * x, error), name=f"{name}.run-square",
        ),
        Sample(
            f"{name}.sum", sealed, of(rotation(parameters, sums)), public, random=True,
            expect=gives(x.sum(axis=0, keepdims=True), error),
        ),
        Sample(
            f"{name}.roll", sealed, of(rotation(parameters, circle)), public, attrs={"by": 1},
            random=True, expect=gives(x[::-1], error),
        ),
        Sample(
            f"{name}.run", sealed, x, public, relin, attrs=dot, random=True,
            expect=lambda y, z: gives(x @ x, error)(y) and gives(x - x, error)(z),
        ),
    )  # fmt: skip


BFV = samples(SMALL, WHOLE, (-5, 5), 0)
CKKS = samples(FLOATS, REAL, (-1.0, 1.0), 1e-5)
KEYGEN = Sample(
    "he.keygen", random=True,
    attrs={"scheme": "bfv", "degree": 4096, "primes": BFV_PRIMES[4096], "plain": 20},
)  # fmt: skip


MADE = (
    KEYGEN,
    Sample("he.rotation_keys", of(keys(SMALL)[0]), attrs={"steps": (1, -3, 0)}, random=True),
)


class TestFeops(FeopSuite):
    family = "he"
    samples = MADE


class TestBfvFeops(FeopSuite):
    family = "bfv"
    samples = BFV


class TestCkksFeops(FeopSuite):
    family = "ckks"
    samples = CKKS


class TestKernels(KernelSuite):
    family = "he"
    samples = MADE


class TestBfvKernels(KernelSuite):
    family = "bfv"
    samples = BFV


class TestCkksKernels(KernelSuite):
    family = "ckks"
    samples = CKKS


parameters = st.sampled_from(
    [
        SMALL, FLOATS, Parameters("bfv", 4096, BFV_PRIMES[4096], 20),
        Parameters("ckks", 16384, (60, 50, 50, 50, 60), 50),
    ]
)  # fmt: skip


class TestPublicKey(TypeSuite):
    kinds = parameters.map(HePublicKeyType)

    def values(self, kind):
        data = st.binary(min_size=1, max_size=kind.nbytes)
        return data.map(lambda data: HePublicKey(kind, data))


class TestRelinKey(TypeSuite):
    kinds = parameters.map(HeRelinKeyType)

    def values(self, kind):
        data = st.binary(min_size=1, max_size=kind.nbytes)
        return data.map(lambda data: HePublicKey(kind, data))


class TestRotationKey(TypeSuite):
    kinds = st.builds(HeRotationKeyType, parameters, st.sampled_from([(1,), (0, -3), (7, 8, 9)]))

    def values(self, kind):
        data = st.binary(min_size=1, max_size=99)
        return data.map(lambda data: HePublicKey(kind, data))


class TestPrivateKey(TypeSuite):
    kinds = parameters.map(HePrivateKeyType)

    def values(self, kind):
        return st.binary(min_size=1, max_size=40).map(lambda data: HePrivateKey(kind, data))


@st.composite
def ciphertext_types(draw):
    chosen = draw(parameters)
    shape = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    low, high = sorted(draw(st.lists(st.integers(-99, 99), min_size=2, max_size=2)))
    is_ckks = chosen.scheme == "ckks"
    made = HeCiphertextType(
        TensorType("f64" if is_ckks else "i64", shape), chosen,
        draw(st.integers(0, len(shape) - 1)), draw(st.integers(0, 2)), low, high, 0.0,
    )  # fmt: skip
    error = draw(st.floats(0, 1)) if is_ckks else 0.0
    return replace(made, error=error, high=high / 3) if is_ckks and high > 0 > low else made


class TestCiphertexts(TypeSuite):
    kinds = ciphertext_types()

    def values(self, kind):
        part = st.binary(min_size=1, max_size=40)
        parts = st.lists(part, min_size=kind.count, max_size=kind.count)
        return parts.map(lambda parts: EncryptedColumns(kind, tuple(parts)))


class TestDevice(DeviceSuite):
    kind = "HE"
    values = (np.array([[1.5, -2.0]]), np.array([7, -3]), np.array([[1.0], [0.5]], np.float32))
    tolerance = 1e-6

    def cluster(self):
        return cluster(limit=1000.0)


class TestNative(NativeSuite):
    family = "he"

    def calls(self, rank, run):
        about = {"parameters": list(SMALL.params()), "rows": 2}
        sealed = encrypted(SMALL, np.array([rank, 5]), 0, 9)
        return [
            NativeCall("encrypt", about, [keys(SMALL)[1].data, bytes(16)]),
            NativeCall("decrypt", {**about, "count": 1}, [keys(SMALL)[0].data, *sealed.parts]),
        ]


class TestPlugin(PluginSuite):
    distribution = "mplang-he"
    heavy = ("tenseal", "jax")
