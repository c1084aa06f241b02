"""Serialization of values with their types, for messages, requests and responses."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import numpy as np

from mplang_core import BaseType, Form, MPLangError, TensorType
from mplang_core.ext import WireError, array_from, codec, parse_base_type, type_of

Buffer: TypeAlias = bytes | memoryview

MAX_HEAD = 1 << 20  # bytes
CACHED_LENGTH = 4 << 10  # characters up to which a parsed type is cached
ALIGN = 64  # bytes
SMALL = 4 << 10  # bytes up to which a copy costs less than views
_PREFIX = struct.Struct("!II")
_LITERALS: dict[str, Any] = {"!none": None, "!true": True, "!false": False}
_BYTES = "!bytes"


class Head(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Header of a serialized value.

    Attributes:
        kind: type as text, or ``!none``, ``!true``, ``!false`` or ``!bytes``.
        header: header of the type's codec.
        sizes: size of each buffer in bytes.
    """

    kind: str
    header: dict[str, Any]
    sizes: list[int]


@dataclass(slots=True)  # not frozen: there is one per message, and that would double its cost
class Packed:
    """Serialized value, decoded on demand.

    Attributes:
        head: header of the value.
        body: concatenated buffers.
        on_drop: called with ``nbytes`` when the object is deleted.
    """

    head: Head
    body: Buffer | np.ndarray[Any, Any]
    on_drop: Callable[[int], None] | None = None

    def __del__(self) -> None:
        if self.on_drop is not None:
            self.on_drop(self.nbytes)

    @property
    def nbytes(self) -> int:
        """Size of the buffers in bytes."""
        return self.body.nbytes if isinstance(self.body, np.ndarray) else len(self.body)

    def value(self, expected: BaseType | None = None) -> Any:
        """Decode the value; see :func:`unpack`."""
        return unpack(self.head, self.body, expected)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Head)


def pack(value: Any) -> tuple[bytes, list[Buffer]]:
    """Serialize a value of any type.

    Returns:
        The head, and buffers that share the memory of a value that is not small.

    Raises:
        WireError: the value has no known type, or its type has no codec.

    Example:
        >>> head, buffers = pack(np.array([1, 2], np.int32))
        >>> unpack(read_head(head), b"".join(buffers))
        array([1, 2], dtype=int32)
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes_head(len(value)), [memoryview(value)]
    if value is None or value is True or value is False:
        return _encoder.encode(Head(f"!{value}".lower(), {}, [])), []
    if isinstance(value, np.ndarray | np.generic) and value.dtype.isnative:
        if value.nbytes <= SMALL:
            return _tensor_head(value.dtype, value.shape), [value.tobytes()]
        return _tensor_head(value.dtype, value.shape), [np.ravel(value).view(np.uint8).data]
    return pack_as(type_of(value), value)


@functools.lru_cache(maxsize=1024)
def _bytes_head(size: int) -> bytes:
    return _encoder.encode(Head(_BYTES, {}, [size]))


@functools.lru_cache(maxsize=1024)
def _tensor_head(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    kind = TensorType(dtype, shape)
    return _encoder.encode(Head(str(kind), {}, [kind.size * dtype.itemsize]))


def pack_as(kind: BaseType, value: Any) -> tuple[bytes, list[Buffer]]:
    """Serialize a value of a given type.

    Args:
        kind: the type.
        value: the value.

    Returns:
        The head, and buffers that share the value's memory.

    Raises:
        WireError: the value is not of that type, or the type has no codec.
    """
    header, parts = codec.encode(kind, value)
    buffers = [memoryview(part).cast("B") if len(part) else b"" for part in parts]
    sizes = [len(buffer) for buffer in buffers]
    return _encoder.encode(Head(str(kind), dict(header), sizes)), list(buffers)


def aligned_bytes(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return memory for a body, where engines take its arrays without a copy.

    Its pages are allocated when they are written to.
    """
    memory = np.empty(size + ALIGN, np.uint8)
    begin = -memory.ctypes.data % ALIGN
    return memory[begin : begin + size]


def read_head(data: Buffer) -> Head:
    """Deserialize the head of a value.

    Raises:
        WireError: the head is malformed.
    """
    try:
        head = _decoder.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise WireError(f"no head of a value: {error}", code="I004") from None
    if head.sizes and min(head.sizes) < 0:
        raise WireError("a buffer has a negative size", code="I004")
    return head


def unpack(
    head: Head, body: Buffer | np.ndarray[Any, Any], expected: BaseType | None = None
) -> Any:
    """Deserialize a value; a tensor shares the memory of ``body``, which must not change.

    Args:
        head: header of the value.
        body: concatenated buffers.
        expected: required type; ``None`` for any.

    Returns:
        The value.

    Raises:
        WireError: the value is malformed, or of another type.
    """
    size = body.nbytes if isinstance(body, np.ndarray) else len(body)
    if sum(head.sizes) != size:
        raise WireError(f"its buffers have {sum(head.sizes)} bytes, but {size} came", code="I004")
    if head.kind == _BYTES and expected is None:
        return bytes(body)
    if head.kind in _LITERALS and expected is None:
        return _LITERALS[head.kind]
    kind = _parse(head.kind)
    if expected is not None and kind != expected:
        raise WireError(f"expected a {expected}, got a {kind}", code="I004")
    if isinstance(kind, TensorType):
        return _tensor(kind, body)
    whole = body.data if isinstance(body, np.ndarray) else memoryview(body)
    view, buffers, begin = whole.toreadonly(), [], 0
    for length in head.sizes:
        buffers.append(view[begin : begin + length])
        begin += length
    return codec.decode(kind, head.header, buffers)


def _tensor(kind: TensorType, body: Buffer | np.ndarray[Any, Any]) -> Any:
    """Decode a tensor as the core's codec does, but without a copy."""
    try:
        array = array_from(body, kind)
    except ValueError as error:
        raise WireError(str(error), code="I004") from None
    array.flags.writeable = False
    return array


def _parse(text: str) -> BaseType:
    return _parse_any(text) if len(text) > CACHED_LENGTH else _parse_cached(text)


def _parse_any(text: str) -> BaseType:
    try:
        return parse_base_type(text)
    except (MPLangError, TypeError, ValueError, RecursionError) as error:
        raise WireError(f"no type of a value: {error}", code="I004") from None


_parse_cached = functools.lru_cache(maxsize=1024)(_parse_any)


# -- framed values: prefix, head, padding, buffers


def frame_head(head: bytes) -> bytes:
    """Return the prefix, the head and padding to a multiple of 64 bytes."""
    pad = -(_PREFIX.size + len(head)) % ALIGN
    return _PREFIX.pack(len(head), pad) + head + bytes(pad)


def split_frame(data: Buffer) -> Packed:
    """Split a framed value into head and body, which share its memory.

    Raises:
        WireError: the frame is malformed.
    """
    view = memoryview(data)
    if len(view) < _PREFIX.size:
        raise WireError("a value has a prefix of 8 bytes", code="I004")
    length, pad = _PREFIX.unpack(view[: _PREFIX.size])
    begin = _PREFIX.size + length
    if length > MAX_HEAD or pad >= ALIGN or begin + pad > len(view):
        raise WireError("the prefix of a value names more than came", code="I004")
    return Packed(read_head(view[_PREFIX.size : begin]), view[begin + pad :])


def read_plain(data: Buffer) -> Any:
    """Deserialize a framed value of a coordinator: plain data, no shares or keys.

    Raises:
        WireError: the value is malformed, or not plain.
    """
    packed = split_frame(data)
    if packed.head.kind[:1] != "!" and _parse(packed.head.kind).form is not Form.PLAIN:
        raise WireError(
            f"a coordinator gives plain values, not a {packed.head.kind[:100]}", code="I004"
        )
    return packed.value()


def join_frame(head: bytes, buffers: Sequence[Buffer]) -> bytes:
    """Return a small value as one framed byte string.

    Args:
        head: head of the value.
        buffers: its buffers.
    """
    return b"".join([frame_head(head), *buffers])
