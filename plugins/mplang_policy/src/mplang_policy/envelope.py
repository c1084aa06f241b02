"""Envelopes of approvals: DSSE, signed by Ed25519 keys, of which a worker lists the public ones."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from securesystemslib import dsse
from securesystemslib.exceptions import Error as SigningError
from securesystemslib.signer import CryptoSigner, SSlibKey

from mplang_core.ext import ConfigError
from mplang_policy.approval import Approval

TYPE = "application/vnd.mplang.approval+json"
MAX_ENVELOPE = 16 << 20  # bytes


class Signed(NamedTuple):
    """An approval, and who has signed it.

    Attributes:
        approval: the approval.
        signers: the names of those who have, of the keys that a worker lists.
        keys: their public keys.
    """

    approval: Approval
    signers: tuple[str, ...]
    keys: tuple[Ed25519PublicKey, ...] = ()

    @property
    def id(self) -> str:
        """The name of the approval."""
        return self.approval.id


def sign(approval: Approval, key: Ed25519PrivateKey, others: bytes | None = None) -> bytes:
    """Return the envelope of an approval with a signature.

    Args:
        approval: the approval.
        key: a private key.
        others: an envelope of the same approval, whose signatures stay.

    Raises:
        ConfigError: the other envelope is damaged, or of another approval.
    """
    envelope = dsse.Envelope(approval.to_bytes(), TYPE, {})
    if others is not None:
        envelope = _envelope(others)
        if envelope.payload != approval.to_bytes():
            raise ConfigError("the envelope is of another approval", code="C011")
    envelope.sign(CryptoSigner(key))
    return json.dumps(envelope.to_dict(), indent=1).encode() + b"\n"


def open_envelope(data: bytes, keys: Mapping[str, Ed25519PublicKey]) -> Signed:
    """Return an approval, and whose signatures on it are right.

    Args:
        data: untrusted bytes.
        keys: the public keys that count, by the name of who has the private one.

    Raises:
        ConfigError: it is not an envelope of an approval.
    """
    envelope = _envelope(data)
    signers = _signers(envelope, keys)
    approval = Approval.from_bytes(envelope.payload)
    return Signed(approval, signers, tuple(keys[name] for name in signers))


def open_signed(data: bytes, keys: Mapping[str, Ed25519PublicKey], threshold: int) -> Signed | None:
    """Return an approval that a stranger passes on, which is read only if it is signed.

    Args:
        data: untrusted bytes.
        keys: the public keys that count, by the name of who has the private one.
        threshold: how many of them have to sign it.

    Returns:
        ``None`` if it has too few signatures.

    Raises:
        ConfigError: it is not an envelope of an approval.
    """
    envelope = _envelope(data)
    signers = _signers(envelope, keys)
    if len(signers) < threshold:
        return None
    approval = Approval.from_bytes(envelope.payload)
    return Signed(approval, signers, tuple(keys[name] for name in signers))


def _signers(envelope: dsse.Envelope, keys: Mapping[str, Ed25519PublicKey]) -> tuple[str, ...]:
    return tuple(sorted(name for name, key in keys.items() if _is_signed(envelope, key)))


def _is_signed(envelope: dsse.Envelope, key: Ed25519PublicKey) -> bool:
    try:
        envelope.verify([SSlibKey.from_crypto(key)], 1)
    except SigningError:
        return False
    return True


def _envelope(data: bytes) -> dsse.Envelope:
    if len(data) > MAX_ENVELOPE:
        raise ConfigError(f"an envelope has at most {MAX_ENVELOPE} bytes", code="C011")
    try:
        found: Any = json.loads(data)
        if set(found) != {"payload", "payloadType", "signatures"}:
            raise ValueError("it has other fields")
        envelope = dsse.Envelope.from_dict(found)
    except (SigningError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise ConfigError("no envelope of an approval (DSSE)", code="C011") from None
    if envelope.payload_type != TYPE:
        raise ConfigError(
            f"an envelope of {envelope.payload_type!r:.100}, not of {TYPE!r}", code="C011"
        )
    return envelope


# -- keys


def new_key(path: Path, password: str | None) -> None:
    """Write a new private key, and beside it the public one, with the suffix ``.pub``.

    Args:
        path: the file of the private key.
        password: what it is encrypted with; nothing if ``None``.

    Raises:
        ConfigError: one of the files is there already, or cannot be written.
    """
    key = Ed25519PrivateKey.generate()
    how = (
        serialization.BestAvailableEncryption(password.encode())
        if password
        else serialization.NoEncryption()
    )
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    try:
        with open(path, "xb", opener=_only_owner) as file:
            file.write(key.private_bytes(pem, pkcs8, how))
        with open(path.with_suffix(".pub"), "xb") as file:
            file.write(public)
    except OSError as error:
        raise ConfigError(f"cannot write {error.filename}: {error.strerror}", code="C005") from None


def _only_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def read_key(path: str, password: str | None = None) -> Ed25519PrivateKey:
    """Read a private key.

    Raises:
        ConfigError: it cannot be read, is not an Ed25519 key, or the password is wrong.
    """
    try:
        data = Path(path).read_bytes()
        found = serialization.load_pem_private_key(data, password.encode() if password else None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ConfigError(f"cannot read the key {path}: {error}", code="C011") from None
    if not isinstance(found, Ed25519PrivateKey):
        raise ConfigError(
            f"{path} is not an Ed25519 key; mplang approve --new-key makes one", code="C011"
        )
    return found


def read_public_keys(paths: Mapping[str, str]) -> dict[str, Ed25519PublicKey]:
    """Read public keys.

    Args:
        paths: PEM files, by the name of who has the private key.

    Raises:
        ConfigError: one cannot be read, is not an Ed25519 key, or two are the same.
    """
    keys: dict[str, Ed25519PublicKey] = {}
    for name, path in paths.items():
        try:
            found = serialization.load_pem_public_key(Path(path).read_bytes())
        except (OSError, ValueError, UnsupportedAlgorithm) as error:
            raise ConfigError(
                f"cannot read the key of {name}, {path}: {error}", code="C011"
            ) from None
        if not isinstance(found, Ed25519PublicKey):
            raise ConfigError(f"{path}, the key of {name}, is not an Ed25519 key", code="C011")
        same = [other for other, key in keys.items() if key == found]
        if same:  # else one person's signature would count twice
            raise ConfigError(f"{name} and {same[0]} have the same key", code="C011")
        keys[name] = found
    return keys
