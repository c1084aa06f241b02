"""Sealing of values under the key of a session."""

from __future__ import annotations

from typing import Any

import msgspec
from mplang_crypto.ext import (
    hkdf,
    open_sealed,
    random_bytes,
    read_content,
    seal,
    write_content,
    x25519,
)

from mplang_core.ext import KernelContext, KernelError, WireError, decode, encode
from mplang_tee.types import NONCE_BYTES, SealedValue, SessionKey, TeeSealedType

PURPOSE = b"mplang-tee session 1"


def session_secret(private: bytes, public: bytes, statement: bytes) -> bytes:
    """Return the key of a session (X25519, RFC 7748; HKDF-SHA256, RFC 5869).

    Args:
        private: the own key of the session.
        public: the other's.
        statement: what the quote is over.

    Raises:
        KernelError: the other's key is a point of low order.
    """
    try:
        shared = x25519(private, public)
    except ValueError as error:
        raise KernelError(
            "the other's public key is a point of low order; refused", code="R012"
        ) from error
    return hkdf(shared, PURPOSE + statement)


def seal_value(
    ctx: KernelContext, kind: TeeSealedType, x: Any, key: SessionKey, slot: int
) -> SealedValue:
    """Encrypt a value by AES-256-GCM (SP 800-38D), padded where its type does not tell its size.

    Its type, which has the way, its slot, and the calls, branches and turns of loops around it are
    authenticated: nobody can put another value of the session in its place.

    Args:
        ctx: of the op.
        kind: the type of what is sealed.
        x: the value.
        key: of the session.
        slot: which value of the session it is.

    Raises:
        KernelError: it has 2 GiB or more.
    """
    header, buffers = encode(kind.inner, x)
    nonce = random_bytes(NONCE_BYTES)
    try:
        plain = write_content(kind.inner, header, buffers)
        data = seal(key.secret, nonce, plain, _associated(ctx, kind, slot))
    except (OverflowError, msgspec.EncodeError) as error:
        raise KernelError(
            "one value of 2 GiB or more cannot be sealed; split it", code="R007"
        ) from error
    return SealedValue(kind, nonce, data)


def open_value(ctx: KernelContext, sealed: SealedValue, key: SessionKey, slot: int) -> Any:
    """Decrypt a value, and return it in plain.

    Args:
        ctx: of the op.
        sealed: what :func:`seal_value` returned.
        key: of the session.
        slot: which value of the session it is.

    Raises:
        KernelError: it was sealed for another session or place, or changed since.
    """
    kind = sealed.type
    associated = _associated(ctx, kind, slot)
    try:
        header, buffers = read_content(
            open_sealed(key.secret, sealed.nonce, sealed.data, associated)
        )
        return decode(kind.inner, header, buffers)
    except (ValueError, msgspec.MsgspecError, WireError) as error:
        raise KernelError(
            "what was sealed is not authentic: it is of another session or another place of the "
            "program, or was changed since",
            code="R012",
        ) from error


def _associated(ctx: KernelContext, kind: TeeSealedType, slot: int) -> bytes:
    """Return what is authenticated with a value: both ends stand in bodies of the same graph.

    So the ops and turns around these bodies are those of both, and the positions of the bodies and
    within are not.
    """
    *around, _, _ = ctx.key.removeprefix(ctx.run).split("/")
    return f"{slot} {'/'.join(around)} {kind}".encode()
