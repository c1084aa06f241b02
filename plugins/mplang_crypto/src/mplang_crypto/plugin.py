"""Plugin hooks of `mplang_crypto`. Imports no cryptographic library."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_core.ext import Check, Dialect, Feop, KernelSpec, hookimpl
from mplang_crypto import kernels, ops, types


@hookimpl
def mplang_feops() -> Sequence[Feop]:
    """Return the feops for keys, encryption and hashes."""
    return [ops.keygen, ops.keypair, ops.agree, ops.encrypt, ops.decrypt, ops.hash]


@hookimpl
def mplang_dialects() -> Sequence[Dialect]:
    """Return the dialect ``crypto``; types without a codec cannot leave their party."""
    return [
        Dialect(
            "crypto",
            types=[
                types.SymmetricKeyType,
                types.PrivateKeyType,
                types.PublicKeyType,
                types.CiphertextType,
            ],
            codecs={
                types.PublicKeyType.name: types.PUBLIC_KEY_CODEC,
                types.CiphertextType.name: types.CIPHERTEXT_CODEC,
            },
        )
    ]


@hookimpl
def mplang_kernels() -> Sequence[KernelSpec]:
    """Return the kernels of the dialect."""
    return [
        KernelSpec(["crypto.keygen"], kernels.keygen),
        KernelSpec(["crypto.keypair"], kernels.keypair),
        KernelSpec(["crypto.agree"], kernels.agree),
        KernelSpec(["crypto.encrypt"], kernels.encrypt),
        KernelSpec(["crypto.decrypt"], kernels.decrypt),
        KernelSpec(["crypto.hash"], kernels.hash),
    ]


@hookimpl
def mplang_doctor() -> Sequence[Check]:
    """Check that AES-256-GCM encrypts and decrypts."""
    from cryptography import __version__
    from cryptography.hazmat.backends.openssl.backend import backend

    from mplang_crypto import primitives

    key, nonce = primitives.random_bytes(32), primitives.random_bytes(12)
    plain = primitives.open_sealed(key, nonce, primitives.seal(key, nonce, b"x", b""), b"")
    detail = f"cryptography {__version__}, {backend.openssl_version_text()}"
    return [Check("AES-256-GCM works", plain == b"x", detail)]
