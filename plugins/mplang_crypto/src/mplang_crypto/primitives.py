"""Cryptographic primitives on bytes. Imports ``cryptography`` when called."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable

DIGEST_BYTES = {"sha256": 32, "sha512": 64, "sha3_256": 32, "blake2b": 64}
"""Digest size in bytes by hash function."""


def random_bytes(size: int) -> bytes:
    """Return random bytes from the operating system's entropy."""
    return os.urandom(size)


def seal(key: bytes, nonce: bytes, plain: bytes, associated: bytes) -> bytes:
    """Encrypt by AES-GCM (SP 800-38D).

    Args:
        key: 16, 24 or 32 bytes.
        nonce: 12 bytes, never used twice with one key.
        plain: the plaintext.
        associated: associated data, authenticated but not encrypted.

    Returns:
        The ciphertext, followed by the 16-byte tag.

    Raises:
        OverflowError: the plaintext has 2 GiB or more.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key).encrypt(nonce, plain, associated)


def open_sealed(key: bytes, nonce: bytes, data: bytes, associated: bytes) -> bytes:
    """Decrypt and authenticate a result of :func:`seal`.

    Args:
        key: the key that encrypted it.
        nonce: its nonce.
        data: the ciphertext, followed by the tag.
        associated: its associated data.

    Returns:
        The plaintext.

    Raises:
        ValueError: the tag does not match.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(key).decrypt(nonce, data, associated)
    except InvalidTag:
        raise ValueError("the tag is wrong") from None


def x25519_keypair() -> tuple[bytes, bytes]:
    """Generate a private key and its public key (RFC 7748)."""
    private = random_bytes(32)
    return private, x25519_public(private)


def x25519_public(private: bytes) -> bytes:
    """Return the public key of a private key."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def x25519(private: bytes, public: bytes) -> bytes:
    """Return the shared secret (RFC 7748, section 6.1).

    Args:
        private: this party's private key, 32 bytes.
        public: the other party's public key, 32 bytes.

    Returns:
        32 bytes.

    Raises:
        ValueError: it is all zero, since the public key is a point of low order.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

    peer = X25519PublicKey.from_public_bytes(public)
    return X25519PrivateKey.from_private_bytes(private).exchange(peer)


def hkdf(secret: bytes, info: bytes, *, salt: bytes | None = None, length: int = 32) -> bytes:
    """Derive a key by HKDF-SHA256 (RFC 5869).

    Args:
        secret: the input keying material.
        info: the context of the key.
        salt: the salt; 32 zero bytes by default.
        length: of the key in bytes.

    Returns:
        The key.
    """
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), length, salt, info).derive(secret)


def digest(algorithm: str, parts: Iterable[bytes | memoryview]) -> bytes:
    """Hash the concatenation of byte strings.

    Args:
        algorithm: one of :data:`DIGEST_BYTES`.
        parts: the byte strings.

    Returns:
        The digest.
    """
    state = hashlib.new(algorithm)
    for part in parts:
        state.update(part)
    return state.digest()
