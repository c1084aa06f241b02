"""Types and values of keys and ciphertexts, and the codecs of those that may leave a party."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn, Self, cast

from mplang_core import BaseType, Form
from mplang_core.ext import Codec, Encoded

KEY_BYTES = 32  # of an AES-256 key, and of both X25519 keys
NONCE_BYTES = 12
TAG_BYTES = 16

# -- values


@dataclass(frozen=True, slots=True, eq=False)
class _Secret:
    secret: bytes = field(repr=False)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key stays with its party: it is neither pickled nor copied")


class SymmetricKey(_Secret):
    """AES-256 key."""

    __slots__ = ()


class PrivateKey(_Secret):
    """X25519 private key."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class PublicKey:
    """X25519 public key.

    Attributes:
        raw: its 32 bytes (RFC 7748, section 5).
    """

    raw: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Ciphertext:
    """Encrypted value.

    Attributes:
        type: the ciphertext type, which contains that of the value.
        nonce: 96 bits, never used twice with one key.
        data: the ciphertext, followed by its tag.
    """

    type: CiphertextType
    nonce: bytes = field(repr=False)
    data: bytes = field(repr=False)


# -- types


def _store_secret(value: _Secret) -> Encoded:
    return {}, [value.secret]


def _load_secret(cls: type[_Secret], header: object, buffers: Sequence[bytes | memoryview]) -> Any:
    (secret,) = map(bytes, buffers)
    if header or len(secret) != KEY_BYTES:
        raise ValueError(f"a key has {KEY_BYTES} bytes")
    return cls(secret)


class _SingletonType(BaseType):
    """Type without parameters, whose values are of one class."""

    __slots__ = ()

    value: ClassVar[type]

    def params(self) -> tuple[Any, ...]:
        """Return no parameters."""
        return ()

    @classmethod
    def from_params(cls, params: Sequence[Any]) -> Self:
        """Construct the type."""
        if params:
            raise ValueError(f"{cls.name} takes no parameters")
        return cls()

    def mismatch(self, value: Any) -> str | None:
        """Compare the class of a value."""
        if isinstance(value, self.value):
            return None
        return f"expected {self}, got {type(value).__name__}"


@dataclass(frozen=True, slots=True)
class SymmetricKeyType(_SingletonType):
    """Type of AES-256 keys. They cannot leave their party.

    Attributes:
        storage_codec: how its party stores them, encrypted.
    """

    name: ClassVar[str] = "crypto.symmetric_key"
    form: ClassVar[Form] = Form.KEY
    value: ClassVar[type] = SymmetricKey
    storage_codec: ClassVar[Codec] = Codec(
        _store_secret, lambda kind, *data: _load_secret(SymmetricKey, *data)
    )


@dataclass(frozen=True, slots=True)
class PrivateKeyType(_SingletonType):
    """Type of X25519 private keys. They cannot leave their party.

    Attributes:
        storage_codec: how its party stores them, encrypted.
    """

    name: ClassVar[str] = "crypto.private_key"
    form: ClassVar[Form] = Form.KEY
    value: ClassVar[type] = PrivateKey
    storage_codec: ClassVar[Codec] = Codec(
        _store_secret, lambda kind, *data: _load_secret(PrivateKey, *data)
    )


@dataclass(frozen=True, slots=True)
class PublicKeyType(_SingletonType):
    """Type of X25519 public keys. Any party may have them."""

    name: ClassVar[str] = "crypto.public_key"
    value: ClassVar[type] = PublicKey


@dataclass(frozen=True, slots=True)
class CiphertextType(BaseType):
    """Type of encrypted values.

    Attributes:
        inner: the type of the decrypted value, which must not be a key.

    Example:
        >>> from mplang_core import TensorType
        >>> print(CiphertextType(TensorType("f32", (3,))))
        crypto.ciphertext<f32[3]>
    """

    name: ClassVar[str] = "crypto.ciphertext"
    form: ClassVar[Form] = Form.CIPHERTEXT

    inner: BaseType

    def __post_init__(self) -> None:
        if self.inner.form is Form.KEY:
            raise TypeError(f"a key stays with its party, so {self.inner} is not encrypted")

    def params(self) -> tuple[Any, ...]:
        """Return the inner type."""
        return (self.inner,)

    @classmethod
    def from_params(cls, params: Sequence[Any]) -> CiphertextType:
        """Construct the type from the result of :meth:`params`."""
        if len(params) != 1 or not isinstance(params[0], BaseType):
            raise ValueError("a ciphertext has the type of what is encrypted")
        return cls(params[0])

    def mismatch(self, value: Any) -> str | None:
        """Compare the type that a value was made with."""
        if isinstance(value, Ciphertext):
            return None if value.type == self else f"expected {self}, got {value.type}"
        return f"expected {self}, got {type(value).__name__}"


# -- codecs


def _buffers(
    header: Mapping[str, Any], buffers: Sequence[bytes | memoryview], count: int
) -> list[bytes]:
    if header:
        raise ValueError("its header is empty")
    if len(buffers) != count or not all(isinstance(b, bytes | memoryview) for b in buffers):
        raise ValueError(f"it has buffers of bytes, {count} of them")
    return [bytes(buffer) for buffer in buffers]


def _encode_public_key(value: PublicKey) -> Encoded:
    return {}, [value.raw]


def _decode_public_key(
    kind: BaseType, header: Mapping[str, Any], buffers: Sequence[bytes | memoryview]
) -> PublicKey:
    (raw,) = _buffers(header, buffers, 1)
    if len(raw) != KEY_BYTES:
        raise ValueError(f"it has {KEY_BYTES} bytes, not {len(raw)}")
    return PublicKey(raw)


def _encode_ciphertext(value: Ciphertext) -> Encoded:
    return {}, [value.nonce, value.data]


def _decode_ciphertext(
    kind: BaseType, header: Mapping[str, Any], buffers: Sequence[bytes | memoryview]
) -> Ciphertext:
    nonce, data = _buffers(header, buffers, 2)
    if len(nonce) != NONCE_BYTES or len(data) < TAG_BYTES:
        raise ValueError(f"it has a nonce of {NONCE_BYTES} bytes and a tag of {TAG_BYTES}")
    return Ciphertext(cast(CiphertextType, kind), nonce, data)


PUBLIC_KEY_CODEC = Codec(_encode_public_key, _decode_public_key)
CIPHERTEXT_CODEC = Codec(_encode_ciphertext, _decode_ciphertext)
