"""Cryptography frontend: keys, authenticated encryption, key agreement, hashes."""

from mplang_crypto.ops import agree, decrypt, encrypt, hash, keygen, keypair
from mplang_crypto.types import CiphertextType, PrivateKeyType, PublicKeyType, SymmetricKeyType

__all__ = [
    "CiphertextType",
    "PrivateKeyType",
    "PublicKeyType",
    "SymmetricKeyType",
    "agree",
    "decrypt",
    "encrypt",
    "hash",
    "keygen",
    "keypair",
]
