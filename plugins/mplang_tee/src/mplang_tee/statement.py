"""Statement of a session: what the quote of an enclave is over."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

VERSION = "mplang-tee statement 1"


class SessionStatement(NamedTuple):
    """Statement of an enclave, as owners expect it.

    Attributes:
        key: key of the op's messages, which begins with the name of the run. On workers that is
            the SHA-256 of the run, the program, the parties with the certificates of their
            workers, the inputs and the settings.
        owner: name of the party that asks.
        enclave: name of the party whose enclave answers.
        provider: of the quote.
        nonce: fresh random bytes of the owner's.
        asking: the owner's X25519 public key of this session.
        answering: the enclave's.
        files: SHA-256 of the configuration of the enclave's worker, and of what is installed there.
    """

    key: str
    owner: str
    enclave: str
    provider: str
    nonce: bytes
    asking: bytes
    answering: bytes
    files: bytes

    def digest(self) -> bytes:
        """Return the report data of the quote: SHA-512 over all fields with their lengths.

        Example:
            >>> like = SessionStatement("run/0", "bank", "shop", "tdx", b"n", b"a", b"b", b"f")
            >>> like.digest() == like._replace(nonce=b"na", asking=b"").digest()
            False
        """
        return length_prefixed([VERSION, *self])


def length_prefixed(fields: Iterable[str | bytes]) -> bytes:
    """Return the SHA-512 of fields, each after its length in 8 bytes."""
    state = hashlib.sha512()
    for each in fields:
        data = each.encode() if isinstance(each, str) else each
        state.update(len(data).to_bytes(8, "big"))
        state.update(data)
    return state.digest()
