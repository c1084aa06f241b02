"""Standard primitives on bytes. The only module that imports ``cryptography``, when called."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable

__all__ = [
    "DIGEST_BYTES",
    "digest",
    "hkdf",
    "open_sealed",
    "random_bytes",
    "seal",
    "x25519",
    "x25519_keypair",
    "x25519_public",
]

DIGEST_BYTES = {"sha256": 32, "sha512": 64, "sha3_256": 32, "blake2b": 64}
"""Hash functions, and how long their digests are."""


def random_bytes(size: int) -> bytes:
    """Return bytes from the operating system's entropy."""
    return os.urandom(size)


def seal(key: bytes, nonce: bytes, plain: bytes, associated: bytes) -> bytes:
    """Encrypt by AES-GCM (SP 800-38D); the tag stands behind the ciphertext.

    Raises:
        OverflowError: the plaintext has 2 GiB or more.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key).encrypt(nonce, plain, associated)


def open_sealed(key: bytes, nonce: bytes, data: bytes, associated: bytes) -> bytes:
    """Decrypt what :func:`seal` gave.

    Raises:
        ValueError: key, nonce, data and associated data do not belong together.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(key).decrypt(nonce, data, associated)
    except InvalidTag:
        raise ValueError("the tag is wrong") from None


def x25519_keypair() -> tuple[bytes, bytes]:
    """Return a new private key and its public key (RFC 7748)."""
    private = random_bytes(32)
    return private, x25519_public(private)


def x25519_public(private: bytes) -> bytes:
    """Return the public key of a private one."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def x25519(private: bytes, public: bytes) -> bytes:
    """Return the shared secret (RFC 7748, section 6.1).

    Raises:
        ValueError: it is all zero, since the public key is a point of low order.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

    peer = X25519PublicKey.from_public_bytes(public)
    return X25519PrivateKey.from_private_bytes(private).exchange(peer)


def hkdf(secret: bytes, info: bytes, *, salt: bytes | None = None, length: int = 32) -> bytes:
    """Derive a key by HKDF-SHA256 (RFC 5869)."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), length, salt, info).derive(secret)


def digest(algorithm: str, parts: Iterable[bytes | memoryview]) -> bytes:
    """Hash bytes that are given in parts by one of :data:`DIGEST_BYTES`."""
    state = hashlib.new(algorithm)
    for part in parts:
        state.update(part)
    return state.digest()
