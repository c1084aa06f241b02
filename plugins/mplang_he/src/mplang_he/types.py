"""Types and values of keys and ciphertexts, and the codecs of those that may leave a party."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn, Self, cast

from mplang_core import BaseType, Form, TensorType
from mplang_core.ext import Codec, Encoded
from mplang_he.parameters import Parameters

MAX_CIPHERTEXTS = 1 << 16
"""EncryptedColumns of one value at most."""

MAX_ROWS = 1 << 24

MAX_KEY = 1 << 29
"""Bytes of keys of rotations at most."""

MAX_STEPS = 32
"""Rotations that one key is for at most."""

FLOATS, INTEGERS = -1, -2
"""In place of an axis of rows: a plain operand, and of what."""

DIGITS = 3
"""Digits of ranges and errors in types, which are rounded outward."""

# -- values


@dataclass(frozen=True, slots=True)
class HePublicKey:
    """Public key, or keys by which products are relinearized, or slots rotated.

    Attributes:
        type: its type.
        data: it, as SEAL writes it.
    """

    type: HePublicKeyType | HeRelinKeyType | HeRotationKeyType
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class HePrivateKey:
    """Private key.

    Attributes:
        type: its type.
        data: it, as SEAL of its party writes it.
    """

    type: HePrivateKeyType
    data: bytes = field(repr=False)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key stays with its party: it is neither pickled nor copied")


@dataclass(frozen=True, slots=True)
class EncryptedColumns:
    """An encrypted tensor.

    Attributes:
        type: its type.
        parts: a ciphertext for each column and block of rows, as SEAL writes it.
    """

    type: HeCiphertextType
    parts: tuple[bytes, ...] = field(repr=False)

    @property
    def nbytes(self) -> int:
        """Its bytes."""
        return sum(map(len, self.parts))


# -- types


class _KeyType(BaseType):
    """Type of keys of parameters."""

    __slots__ = ()

    value: ClassVar[type[HePublicKey] | type[HePrivateKey]]
    parameters: Parameters

    def params(self) -> tuple[Any, ...]:
        """Return the parameters."""
        return self.parameters.params()

    @classmethod
    def from_params(cls, params: Sequence[Any]) -> Self:
        """Construct the type from the result of :meth:`params`."""
        return cls(Parameters.from_params(params))  # type: ignore[call-arg]  # of a dataclass

    def mismatch(self, value: Any) -> str | None:
        """Compare the type that a key was made with."""
        kind = value.type if isinstance(value, self.value) else type(value).__name__
        return None if kind == self else f"expected {self}, got {kind}"


@dataclass(frozen=True, slots=True)
class HePublicKeyType(_KeyType):
    """Type of public keys. Any party may have them.

    Attributes:
        parameters: of the scheme.

    Example:
        >>> print(HePublicKeyType(Parameters("bfv", 4096, (36, 36, 37), 20)))
        he.public_key<"bfv", 4096, [36, 36, 37], 20>
    """

    name: ClassVar[str] = "he.public_key"
    value: ClassVar[type[HePublicKey] | type[HePrivateKey]] = HePublicKey

    parameters: Parameters

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes on a link."""
        return _bytes(self.parameters.degree, self.parameters.primes)


@dataclass(frozen=True, slots=True)
class HeRelinKeyType(_KeyType):
    """Type of the keys by which products are relinearized. Any party may have them.

    Attributes:
        parameters: of the scheme.
    """

    name: ClassVar[str] = "he.relin_key"
    value: ClassVar[type[HePublicKey] | type[HePrivateKey]] = HePublicKey

    parameters: Parameters

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes on a link."""
        digits = len(self.parameters.primes) - 1
        return digits * _bytes(self.parameters.degree, self.parameters.primes)


@dataclass(frozen=True, slots=True)
class HeRotationKeyType(_KeyType):
    """Type of the keys by which slots are rotated. Any party may have them.

    Attributes:
        parameters: of the scheme.
        steps: by how many slots; 0 exchanges the halves of BFV.

    Raises:
        ValueError: there are no steps, or others than there are slots.
    """

    name: ClassVar[str] = "he.rotation_key"
    value: ClassVar[type[HePublicKey] | type[HePrivateKey]] = HePublicKey

    parameters: Parameters
    steps: tuple[int, ...]

    def __post_init__(self) -> None:
        half = self.parameters.degree // 2
        known = isinstance(self.steps, tuple) and 0 < len(self.steps) <= MAX_STEPS
        if not known or not all(type(step) is int and -half < step < half for step in self.steps):
            raise ValueError(
                f"rotations are 1 to {MAX_STEPS} numbers of slots below {half}, got {self.steps!r}"
            )
        if self.nbytes > MAX_KEY:
            raise ValueError(
                f"keys of {len(self.steps)} rotations at degree {self.parameters.degree} have "
                f"{self.nbytes >> 20} MB, of {MAX_KEY >> 20} at most: seal with fewer levels"
            )

    def params(self) -> tuple[Any, ...]:
        """Return the parameters and the steps."""
        return (*self.parameters.params(), self.steps)

    @classmethod
    def from_params(cls, params: Sequence[Any]) -> HeRotationKeyType:
        """Construct the type from the result of :meth:`params`."""
        if len(params) != 5:
            raise ValueError("keys of rotations have parameters and steps")
        return cls(Parameters.from_params(params[:4]), params[4])

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes on a link: for a sum 28 MB at degree 8,192, and more."""
        return len(self.steps) * HeRelinKeyType(self.parameters).nbytes


def _store(value: HePrivateKey) -> Encoded:
    return {}, [value.data]


def _load(
    kind: BaseType, header: Mapping[str, Any], buffers: Sequence[bytes | memoryview]
) -> HePrivateKey:
    (data,) = _parts(header, buffers, 1, _bytes(1 << 15, [60] * 16))
    return HePrivateKey(cast("HePrivateKeyType", kind), data)


@dataclass(frozen=True, slots=True)
class HePrivateKeyType(_KeyType):
    """Type of private keys. They cannot leave their party.

    Attributes:
        parameters: of the scheme.
        storage_codec: how its party stores them, encrypted.
    """

    name: ClassVar[str] = "he.private_key"
    form: ClassVar[Form] = Form.KEY
    value: ClassVar[type[HePublicKey] | type[HePrivateKey]] = HePrivateKey
    storage_codec: ClassVar[Codec] = Codec(_store, _load)

    parameters: Parameters


@dataclass(frozen=True, slots=True)
class HeCiphertextType(BaseType):
    """Type of encrypted tensors: what is in it, under which parameters, and how good it still is.

    Attributes:
        inner: the type of what decrypting gives.
        parameters: of the scheme.
        axis: the axis of rows, which are in the slots.
        left: of CKKS the products that it can still be part of, one after the other; of BFV the
            bits of noise budget that are left at least.
        low: no number is smaller.
        high: no number is larger.
        error: of CKKS how far off a number is at most; 0 of BFV.

    Raises:
        ValueError: it has no rows, or too many ciphertexts; or what is left is none.
    """

    name: ClassVar[str] = "he.ciphertext"
    form: ClassVar[Form] = Form.CIPHERTEXT

    inner: TensorType
    parameters: Parameters
    axis: int
    left: int
    low: float
    high: float
    error: float

    def __post_init__(self) -> None:
        if not isinstance(self.inner, TensorType) or not self.inner.shape:
            raise ValueError(f"a tensor with an axis of rows is encrypted, got {self.inner}")
        if type(self.axis) is not int or not 0 <= self.axis < len(self.inner.shape):
            raise ValueError(f"axis {self.axis} of rows is none of {self.inner}")
        if not 1 <= self.rows <= MAX_ROWS or not 1 <= self.count <= MAX_CIPHERTEXTS:
            raise ValueError(
                f"an encrypted tensor has 1 to {MAX_ROWS:,} rows, and 1 to {MAX_CIPHERTEXTS:,} "
                f"ciphertexts, got {self.inner}"
            )
        ends = (self.low, self.high, self.error)
        if not all(is_number(end) for end in ends):
            raise ValueError(f"its numbers have bounds, got {ends}")
        if self.low > self.high or self.error < 0:
            raise ValueError(f"a range is from low to high, got {self.low} and {self.high}")
        most = self.parameters.levels if self.parameters.scheme == "ckks" else 1000
        if type(self.left) is not int or not 0 <= self.left <= most:
            raise ValueError(f"it has 0 to {most} left, got {self.left}")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.inner.shape[self.axis]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape without the axis of rows: an element for each column."""
        return self.inner.shape[: self.axis] + self.inner.shape[self.axis + 1 :]

    @property
    def blocks(self) -> int:
        """EncryptedColumns of a column."""
        return -(-self.rows // self.parameters.slots)

    @property
    def count(self) -> int:
        """Number of ciphertexts."""
        return math.prod(self.shape) * self.blocks

    @property
    def primes(self) -> tuple[int, ...]:
        """Bits of the primes of its modulus."""
        primes = self.parameters.primes[:-1]
        return primes[: self.left + 1] if self.parameters.scheme == "ckks" else primes

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes on a link."""
        return self.count * _bytes(self.parameters.degree, self.primes)

    def params(self) -> tuple[Any, ...]:
        """Return what stands between ``<`` and ``>``."""
        ends = tuple(map(_text, (self.low, self.high, self.error)))
        return (self.inner, *self.parameters.params(), self.axis, self.left, *ends)

    @classmethod
    def from_params(cls, params: Sequence[Any]) -> HeCiphertextType:
        """Construct the type from the result of :meth:`params`."""
        if len(params) != 10:
            raise ValueError("a ciphertext has a tensor's type, parameters, axis, and bounds")
        inner, *rest = params
        low, high, error = map(_number, rest[6:])
        return cls(inner, Parameters.from_params(rest[:4]), rest[4], rest[5], low, high, error)

    def mismatch(self, value: Any) -> str | None:
        """Compare the type that a value was made with."""
        kind = value.type if isinstance(value, EncryptedColumns) else type(value).__name__
        return None if kind == self else f"expected {self}, got {kind}"


def is_number(end: object) -> bool:
    """Return whether a bound is a finite number, and no integer beyond all floats."""
    if isinstance(end, int):
        return abs(end) < 1 << 1000
    return isinstance(end, float) and math.isfinite(end)


def outward(value: float, *, up: bool) -> float:
    """Return a number of few digits that is not smaller, or not larger.

    Example:
        >>> outward(0.123456, up=True), outward(-0.123456, up=True), outward(7, up=False)
        (0.124, -0.123, 7)
    """
    if value == 0 or not math.isfinite(value):
        return value
    if isinstance(value, int) and abs(value) < 1 << 53:
        return value
    if abs(value) < 2.0**-900:
        return value
    step = 10.0 ** (math.floor(math.log10(abs(value))) - DIGITS + 1)
    rounded = (math.ceil if up else math.floor)(value / step) * step
    near = float(f"{rounded:.{DIGITS}g}")  # without the noise of the product
    if (near >= value) if up else (near <= value):
        return near
    return rounded if (rounded >= value if up else rounded <= value) else value


def _text(value: float) -> str:
    return repr(value)


def _number(text: Any) -> float:
    if type(text) is not str or len(text) > 400:
        raise ValueError("a bound is a number as a text")
    try:
        value: float = int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError:
        raise ValueError("a bound is a number as a text") from None
    if repr(value) != text:
        raise ValueError("a bound is written as Python writes it")
    return value


def _bytes(degree: int, primes: Sequence[int]) -> int:
    """Return about how many bytes two polynomials have: each coefficient has whole bytes."""
    return math.ceil(2.3 * degree * sum(-(-bits // 8) for bits in primes))


# -- codecs


def _parts(
    header: Mapping[str, Any], buffers: Sequence[bytes | memoryview], count: int, largest: int
) -> list[bytes]:
    if header:
        raise ValueError("its header is empty")
    if len(buffers) != count or not all(isinstance(b, bytes | memoryview) for b in buffers):
        raise ValueError(f"it has buffers of bytes, {count} of them")
    if not all(0 < len(buffer) <= largest for buffer in buffers):
        raise ValueError(f"a buffer has 1 to {largest} bytes")
    return [bytes(buffer) for buffer in buffers]


def _encode_key(value: HePublicKey) -> Encoded:
    return {}, [value.data]


def _decode_key(
    kind: BaseType, header: Mapping[str, Any], buffers: Sequence[bytes | memoryview]
) -> HePublicKey:
    kind = cast("HePublicKeyType | HeRelinKeyType | HeRotationKeyType", kind)
    (data,) = _parts(header, buffers, 1, 2 * kind.nbytes)
    return HePublicKey(kind, data)


def _encode_ciphertexts(value: EncryptedColumns) -> Encoded:
    return {}, list(value.parts)


def _decode_ciphertexts(
    kind: BaseType, header: Mapping[str, Any], buffers: Sequence[bytes | memoryview]
) -> EncryptedColumns:
    kind = cast("HeCiphertextType", kind)
    largest = 2 * _bytes(kind.parameters.degree, kind.primes)
    return EncryptedColumns(kind, tuple(_parts(header, buffers, kind.count, largest)))


KEY_CODEC = Codec(_encode_key, _decode_key)
CIPHERTEXT_CODEC = Codec(_encode_ciphertexts, _decode_ciphertexts)
