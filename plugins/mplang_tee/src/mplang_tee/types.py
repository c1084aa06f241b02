"""Types and values of enclaves: what is plain inside of one, and what is sealed for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, NoReturn, Self, TypeAlias, cast

from mplang_core import BaseType, Form
from mplang_core.ext import Codec, Encoded, encode

KEY_BYTES = 32
NONCE_BYTES = 12
TAG_BYTES = 16
FILES_BYTES = 32
MAX_QUOTE = 1 << 16  # bytes
MAX_PROVIDER = 64  # characters

Way: TypeAlias = Literal["in", "out"]
"""Whether a value goes into the enclave, or comes out of it."""

# -- values


@dataclass(frozen=True, slots=True, eq=False)
class _Hidden:
    """Something that stays where it is: it is neither pickled, copied nor printed."""

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} stays where it is: it is neither pickled nor copied"
        )


@dataclass(frozen=True, slots=True, eq=False)
class EnclaveValue(_Hidden):
    """Value that is plain inside of an enclave.

    Attributes:
        type: its type.
        plain: the value.
    """

    type: TeeValueType
    plain: Any = field(repr=False)

    def __eq__(self, other: object) -> bool:
        """Compare types, and bytes by the codec of what is inside."""
        if not isinstance(other, EnclaveValue) or self.type != other.type:
            return False
        (mine, here), (theirs, there) = (
            encode(each.type.inner, each.plain) for each in (self, other)
        )
        return mine == theirs and [*map(bytes, here)] == [*map(bytes, there)]

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, eq=False)
class SessionKey(_Hidden):
    """Key that an owner and an enclave have alike.

    Attributes:
        type: whose of both this is.
        secret: an AES-256 key.
    """

    type: TeeSessionKeyType | TeeEnclaveKeyType
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class SealedValue:
    """Value that is encrypted for an enclave, or by it for one party.

    Attributes:
        type: its type.
        nonce: 96 random bits.
        data: the ciphertext, followed by its tag.
    """

    type: TeeSealedType
    nonce: bytes = field(repr=False)
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class TeeQuote:
    """Answer of an enclave to an owner.

    Attributes:
        type: its type.
        public: the enclave's X25519 public key of this session.
        files: SHA-256 of its configuration and of what is installed there.
        quote: what its provider signs.
    """

    type: TeeQuoteType
    public: bytes = field(repr=False)
    files: bytes = field(repr=False)
    quote: bytes = field(repr=False)


# -- types


def _checked_provider(name: object) -> None:
    if not isinstance(name, str) or not name.isidentifier() or len(name) > MAX_PROVIDER:
        raise ValueError(f"a provider of attestation is a word, got {name!r}"[:200])


class _OfProvider(BaseType):
    """Type of something of a provider; its parameters are its fields."""

    __slots__ = ()

    provider: str

    def __post_init__(self) -> None:
        _checked_provider(self.provider)

    def params(self) -> tuple[Any, ...]:
        """Return the fields, in their order."""
        return tuple(getattr(self, each.name) for each in fields(self))  # type: ignore[arg-type]

    @classmethod
    def from_params(cls, params: Sequence[Any]) -> Self:
        """Construct the type from the result of :meth:`params`."""
        wanted = [each.name for each in fields(cls)]  # type: ignore[arg-type]
        if len(params) != len(wanted):
            raise ValueError(f"{cls.name} has {', '.join(wanted)}, got {len(params)} parameters")
        return cls(*params)

    def mismatch(self, value: Any) -> str | None:
        """Compare the type of a value."""
        got = getattr(value, "type", None)
        return None if got == self else f"expected {self}, got {got or type(value).__name__}"


class _Around(_OfProvider):
    """Type of a value of another type."""

    __slots__ = ()

    inner: BaseType

    def __post_init__(self) -> None:
        if not isinstance(self.inner, BaseType) or self.inner.form is not Form.PLAIN:
            raise ValueError(f"what is in an enclave is plain there, got {self.inner}")
        _OfProvider.__post_init__(self)

    @property
    def protocol(self) -> str:
        """The provider, which rows and rules name so."""
        return self.provider


@dataclass(frozen=True, slots=True)
class TeeValueType(_Around):
    """Type of values that are plain inside of an enclave, and nowhere else at its party.

    They have no codec: they are neither sent nor stored.

    Attributes:
        inner: the type of the value there, which is plain.
        provider: who attests the enclave.

    Example:
        >>> from mplang_core import TensorType
        >>> print(TeeValueType(TensorType("f64", (3,)), "tdx"))
        tee.value<f64[3], "tdx">
    """

    name: ClassVar[str] = "tee.value"
    form: ClassVar[Form] = Form.HANDLE

    inner: BaseType
    provider: str


@dataclass(frozen=True, slots=True)
class TeeSealedType(_Around):
    """Type of values that are encrypted for an enclave, or by it for one party.

    Attributes:
        inner: the type of the value.
        provider: who attests the enclave.
        way: ``in`` to the enclave, or ``out`` of it.

    Example:
        >>> from mplang_core import TensorType
        >>> print(TeeSealedType(TensorType("f64", (3,)), "tdx", "in"))
        tee.sealed<f64[3], "tdx", "in">
    """

    name: ClassVar[str] = "tee.sealed"
    form: ClassVar[Form] = Form.HANDLE

    inner: BaseType
    provider: str
    way: Way

    def __post_init__(self) -> None:
        _Around.__post_init__(self)
        if self.way not in ("in", "out"):
            raise ValueError(f"a value is sealed on its way in or out, got {self.way!r}"[:200])

    def reader(self, party: str) -> str:
        """Return who reads it at a party; see :class:`mplang_analysis.ext.ReadInside`."""
        return f"the enclave of {party} ({self.provider})" if self.way == "in" else party


@dataclass(frozen=True, slots=True)
class TeeSessionKeyType(_OfProvider):
    """Type of keys that an owner has after it has verified an enclave. They stay there.

    Attributes:
        provider: who attests the enclave.
    """

    name: ClassVar[str] = "tee.session_key"
    form: ClassVar[Form] = Form.KEY

    provider: str


@dataclass(frozen=True, slots=True)
class TeeEnclaveKeyType(_OfProvider):
    """Type of the same keys inside of the enclave, where its party cannot read them.

    Attributes:
        provider: who attests the enclave.
    """

    name: ClassVar[str] = "tee.enclave_key"
    form: ClassVar[Form] = Form.HANDLE

    provider: str


@dataclass(frozen=True, slots=True)
class TeeQuoteType(_OfProvider):
    """Type of what an enclave answers to an owner: a public key, and a quote over it.

    Attributes:
        provider: who attests the enclave.
    """

    name: ClassVar[str] = "tee.quote"

    provider: str

    def in_words(self) -> str:
        """Return what it is; see :class:`mplang_analysis.ext.Worded`."""
        return f"a quote of an enclave ({self.provider})"

    def size_in_words(self, owner: str) -> str:
        """Return what its size tells."""
        return f"how long the quote of {owner} is"


# -- codecs of what is sent


def _parts(
    header: Mapping[str, Any], buffers: Sequence[bytes | memoryview], count: int
) -> list[bytes]:
    if header or len(buffers) != count:
        raise ValueError(f"it has {count} parts and no header, got {len(buffers)}")
    return [bytes(each) for each in buffers]


def _encode_sealed(value: SealedValue) -> Encoded:
    return {}, [value.nonce, value.data]


def _decode_sealed(
    kind: BaseType, header: Mapping[str, Any], buffers: Sequence[bytes | memoryview]
) -> SealedValue:
    nonce, data = _parts(header, buffers, 2)
    if len(nonce) != NONCE_BYTES or len(data) < TAG_BYTES:
        raise ValueError(f"it has a nonce of {NONCE_BYTES} bytes and a tag of {TAG_BYTES}")
    return SealedValue(cast(TeeSealedType, kind), nonce, data)


def _encode_quote(value: TeeQuote) -> Encoded:
    return {}, [value.public, value.files, value.quote]


def _decode_quote(
    kind: BaseType, header: Mapping[str, Any], buffers: Sequence[bytes | memoryview]
) -> TeeQuote:
    public, files, quote = _parts(header, buffers, 3)
    if len(public) != KEY_BYTES or len(files) != FILES_BYTES or len(quote) > MAX_QUOTE:
        raise ValueError(
            f"it has a key of {KEY_BYTES} bytes, a digest of {FILES_BYTES}, and a quote of at most "
            f"{MAX_QUOTE}"
        )
    return TeeQuote(cast(TeeQuoteType, kind), public, files, quote)


SEALED_CODEC = Codec(_encode_sealed, _decode_sealed)
QUOTE_CODEC = Codec(_encode_quote, _decode_quote)
