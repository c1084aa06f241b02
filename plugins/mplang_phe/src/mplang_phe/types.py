"""Types and values of keys and ciphertexts, and the codecs of those that may leave a party.

Numbers travel as bytes of a fixed width, the most significant one first; nothing of the library's
own formats comes from a peer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar, NoReturn, Self, cast

from mplang_core import BaseType, Form, TensorType
from mplang_core.ext import Codec, Encoded

KEY_BITS = (2048, 3072, 4096)
"""Bits of a modulus: 112, 128 and about 140 bits of security (SP 800-57, part 1, table 2)."""

MAX_SCALE = 512
"""Bits that a number has at most behind the binary point."""

MAX_ELEMENTS = 1 << 22
"""Ciphertexts of one value at most."""

# -- values


@dataclass(frozen=True, slots=True)
class PhePublicKey:
    """Public key of Paillier's scheme.

    Attributes:
        modulus: its modulus n, of ``bits / 8`` bytes.
        base: an n-th residue modulo n**2, of which random powers hide numbers.
    """

    modulus: bytes = field(repr=False)
    base: bytes = field(repr=False)

    @property
    def type(self) -> PhePublicKeyType:
        """The type of keys of its size."""
        return PhePublicKeyType(8 * len(self.modulus))


@dataclass(frozen=True, slots=True, eq=False)
class PhePrivateKey:
    """Private key of Paillier's scheme, with the public one.

    Attributes:
        secret: it, as the library of its party writes it.
        public: the public key.
    """

    secret: bytes = field(repr=False)
    public: PhePublicKey

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key stays with its party: it is neither pickled nor copied")


@dataclass(frozen=True, slots=True)
class Ciphertexts:
    """Encrypted numbers, one ciphertext each.

    Attributes:
        type: their type.
        data: the ciphertexts in row-major order, of ``bits / 4`` bytes each.
    """

    type: PheCiphertextType
    data: bytes = field(repr=False)


# -- types


class _KeyType(BaseType):
    """Type of keys of a size."""

    __slots__ = ()

    value: ClassVar[type]
    bits: int

    def __post_init__(self) -> None:
        if self.bits not in KEY_BITS or type(self.bits) is not int:
            raise ValueError(f"a key has {', '.join(map(str, KEY_BITS))} bits, got {self.bits!r}")

    def params(self) -> tuple[Any, ...]:
        """Return the bits of the modulus."""
        return (self.bits,)

    @classmethod
    def from_params(cls, params: Sequence[Any]) -> Self:
        """Construct the type from the result of :meth:`params`."""
        if len(params) != 1:
            raise ValueError(f"{cls.name} has the bits of its modulus")
        return cls(*params)

    def mismatch(self, value: Any) -> str | None:
        """Compare the size of a key."""
        if not isinstance(value, self.value):
            return f"expected {self}, got {type(value).__name__}"
        public = value.public if isinstance(value, PhePrivateKey) else value
        assert isinstance(public, PhePublicKey)
        bits = 8 * len(public.modulus)
        return None if bits == self.bits else f"expected {self}, got a key of {bits} bits"


@dataclass(frozen=True, slots=True)
class PhePublicKeyType(_KeyType):
    """Type of public keys. Any party may have them.

    Attributes:
        bits: of the modulus.

    Example:
        >>> print(PhePublicKeyType(3072), PhePublicKeyType(3072).nbytes)
        phe.public_key<3072> 1152
    """

    name: ClassVar[str] = "phe.public_key"
    value: ClassVar[type] = PhePublicKey

    bits: int

    @property
    def nbytes(self) -> int:
        """Bytes that it takes on a link."""
        return 3 * self.bits // 8


def _store(value: PhePrivateKey) -> Encoded:
    return {}, [value.secret, value.public.modulus, value.public.base]


def _load(
    kind: BaseType, header: Mapping[str, Any], buffers: Sequence[bytes | memoryview]
) -> PhePrivateKey:
    secret, *public = _parts(header, buffers, 3)
    return PhePrivateKey(secret, checked_key(cast(PhePrivateKeyType, kind).bits, *public))


@dataclass(frozen=True, slots=True)
class PhePrivateKeyType(_KeyType):
    """Type of private keys. They cannot leave their party.

    Attributes:
        bits: of the modulus.
        storage_codec: how its party stores them, encrypted.
    """

    name: ClassVar[str] = "phe.private_key"
    form: ClassVar[Form] = Form.KEY
    value: ClassVar[type] = PhePrivateKey
    storage_codec: ClassVar[Codec] = Codec(_store, _load)

    bits: int


@dataclass(frozen=True, slots=True)
class PheCiphertextType(BaseType):
    """Type of encrypted numbers, which says how large these are at most.

    Attributes:
        inner: the type of what decrypting gives, ``i64`` or ``f64``.
        key: the bits of the key.
        bits: a number, times two to the power of ``scale``, is below two to the power of this.
        scale: bits behind the binary point; 0 of integers.

    Raises:
        ValueError: the key has no room for such numbers.

    Example:
        >>> print(PheCiphertextType(TensorType("i64", (3,)), 3072, 8, 0))
        phe.ciphertext<i64[3], 3072, 8, 0>
    """

    name: ClassVar[str] = "phe.ciphertext"
    form: ClassVar[Form] = Form.CIPHERTEXT

    inner: TensorType
    key: int
    bits: int
    scale: int

    def __post_init__(self) -> None:
        whole = all(type(each) is int for each in (self.key, self.bits, self.scale))
        if not isinstance(self.inner, TensorType) or not whole or self.key not in KEY_BITS:
            raise ValueError(f"a ciphertext is of numbers under a key of {KEY_BITS} bits")
        if self.inner.dtype.value != ("f64" if self.scale else "i64"):
            raise ValueError(f"a ciphertext is of i64, or of f64 in fixed point, got {self.inner}")
        if prod(self.inner.shape) > MAX_ELEMENTS:
            raise ValueError(f"a value has {MAX_ELEMENTS:,} ciphertexts at most")
        if not 0 <= self.scale <= MAX_SCALE:
            raise ValueError(
                f"numbers have {MAX_SCALE} bits at most behind the point, got {self.scale}"
            )
        if not 0 <= self.bits <= self.key - 2:
            raise ValueError(
                f"numbers of {self.bits} bits do not fit under a key of {self.key}; take smaller "
                "limits, or a larger key"
            )

    @property
    def width(self) -> int:
        """Bytes of one ciphertext."""
        return self.key // 4

    @property
    def nbytes(self) -> int:
        """Bytes that a value takes on a link."""
        return self.width * prod(self.inner.shape)

    def params(self) -> tuple[Any, ...]:
        """Return what stands between ``<`` and ``>``."""
        return (self.inner, self.key, self.bits, self.scale)

    @classmethod
    def from_params(cls, params: Sequence[Any]) -> PheCiphertextType:
        """Construct the type from the result of :meth:`params`."""
        if len(params) != 4:
            raise ValueError("a ciphertext has the type of what is encrypted, key, bits and scale")
        return cls(*params)

    def mismatch(self, value: Any) -> str | None:
        """Compare the type that a value was made with."""
        if isinstance(value, Ciphertexts):
            return None if value.type == self else f"expected {self}, got {value.type}"
        return f"expected {self}, got {type(value).__name__}"


# -- codecs


def _parts(
    header: Mapping[str, Any], buffers: Sequence[bytes | memoryview], count: int
) -> list[bytes]:
    if header:
        raise ValueError("its header is empty")
    if len(buffers) != count or not all(isinstance(b, bytes | memoryview) for b in buffers):
        raise ValueError(f"it has buffers of bytes, {count} of them")
    return [bytes(buffer) for buffer in buffers]


def checked_key(bits: int, modulus: bytes, base: bytes) -> PhePublicKey:
    """Return a public key of bytes, which may come from a peer.

    Raises:
        ValueError: it is none.
    """
    if (len(modulus), len(base)) != (bits // 8, bits // 4):
        raise ValueError(f"a key of {bits} bits has {bits // 8} and {bits // 4} bytes")
    n, h = (int.from_bytes(each, "big") for each in (modulus, base))
    if not n & 1 or n.bit_length() != bits:
        raise ValueError(f"a modulus is odd, and has {bits} bits")
    if not 1 < h < n * n - 1:
        raise ValueError("the base of a key is below the modulus squared, and neither 1 nor -1")
    return PhePublicKey(modulus, base)


def _encode_public_key(value: PhePublicKey) -> Encoded:
    return {}, [value.modulus, value.base]


def _decode_public_key(
    kind: BaseType, header: Mapping[str, Any], buffers: Sequence[bytes | memoryview]
) -> PhePublicKey:
    return checked_key(cast(PhePublicKeyType, kind).bits, *_parts(header, buffers, 2))


def _encode_ciphertexts(value: Ciphertexts) -> Encoded:
    return {}, [value.data]


def _decode_ciphertexts(
    kind: BaseType, header: Mapping[str, Any], buffers: Sequence[bytes | memoryview]
) -> Ciphertexts:
    kind = cast(PheCiphertextType, kind)
    (data,) = _parts(header, buffers, 1)
    if len(data) != kind.nbytes:
        raise ValueError(f"it has {kind.nbytes} bytes, not {len(data)}")
    return Ciphertexts(kind, data)


PUBLIC_KEY_CODEC = Codec(_encode_public_key, _decode_public_key)
CIPHERTEXT_CODEC = Codec(_encode_ciphertexts, _decode_ciphertexts)
