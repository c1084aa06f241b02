"""Signed heads: the last entry of a log and the entries before, as a gate signs them for its peers.

Engines and coordinators carry a signed head, and cannot make one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from mplang_core.ext import ConfigError
from mplang_policy.ledger import Head, canonical

MAX_SIGNED = 64 << 10  # bytes of a signed head
MAX_SHOWN = 1024  # peers that are shown an entry
DIGITS = 64  # of a SHA-256 in hex
HEX = frozenset("0123456789abcdef")
SUFFIX = ".key"  # of the file beside the log


class HeadError(ValueError):
    """Signed head that is malformed, or that its gate has not signed."""


class Seal(NamedTuple):
    """Last entry of a log with the signature of its gate, as a line of text.

    Attributes:
        number: number of the entry.
        hash: its SHA-256, in hex.
        about: SHA-256 of what else is signed, in hex; empty if it was never signed.
        signature: the signature in hex; empty likewise.

    Example:
        >>> Seal.read("7:" + "a" * 64).head.number
        7
    """

    number: int
    hash: str
    about: str = ""
    signature: str = ""

    @property
    def head(self) -> Head:
        """The last entry."""
        return Head(self.number, self.hash)

    def to_text(self) -> str:
        """Return it as ``NUMBER:HASH:ABOUT:SIGNATURE``, or ``NUMBER:HASH`` without a signature."""
        return ":".join([str(self.number), *self[1:]]).rstrip(":")

    @classmethod
    def read(cls, text: str) -> Seal:
        """Return what a text says.

        Raises:
            HeadError: it is not a seal.
        """
        number, *rest = text.split(":")
        lengths = [len(each) for each in rest]
        plain = number.isascii() and number.isdecimal() and len(number) < 19
        if not plain or lengths not in ([DIGITS], [DIGITS, DIGITS, 2 * DIGITS]):
            raise HeadError("no head of a log")
        if not all(set(each) <= HEX for each in rest):
            raise HeadError("no head of a log")
        return cls(int(number), *rest)


class SignedHead(NamedTuple):
    """Signed head of a gate's log, sent to peers once a run is logged.

    Attributes:
        party: name of the party.
        run: the run, by a name that only its parties use.
        seal: the last entry, and the signature.
        before: the SHA-256 of the entries before it, in hex, the oldest first.
        shown: by the name of a peer the entry of this log that the peer remembers, as it is.
    """

    party: str
    run: str
    seal: Seal
    before: Sequence[str] = ()
    shown: Mapping[str, Head] = {}

    def encode(self) -> bytes:
        """Return it as bytes."""
        fields = [self.party, self.run, self.seal.to_text(), "".join(self.before), self.shown]
        return json.dumps(fields, separators=(",", ":")).encode()

    @classmethod
    def read(cls, data: bytes, key: str) -> SignedHead:
        """Return a head that a peer has signed.

        Args:
            data: untrusted bytes.
            key: public key of the peer's gate, in hex.

        Raises:
            HeadError: it is malformed, or not signed by that key.
        """
        if len(data) > MAX_SIGNED:
            raise HeadError(f"a signed head has at most {MAX_SIGNED} bytes")
        try:
            party, run, text, joined, shown = json.loads(data)
            heads = {str(peer): Head(int(number), str(at)) for peer, (number, at) in shown.items()}
            head = cls(str(party), str(run), Seal.read(text), _split(joined), heads)
        except (ArithmeticError, AttributeError, RecursionError, TypeError, ValueError) as error:
            raise HeadError(f"no signed head: {type(error).__name__}") from None
        if len(heads) > MAX_SHOWN or head.about() != head.seal.about:
            raise HeadError("its seal is of something else")
        if not verifies(key, head.seal):
            raise HeadError("its signature is not of the gate that the party's certificate names")
        return head

    def about(self) -> str:
        """Return the SHA-256 of all but the seal."""
        shown = {peer: list(head) for peer, head in self.shown.items()}
        text = canonical([self.party, self.run, "".join(self.before), shown])
        return hashlib.sha256(text.encode()).hexdigest()


def _split(joined: Any) -> list[str]:
    if not isinstance(joined, str) or len(joined) % DIGITS or not set(joined) <= HEX:
        raise ValueError("no hashes")
    return [joined[at : at + DIGITS] for at in range(0, len(joined), DIGITS)]


def verifies(key: str, seal: Seal) -> bool:
    """Return whether a public key in hex has signed a seal."""
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        public.verify(bytes.fromhex(seal.signature), _signed_text(seal))
    except (InvalidSignature, ValueError):
        return False
    return True


def _signed_text(seal: Seal) -> bytes:
    return f"mplang.head:{seal.number}:{seal.hash}:{seal.about}".encode()


class GateKey:
    """Signing key of a gate: made once, in a file beside its log that only its owner can read.

    Args:
        log: path of the log.

    Attributes:
        public: the public key, in hex.

    Raises:
        ConfigError: the file cannot be read or made, or holds no such key.
    """

    def __init__(self, log: str | Path) -> None:
        path = Path(f"{log}{SUFFIX}")
        try:
            if not path.exists():
                _make(path)
            self._key = serialization.load_pem_private_key(path.read_bytes(), None)
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise ConfigError(
                f"field 'gate.log': cannot use the key {path}: {error}", code="C013"
            ) from None
        if not isinstance(self._key, Ed25519PrivateKey):
            raise ConfigError(
                f"field 'gate.log': the key {path} is not an Ed25519 key", code="C013"
            )
        self.public = self._key.public_key().public_bytes_raw().hex()

    def sign(
        self, party: str, run: str, head: Head, before: Sequence[str], shown: Mapping[str, Head]
    ) -> SignedHead:
        """Return a signed head; see :class:`SignedHead`."""
        unsigned = SignedHead(party, run, Seal(*head), before, shown)
        seal = Seal(*head, unsigned.about())
        assert isinstance(self._key, Ed25519PrivateKey)
        signature = self._key.sign(_signed_text(seal)).hex()
        return unsigned._replace(seal=seal._replace(signature=signature))


def _make(path: Path) -> None:
    """Make a key, unless another process has: a file of that name is whole, or not there."""
    text = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        made = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(made, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(new, path)
    finally:
        new.unlink(missing_ok=True)
