"""Conformance of ``mplang_crypto`` with the kit for frontends."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from mplang_crypto import CiphertextType, PrivateKeyType, PublicKeyType, SymmetricKeyType, kernels
from mplang_crypto.types import Ciphertext, PrivateKey, PublicKey, SymmetricKey
from mplang_testing import (
    FeopSuite,
    KernelSuite,
    Of,
    PluginSuite,
    Sample,
    TypeSuite,
    strategies as kit,
)

import mplang_core as mp

X = np.float32([[1, 2, 3]])
PRIVATE, PUBLIC = kernels.keypair(None)
OTHER_PRIVATE, OTHER_PUBLIC = kernels.keypair(None)
KEY = kernels.agree(None, PRIVATE, OTHER_PUBLIC, info="kit")
KEY_OF_BOTH = Of(SymmetricKeyType(), KEY, kernels.agree(None, OTHER_PRIVATE, PUBLIC, info="kit"))


class Ctx:
    """Context of the kernel of ``encrypt``."""

    checks = (CiphertextType(mp.TensorType.of(X)),)
    step = property(lambda self: self)


SEALED = Of(Ctx.checks[0], kernels.encrypt(Ctx(), X, KEY))

SAMPLES = (
    Sample("crypto.keygen", random=True, expect=lambda key: len(key.secret) == 32),
    Sample("crypto.keypair", random=True, parties=2, expect=lambda sk, pk: pk[0] != pk[1]),
    Sample(
        "crypto.agree",
        Of(PrivateKeyType(), PRIVATE, OTHER_PRIVATE),
        Of(PublicKeyType(), OTHER_PUBLIC, PUBLIC),
        attrs={"info": "kit"},
        parties=2,
        expect=lambda keys: keys[0].secret == keys[1].secret == KEY.secret,
    ),
    Sample(
        "crypto.encrypt",
        X,
        KEY_OF_BOTH,
        parties=2,
        random=True,
        expect=lambda sealed: (kernels.decrypt(None, sealed[1], KEY) == X).all(),
    ),
    Sample("crypto.decrypt", SEALED, KEY_OF_BOTH, expect=lambda x: (x == X).all()),
    Sample("crypto.hash", X, expect=lambda digest: digest.shape == (32,)),
    Sample("crypto.hash", X, attrs={"algorithm": "sha512"}, name="crypto.hash-sha512"),
)


class TestFeops(FeopSuite):
    family = "crypto"
    samples = SAMPLES


class TestKernels(KernelSuite):
    family = "crypto"
    samples = SAMPLES


class TestSymmetricKey(TypeSuite):
    kinds = st.just(SymmetricKeyType())

    def values(self, kind):
        return st.binary(min_size=32, max_size=32).map(SymmetricKey)


class TestPrivateKey(TypeSuite):
    kinds = st.just(PrivateKeyType())

    def values(self, kind):
        return st.binary(min_size=32, max_size=32).map(PrivateKey)


class TestPublicKey(TypeSuite):
    kinds = st.just(PublicKeyType())

    def values(self, kind):
        return st.binary(min_size=32, max_size=32).map(PublicKey)


class TestCiphertext(TypeSuite):
    kinds = kit.base_types().map(CiphertextType) | st.just(CiphertextType(PublicKeyType()))

    def values(self, kind):
        nonce = st.binary(min_size=12, max_size=12)
        return st.builds(Ciphertext, st.just(kind), nonce, st.binary(min_size=16))


class TestPlugin(PluginSuite):
    distribution = "mplang-crypto"
    heavy = ("cryptography", "jax")
