"""Encryption of stored files: chunks of AES-256-GCM, by the scheme STREAM.

Each file has a key of its own, derived by HKDF from the sink's key and a random salt. The nonce of
a chunk is its number and whether it is the last, so that chunks cannot be exchanged, repeated or
left out (Hoang, Reyhanitabar, Rogaway, Vizár: *Online authenticated-encryption and its
nonce-reuse misuse-resistance*, 2015). What a file is, is authenticated with each chunk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, Protocol

from mplang_data.stored.entry import StoreError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

CHUNK = 1 << 20  # bytes
TAG = 16  # bytes
SALT = 32  # bytes
MIN_KEY = 32  # bytes


class Reader(Protocol):
    """File-like object to read from."""

    def read(self, size: int, /) -> bytes:
        """Return as many bytes, or fewer at the end."""


def seal(key: bytes, about: bytes, plain: Reader, sealed: BinaryIO) -> None:
    """Encrypt a file.

    Args:
        key: the sink's key, at least 32 random bytes.
        about: what the file is.
        plain: the file, open for reading.
        sealed: open for writing.

    Example:
        >>> import io
        >>> sealed, opened = io.BytesIO(), io.BytesIO()
        >>> seal(bytes(32), b"model", io.BytesIO(b"secret"), sealed)
        >>> _ = sealed.seek(0)
        >>> unseal(bytes(32), b"model", sealed, opened)
        >>> opened.getvalue()
        b'secret'
    """
    salt = os.urandom(SALT)
    cipher = _cipher(key, salt)
    sealed.write(salt)
    for nonce, chunk in _chunks(plain, CHUNK):
        sealed.write(cipher.encrypt(nonce, chunk, about))


def unseal(key: bytes, about: bytes, sealed: Reader, plain: BinaryIO) -> None:
    """Decrypt a file.

    Args:
        key: the sink's key.
        about: what the file has to be.
        sealed: the file, open for reading.
        plain: open for writing.

    Raises:
        StoreError: it is damaged, another one, or was encrypted with another key.
    """
    from cryptography.exceptions import InvalidTag

    salt = sealed.read(SALT)
    cipher = _cipher(key, salt)
    try:
        for nonce, chunk in _chunks(sealed, CHUNK + TAG):
            plain.write(cipher.decrypt(nonce, chunk, about))
    except InvalidTag:
        raise StoreError("the stored value is damaged, or the sink has another key now") from None


def _cipher(key: bytes, salt: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return AESGCM(HKDF(SHA256(), 32, salt, b"mplang sink: one file").derive(key))


def _chunks(file: Reader, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the nonce and the data of each chunk; there is at least one."""
    number, chunk = 0, file.read(size)
    while True:
        following = file.read(size)
        yield number.to_bytes(11, "big") + bytes([not following]), chunk
        if not following:
            return
        number, chunk = number + 1, following
