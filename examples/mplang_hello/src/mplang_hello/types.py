"""The types of ``hello``, their values, and how these are written for another party."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from mplang_core import BaseType, Form, TensorType
from mplang_core.ext import Codec

# -- summaries


@dataclass(frozen=True, slots=True)
class SummaryType(BaseType):
    """A summary of a tensor: plain to whoever holds it.

    Attributes:
        inner: the tensor's type; neither empty nor complex.

    Example:
        >>> print(SummaryType(TensorType("f32", (3,))))
        hello.summary<f32[3]>
    """

    name: ClassVar[str] = "hello.summary"
    form: ClassVar[Form] = Form.PLAIN

    inner: TensorType

    def __post_init__(self) -> None:
        if not self.inner.size or self.inner.dtype.value.startswith("c"):
            raise ValueError(f"there is no summary of an empty or complex tensor, {self.inner}")

    def params(self) -> tuple[Any, ...]:
        """Return the tensor's type; it stands between ``<`` and ``>``."""
        return (self.inner,)

    @classmethod
    def from_params(cls, params: Sequence[Any]) -> SummaryType:
        """Make the type of what :meth:`params` gives; other things come from the network."""
        if len(params) != 1 or not isinstance(params[0], TensorType):
            raise ValueError("a summary has the type of a tensor")
        return cls(params[0])

    def mismatch(self, value: Any) -> str | None:
        """Return why a value is none of this type, or ``None`` where it is."""
        found = value.type if isinstance(value, Summary) else type(value).__name__
        return None if found == self else f"expected {self}, got {found}"


@dataclass(frozen=True, slots=True)
class Summary:
    """What is told of a tensor.

    Attributes:
        type: its own type, with that of the tensor.
        least: the least element.
        mean: the arithmetic mean.
        greatest: the greatest element.
    """

    type: SummaryType
    least: float
    mean: float
    greatest: float

    def __repr__(self) -> str:
        numbers = f"least={self.least}, mean={self.mean}, greatest={self.greatest}"
        return f"Summary({self.type.inner}, {numbers})"


_NUMBERS = struct.Struct("<3d")


def _encode(value: Summary) -> tuple[Mapping[str, Any], Sequence[bytes]]:
    return {}, [_NUMBERS.pack(value.least, value.mean, value.greatest)]


def _decode(
    kind: BaseType, header: Mapping[str, Any], buffers: Sequence[bytes | memoryview]
) -> Summary:
    sizes = [len(bytes(buffer)) for buffer in buffers]
    if header or sizes != [_NUMBERS.size]:
        raise ValueError(f"it is one buffer of {_NUMBERS.size} bytes")
    return Summary(cast(SummaryType, kind), *_NUMBERS.unpack(buffers[0]))


SUMMARY_CODEC = Codec(_encode, _decode)


# -- halves of what is in a vault


@dataclass(frozen=True, slots=True)
class HalfType(BaseType):
    """One of the two halves of a tensor: random by itself, the tensor with the other one.

    Attributes:
        plain: the tensor's type.

    Example:
        >>> half = HalfType(TensorType("f32", (3,)))
        >>> print(half, half.nbytes)
        hello.half<f32[3]> 12
    """

    name: ClassVar[str] = "hello.half"
    form: ClassVar[Form] = Form.SHARE

    plain: TensorType

    @property
    def nbytes(self) -> int:
        """How many bytes it has."""
        return self.plain.size * self.plain.dtype.numpy.itemsize

    def params(self) -> tuple[Any, ...]:
        """Return the tensor's type."""
        return (self.plain,)

    @classmethod
    def from_params(cls, params: Sequence[Any]) -> HalfType:
        """Make the type of what :meth:`params` gives; other things come from the network."""
        if len(params) != 1 or not isinstance(params[0], TensorType):
            raise ValueError("a half has the type of a tensor")
        return cls(params[0])

    def mismatch(self, value: Any) -> str | None:
        """Return why a value is none of this type, or ``None`` where it is."""
        found = value.type if isinstance(value, Half) else type(value).__name__
        return None if found == self else f"expected {self}, got {found}"


@dataclass(frozen=True, slots=True)
class Half:
    """One party's half.

    Attributes:
        type: its type, with that of the tensor.
        data: as many bytes as the tensor has; never shown.
    """

    type: HalfType
    data: bytes = field(repr=False)


def _encode_half(value: Half) -> tuple[Mapping[str, Any], Sequence[bytes]]:
    return {}, [value.data]


def _decode_half(
    kind: BaseType, header: Mapping[str, Any], buffers: Sequence[bytes | memoryview]
) -> Half:
    half = cast(HalfType, kind)
    if header or [len(bytes(buffer)) for buffer in buffers] != [half.nbytes]:
        raise ValueError(f"it is one buffer of {half.nbytes} bytes")
    return Half(half, bytes(buffers[0]))


HALF_CODEC = Codec(_encode_half, _decode_half)
