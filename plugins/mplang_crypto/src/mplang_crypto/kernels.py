"""Kernels of the dialect ``crypto``. Error messages are public, and contain no values."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from mplang_core import BaseType, TensorType
from mplang_core.ext import KernelContext, KernelError, WireError, decode, encode
from mplang_crypto import primitives
from mplang_crypto.padding import read_content, write_content
from mplang_crypto.types import (
    KEY_BYTES,
    NONCE_BYTES,
    Ciphertext,
    CiphertextType,
    PrivateKey,
    PublicKey,
    SymmetricKey,
)

Array = np.ndarray[Any, Any]

PURPOSE = b"mplang crypto.agree 1"


def keygen(ctx: KernelContext) -> SymmetricKey:
    """Generate an AES-256 key."""
    return SymmetricKey(primitives.random_bytes(KEY_BYTES))


def keypair(ctx: KernelContext) -> tuple[PrivateKey, PublicKey]:
    """Generate an X25519 key pair."""
    private, public = primitives.x25519_keypair()
    return PrivateKey(private), PublicKey(public)


def agree(ctx: KernelContext, private: PrivateKey, public: PublicKey, *, info: str) -> SymmetricKey:
    """Derive a key from the shared secret, both public keys and the info.

    Args:
        ctx: of the op.
        private: this party's private key.
        public: the other party's public key.
        info: the purpose of the key.

    Returns:
        An AES-256 key.

    Raises:
        KernelError: the public key is a point of low order.
    """
    try:
        shared = primitives.x25519(private.secret, public.raw)
    except ValueError as error:
        raise KernelError(
            "the other's public key is a point of low order; refused", code="R012"
        ) from error
    own = primitives.x25519_public(private.secret)
    context = [PURPOSE, *sorted([own, public.raw]), info.encode()]  # only the last varies in length
    return SymmetricKey(primitives.hkdf(shared, b"".join(context)))


def encrypt(ctx: KernelContext, x: Any, key: SymmetricKey) -> Ciphertext:
    """Encrypt a value's header and buffers, authenticating its type as well.

    A table is padded before, so that the size of the ciphertext tells little of its rows.

    Args:
        ctx: of the op.
        x: the value.
        key: an AES-256 key.

    Returns:
        The ciphertext, with a fresh random nonce.

    Raises:
        KernelError: the value has 2 GiB or more.
    """
    (kind,) = ctx.step.checks
    assert isinstance(kind, CiphertextType)
    header, buffers = encode(kind.inner, x)
    nonce = primitives.random_bytes(NONCE_BYTES)
    try:
        plain = write_content(kind.inner, header, buffers)
        data = primitives.seal(key.secret, nonce, plain, _associated(kind))
    except (OverflowError, msgspec.EncodeError) as error:
        raise KernelError(
            "one value of 2 GiB or more cannot be encrypted; split it", code="R007"
        ) from error
    return Ciphertext(kind, nonce, data)


def decrypt(ctx: KernelContext, ct: Ciphertext, key: SymmetricKey) -> Any:
    """Decrypt a header and buffers, and decode the value.

    Args:
        ctx: of the op.
        ct: the ciphertext.
        key: the key that encrypted it.

    Returns:
        The value.

    Raises:
        KernelError: the ciphertext is not authentic, or its content is not of its type.
    """
    kind = ct.type
    try:
        plain = primitives.open_sealed(key.secret, ct.nonce, ct.data, _associated(kind))
    except ValueError as error:
        raise KernelError(
            "the ciphertext is not authentic: it was encrypted with another key, or changed since",
            code="R012",
        ) from error
    try:
        header, buffers = read_content(plain)
        return decode(kind.inner, header, buffers)
    except (msgspec.MsgspecError, WireError) as error:
        raise KernelError(f"what was encrypted is not of type {kind.inner}", code="R012") from error


def _associated(kind: BaseType) -> bytes:
    return str(kind).encode()


def hash(ctx: KernelContext, x: Array, *, algorithm: str) -> Array:
    """Hash a tensor's type and elements.

    Args:
        ctx: of the op.
        x: the tensor.
        algorithm: one of :data:`mplang_crypto.primitives.DIGEST_BYTES`.

    Returns:
        The digest, an array of bytes.
    """
    kind = TensorType.of(x)
    elements = np.ascontiguousarray(x, kind.dtype.numpy.newbyteorder("<"))
    found = primitives.digest(
        algorithm, [f"{kind}\n".encode(), elements.reshape(-1).view("u1").data]
    )
    return np.frombuffer(found, np.uint8)
