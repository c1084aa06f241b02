"""Share values: libspu's metadata and data chunks, and their codec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mplang_core import BaseType
from mplang_core.ext import Codec, Encoded
from mplang_spu.config import BITS
from mplang_spu.share_type import ShareType

CHUNK = 128 << 20  # bytes of data per chunk, as libspu splits it
_DATA_TYPES = {"bool": "DT_I1", "f16": "DT_F16", "f32": "DT_F32", "f64": "DT_F64"}
_DATA_TYPES |= {f"{sign}{n}": f"DT_{sign.upper()}{n}" for sign in "iu" for n in (8, 16, 32, 64)}


@dataclass(frozen=True, slots=True)
class SpuShare:
    """One party's share of a tensor, in libspu's serialized form.

    Attributes:
        type: the share type.
        meta: libspu's description of it, a ``ValueMetaProto``.
        chunks: its data, each a ``ValueChunkProto``.
    """

    type: ShareType
    meta: bytes
    chunks: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"SpuShare({self.type})"  # never the data


def check_share(share: SpuShare) -> None:
    """Validate a share from another party against its type, before libspu reads it.

    libspu trusts a share's metadata, and reads past the end of its data if they are inconsistent.
    So shape, element type, visibility, storage and size in bytes must be those of the type.

    Raises:
        ValueError: one differs; names it.
    """
    from mplang_spu.libspu import libspu

    plain, meta = share.type.plain, libspu.ValueMeta()
    if not meta.ParseFromString(share.meta) or meta.SerializeToString() != share.meta:
        raise ValueError("its description is damaged")
    wanted = getattr(libspu.DataType, _DATA_TYPES[plain.dtype.value])
    if meta.data_type != wanted or meta.is_complex:
        raise ValueError(f"its elements are {meta.data_type}, expected {wanted}")
    if tuple(meta.shape.dims) != plain.shape:
        raise ValueError(f"its shape is {list(meta.shape.dims)}, expected {list(plain.shape)}")
    public, size = _storage(meta.storage_type, share.type)
    visibility = libspu.Visibility.VIS_PUBLIC if public else libspu.Visibility.VIS_SECRET
    if meta.visibility != visibility:
        raise ValueError(f"it is {meta.visibility} in the storage {meta.storage_type!r}")
    _check_chunks(share.chunks, plain.size * size)


def storage_of(meta: bytes, kind: ShareType) -> tuple[bool, int]:
    """Return how a share is stored.

    Args:
        meta: libspu's description of it.
        kind: its type.

    Returns:
        Whether it is public, and its bytes per element.

    Raises:
        ValueError: the protocol and the field have no such storage.
    """
    from mplang_spu.libspu import libspu

    made = libspu.ValueMeta()
    made.ParseFromString(meta)
    return _storage(made.storage_type, kind)


def _storage(text: str, kind: ShareType) -> tuple[bool, int]:
    """Parse a storage name; return whether it is public, and its bytes per element.

    A share is arithmetic, ``aby3.AShr<FM64>``, boolean with a number of bits,
    ``aby3.BShr<PT_U8,3>``, or public, ``Pub2k<FM64>``, if a result does not depend on a secret. In
    ABY3 each party has two of three pieces.

    Raises:
        ValueError: the protocol and the field have no such storage.
    """
    ring, name = BITS[kind.field], kind.protocol.lower()
    pieces = 2 if kind.protocol == "ABY3" else 1
    if text == f"Pub2k<{kind.field}>":
        return True, ring // 8
    if text == f"{name}.AShr<{kind.field}>":
        return False, pieces * ring // 8
    backed, _, bits = text.partition("<")[2].removesuffix(">").partition(",")
    widths = {f"PT_U{n}": n for n in (8, 16, 32, 64, 128) if n <= ring}
    widths = widths if pieces == 2 else {kind.field: ring}
    width = widths.get(backed, 0)
    if text == f"{name}.BShr<{backed},{bits}>" and bits in map(str, range(1, width + 1)):
        return False, pieces * width // 8
    raise ValueError(
        f"its storage is {text[:100]!r}, which {kind.protocol} in {kind.field} has not"
    )


def _check_chunks(chunks: Sequence[bytes], total: int) -> None:
    """Check that chunks hold ``total`` bytes in order, split as libspu does."""
    expected = [header(total, at) for at in range(0, total, CHUNK)]
    sizes = [min(CHUNK, total - at) for at in range(0, total, CHUNK)]
    if len(chunks) != len(expected) or any(
        len(chunk) != len(header) + size or not chunk.startswith(header)
        for chunk, header, size in zip(chunks, expected, sizes, strict=True)
    ):
        found = sum(map(len, chunks))
        raise ValueError(
            f"its data, {found} bytes in {len(chunks)} chunks, is not of {total} bytes"
        )


def header(total: int, at: int) -> bytes:
    """Return the header of a chunk: total size, offset, and the length of its data.

    The encoding is that of Protocol Buffers: per field a tag, and a number as a varint.

    Args:
        total: bytes of the share's data.
        at: the offset of the chunk's in it.

    Returns:
        What stands before the data in a ``ValueChunkProto``.
    """
    from mplang_spu.libspu import libspu

    chunk = libspu.ValueChunk()
    chunk.total_bytes, chunk.chunk_offset = total, at
    head: bytes = chunk.SerializeToString()
    return head + b"\x1a" + _varint(min(CHUNK, total - at))


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def _encode(value: SpuShare) -> Encoded:
    return {"chunks": len(value.chunks)}, [value.meta, *value.chunks]


def _decode(
    kind: BaseType, header: Mapping[str, Any], buffers: Sequence[bytes | memoryview]
) -> SpuShare:
    if header != {"chunks": len(buffers) - 1}:
        raise ValueError(f"it says {str(header)[:100]}, but has {len(buffers)} buffers")
    meta, *chunks = map(bytes, buffers)
    share = SpuShare(cast(ShareType, kind), meta, tuple(chunks))
    check_share(share)
    return share


CODEC = Codec(_encode, _decode)
