"""Values as bytes, with their types: in messages, in requests and in responses."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import numpy as np

from mplang_core.errors import MPLangError, WireError
from mplang_core.ir.parser import parse_base_type
from mplang_core.runtime import codec, type_of
from mplang_core.types import BaseType, Form, TensorType, array_from

__all__ = [
    "MAX_HEAD",
    "Buffer",
    "Packed",
    "frame_head",
    "join_frame",
    "pack",
    "pack_as",
    "read_plain",
    "split_frame",
    "unpack",
]

Buffer: TypeAlias = bytes | memoryview

MAX_HEAD = 1 << 20  # bytes
CACHED_LENGTH = 4 << 10  # characters up to which a parsed type is cached
ALIGN = 64  # bytes
_PREFIX = struct.Struct("!II")
_LITERALS: dict[str, Any] = {"!none": None, "!true": True, "!false": False}
_BYTES = "!bytes"


class Head(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """What stands before a value's bytes.

    Attributes:
        kind: its type as text; ``!none``, ``!true``, ``!false`` and ``!bytes`` are none.
        header: what its codec wrote.
        sizes: how many bytes each of its buffers has.
    """

    kind: str
    header: dict[str, Any]
    sizes: list[int]


@dataclass(frozen=True, slots=True)
class Packed:
    """A value that is not decoded yet.

    Attributes:
        head: its head.
        body: its buffers, one after the other.
        dropped: is called when nobody has it any more.
    """

    head: Head
    body: Buffer | np.ndarray[Any, Any]
    on_drop: Callable[[int], None] | None = None

    def __del__(self) -> None:
        if self.on_drop is not None:
            self.on_drop(self.nbytes)

    @property
    def nbytes(self) -> int:
        """How many bytes its buffers have."""
        return self.body.nbytes if isinstance(self.body, np.ndarray) else len(self.body)

    def value(self, expected: BaseType | None = None) -> Any:
        """Decode it; see :func:`unpack`."""
        return unpack(self.head, self.body, expected)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Head)


def pack(value: Any) -> tuple[bytes, list[Buffer]]:
    """Write a value of whatever type it is: a head, and buffers that share its memory.

    Raises:
        WireError: it has no type that is known, or one without a codec.

    Example:
        >>> head, buffers = pack(np.array([1, 2], np.int32))
        >>> unpack(read_head(head), b"".join(buffers))
        array([1, 2], dtype=int32)
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return _encoder.encode(Head(_BYTES, {}, [len(value)])), [memoryview(value)]
    if value is None or value is True or value is False:
        return _encoder.encode(Head(f"!{value}".lower(), {}, [])), []
    if isinstance(value, np.ndarray | np.generic) and value.dtype.isnative:
        return _tensor_head(value.dtype, value.shape), [np.ravel(value).view(np.uint8).data]
    return pack_as(type_of(value), value)


@functools.lru_cache(maxsize=1024)
def _tensor_head(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    kind = TensorType(dtype, shape)
    return _encoder.encode(Head(str(kind), {}, [kind.size * dtype.itemsize]))


def pack_as(kind: BaseType, value: Any) -> tuple[bytes, list[Buffer]]:
    """Write a value of a type.

    Raises:
        WireError: it is not of that type, or the type has no codec.
    """
    header, parts = codec.encode(kind, value)
    buffers = [memoryview(part).cast("B") if len(part) else b"" for part in parts]
    sizes = [len(buffer) for buffer in buffers]
    return _encoder.encode(Head(str(kind), dict(header), sizes)), list(buffers)


def read_head(data: Buffer) -> Head:
    """Read a head.

    Raises:
        WireError: it is none.
    """
    try:
        head = _decoder.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise WireError(f"no head of a value: {error}") from None
    if any(size < 0 for size in head.sizes):
        raise WireError("a buffer has a negative size")
    return head


def unpack(
    head: Head, body: Buffer | np.ndarray[Any, Any], expected: BaseType | None = None
) -> Any:
    """Read a value; a tensor shares the memory of ``body``, which nobody may write to any more.

    Args:
        head: its head.
        body: all of its buffers.
        expected: the type that it has to have; any if ``None``.

    Raises:
        WireError: it is damaged, or of another type.
    """
    size = body.nbytes if isinstance(body, np.ndarray) else len(body)
    if sum(head.sizes) != size:
        raise WireError(f"its buffers have {sum(head.sizes)} bytes, but {size} came")
    if head.kind == _BYTES and expected is None:
        return bytes(body)
    if head.kind in _LITERALS and expected is None:
        return _LITERALS[head.kind]
    kind = _parse(head.kind)
    if expected is not None and kind != expected:
        raise WireError(f"expected a {expected}, got a {kind}")
    if isinstance(kind, TensorType):
        return _tensor(kind, body)
    whole = body.data if isinstance(body, np.ndarray) else memoryview(body)
    view, buffers, begin = whole.toreadonly(), [], 0
    for length in head.sizes:
        buffers.append(view[begin : begin + length])
        begin += length
    return codec.decode(kind, head.header, buffers)


def _tensor(kind: TensorType, body: Buffer | np.ndarray[Any, Any]) -> Any:
    """As the core's codec does, without its copy."""
    try:
        array = array_from(body, kind)
    except ValueError as error:
        raise WireError(str(error)) from None
    array.flags.writeable = False
    return array


def _parse(text: str) -> BaseType:
    return _parse_any(text) if len(text) > CACHED_LENGTH else _parse_cached(text)


def _parse_any(text: str) -> BaseType:
    try:
        return parse_base_type(text)
    except (MPLangError, TypeError, ValueError, RecursionError) as error:
        raise WireError(f"no type of a value: {error}") from None


_parse_cached = functools.lru_cache(maxsize=1024)(_parse_any)


# -- a value in one piece: prefix, head, padding, buffers


def frame_head(head: bytes) -> bytes:
    """Return what comes before the buffers: such that they begin at a multiple of 64 bytes."""
    pad = -(_PREFIX.size + len(head)) % ALIGN
    return _PREFIX.pack(len(head), pad) + head + bytes(pad)


def split_frame(data: Buffer) -> Packed:
    """Read a value in one piece; shares its memory.

    Raises:
        WireError: it is damaged.
    """
    view = memoryview(data)
    if len(view) < _PREFIX.size:
        raise WireError("a value has a prefix of 8 bytes")
    length, pad = _PREFIX.unpack(view[: _PREFIX.size])
    begin = _PREFIX.size + length
    if length > MAX_HEAD or pad >= ALIGN or begin + pad > len(view):
        raise WireError("the prefix of a value names more than came")
    return Packed(read_head(view[_PREFIX.size : begin]), view[begin + pad :])


def read_plain(data: Buffer) -> Any:
    """Read a value in one piece that a coordinator gives: it makes no shares, and no keys.

    Raises:
        WireError: it is damaged, or of a type that is not plain.
    """
    packed = split_frame(data)
    if packed.head.kind[:1] != "!" and _parse(packed.head.kind).form is not Form.PLAIN:
        raise WireError(f"a coordinator gives plain values, not a {packed.head.kind[:100]}")
    return packed.value()


def join_frame(head: bytes, buffers: Sequence[Buffer]) -> bytes:
    """Return a small value in one piece."""
    return b"".join([frame_head(head), *buffers])
