"""What the ops of ``crypto`` do at a party. Texts of errors are public: no value is in them."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from mplang_core.errors import KernelError, WireError
from mplang_core.runtime import KernelContext, decode, encode
from mplang_core.types import BaseType, TensorType
from mplang_crypto import primitives
from mplang_crypto.types import (
    KEY_BYTES,
    NONCE_BYTES,
    Ciphertext,
    CiphertextType,
    PrivateKey,
    PublicKey,
    SymmetricKey,
)

__all__ = ["agree", "decrypt", "encrypt", "hash", "keygen", "keypair"]

Array = np.ndarray[Any, Any]

PURPOSE = b"mplang crypto.agree 1"


def keygen(ctx: KernelContext) -> SymmetricKey:
    """Make a key of AES-256."""
    return SymmetricKey(primitives.random_bytes(KEY_BYTES))


def keypair(ctx: KernelContext) -> tuple[PrivateKey, PublicKey]:
    """Make a pair of keys of X25519."""
    private, public = primitives.x25519_keypair()
    return PrivateKey(private), PublicKey(public)


def agree(ctx: KernelContext, private: PrivateKey, public: PublicKey, *, info: str) -> SymmetricKey:
    """Derive a key of the shared secret, both public keys and the info."""
    try:
        shared = primitives.x25519(private.secret, public.raw)
    except ValueError as error:
        raise KernelError("the other's public key is a point of low order; refused") from error
    own = primitives.x25519_public(private.secret)
    context = [PURPOSE, *sorted([own, public.raw]), info.encode()]  # only the last varies in size
    return SymmetricKey(primitives.hkdf(shared, b"".join(context)))


def encrypt(ctx: KernelContext, x: Any, key: SymmetricKey) -> Ciphertext:
    """Encrypt a value's header and buffers; its type is authenticated as well."""
    (kind,) = ctx.step.checks
    assert isinstance(kind, CiphertextType)
    header, buffers = encode(kind.inner, x)
    nonce = primitives.random_bytes(NONCE_BYTES)
    try:
        plain = msgspec.msgpack.encode((header, buffers), order="deterministic")
        data = primitives.seal(key.secret, nonce, plain, _associated(kind))
    except (OverflowError, msgspec.EncodeError) as error:
        raise KernelError("one value of 2 GiB or more cannot be encrypted; split it") from error
    return Ciphertext(kind, nonce, data)


def decrypt(ctx: KernelContext, ct: Ciphertext, key: SymmetricKey) -> Any:
    """Decrypt a header and buffers, and read the value."""
    kind = ct.type
    try:
        plain = primitives.open_sealed(key.secret, ct.nonce, ct.data, _associated(kind))
    except ValueError as error:
        raise KernelError(
            "the ciphertext is not authentic: it was encrypted with another key, or changed since"
        ) from error
    try:
        header, buffers = msgspec.msgpack.decode(plain, type=tuple[dict[str, Any], list[bytes]])
        return decode(kind.inner, header, buffers)
    except (msgspec.MsgspecError, WireError) as error:
        raise KernelError(f"what was encrypted is no {kind.inner}") from error


def _associated(kind: BaseType) -> bytes:
    return str(kind).encode()


def hash(ctx: KernelContext, x: Array, *, algorithm: str) -> Array:
    """Hash a tensor's type and elements."""
    kind = TensorType.of(x)
    elements = np.ascontiguousarray(x, kind.dtype.numpy.newbyteorder("<"))
    found = primitives.digest(
        algorithm, [f"{kind}\n".encode(), elements.reshape(-1).view("u1").data]
    )
    return np.frombuffer(found, np.uint8)
