"""Tokens: what a matcher gets in place of keys, under a key that the two engines agree on."""

from __future__ import annotations

import hashlib
import os
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from mplang_core.ext import Communicator, RunError
from mplang_match.lines import SIZE, TEXT, check_text
from mplang_match.ops import DUMMIES

Array = np.ndarray[Any, Any]

_SECRET = 32
_HEX = np.frombuffer(b"".join(b"%02x" % i for i in range(256)), np.uint16)


def agree_secret(comm: Communicator, peer: int, key: str) -> bytes:
    """Agree on a secret with another party's engine, over the link between the two.

    It is X25519 (RFC 7748) and HKDF (RFC 5869) with SHA-256, bound to the run by the key of the
    message. Nobody who reads the messages has the secret.

    Args:
        comm: communicator of this engine.
        peer: rank of the other party.
        key: key of the message, which names the run and the op.

    Returns:
        32 bytes, the same at both.

    Raises:
        RunError: the other one sends no public key.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    mine = X25519PrivateKey.generate()
    public = mine.public_key().public_bytes_raw()
    comm.send(peer, f"{key}|agree", public)
    theirs = comm.recv(peer, f"{key}|agree")
    try:
        if not isinstance(theirs, bytes | bytearray | memoryview):
            raise TypeError(f"expected bytes, got a {type(theirs).__name__}")
        shared = mine.exchange(X25519PublicKey.from_public_bytes(bytes(theirs)))
    except (TypeError, ValueError) as error:
        raise RunError(f"party {peer} sent no public key to match by", code="L005") from error
    ends = sorted([public, bytes(theirs)])
    info = b"mplang match\0" + key.encode() + b"\0" + b"".join(ends)
    return HKDF(SHA256(), _SECRET, None, info).derive(shared)


class Tokens(NamedTuple):
    """Tokens of a party's keys.

    Attributes:
        values: the tokens in ascending order, each of 16 bytes, with those that stand for no key.
        of_rows: for each row the position of its token; -1 for a row without a key.
        keys: how many keys there are.
    """

    values: Array
    of_rows: Array
    keys: int

    def text(self) -> memoryview:
        """Return the tokens as lines of text, in hexadecimal."""
        lines = np.empty((len(self.values), TEXT), np.uint8)
        lines[:, :-1] = _HEX[_bytes_of(self.values)].view(np.uint8)
        lines[:, -1] = ord("\n")
        return lines.reshape(-1).data

    def positions(self, common: Array) -> Array:
        """Return the positions of tokens among these.

        Args:
            common: tokens in ascending order.

        Raises:
            RunError: one is none of these, or there twice.
        """
        places = np.searchsorted(self.values, common)
        known = places < len(self.values)
        is_subset = known.all() and np.array_equal(self.values[places], common)
        if not is_subset or (np.diff(places) <= 0).any():
            raise RunError(
                "what was found in common is not among the tokens of this party", code="L005"
            )
        return places


def make_tokens(keys: pa.Array, secret: bytes, size: int | None) -> Tokens:
    """Return the tokens of keys: BLAKE2b (RFC 7693), keyed by the secret.

    Random ones are added, at least one, which are in common with nobody: what a matcher tells of
    the whole set tells nothing then.

    Args:
        keys: the key of each row, null if it has none.
        secret: the secret of both parties.
        size: how many keys there are at most, which the number of tokens tells in place of how many
            there are; ``None`` if it may tell that.

    Raises:
        RunError: there are more keys.
    """
    made = _hashed(keys.drop_null(), secret)
    different, of_keys = np.unique(made, return_inverse=True)
    if size is not None and len(different) > size:
        raise RunError(
            f"there are more different keys than {size}: declare the maximum by rows= of mp.match, "
            "or by rows: of the data set",
            code="R009",
        )
    count = DUMMIES if size is None else size + DUMMIES - len(different)
    values = np.concatenate([different, np.frombuffer(os.urandom(SIZE * count), f"S{SIZE}")])
    order = np.argsort(values)
    places = np.empty(len(values), np.int64)
    places[order] = np.arange(len(values))
    of_rows = np.full(len(keys), -1, np.int64)
    of_rows[np.asarray(keys.is_valid())] = places[of_keys.reshape(-1)]
    return Tokens(values[order], of_rows, len(different))


def read_text(text: memoryview) -> Array:
    """Return tokens of lines of text, in ascending order.

    Raises:
        RunError: they are not such lines.
    """
    if not len(text):
        return np.empty(0, f"S{SIZE}")
    check_text(text)
    lines = np.frombuffer(text, np.uint8).reshape(-1, TEXT)
    try:
        raw = bytes.fromhex(bytes(lines[:, :-1]).decode("ascii"))
    except ValueError:
        raise RunError("expected tokens in hexadecimal, got something else", code="L005") from None
    if len(raw) != len(lines) * SIZE:
        raise RunError("expected tokens in hexadecimal, got something else", code="L005")
    return np.sort(np.frombuffer(raw, f"S{SIZE}"))


def _hashed(keys: pa.Array, secret: bytes) -> Array:
    begun = hashlib.blake2b(key=secret, digest_size=SIZE)
    digests = []
    for key in keys.to_pylist():
        each = begun.copy()
        each.update(key)
        digests.append(each.digest())
    return np.frombuffer(b"".join(digests), f"S{SIZE}")


def _bytes_of(values: Array) -> Array:
    return np.ascontiguousarray(values).view(np.uint8).reshape(-1, SIZE)
