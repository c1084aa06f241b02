"""Share values, and their codec. Imports neither libspu nor JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from mplang_core import BaseType
from mplang_core.ext import Codec, Encoded
from mplang_spu.share_type import ShareType
from mplang_spu.storage import Storage, storages

CHUNK = 128 << 20  # bytes of data per chunk, as libspu splits it
BLOCK = 1 << 16  # elements; a power of two as their sizes are, so that no block is in two chunks


@dataclass(frozen=True, slots=True, weakref_slot=True)
class SpuShare:
    """Share of a tensor at one party.

    Attributes:
        type: the share type.
        storage: the name of its storage, one of those of the type.
        chunks: its data, each a ``ValueChunkProto`` of libspu; a native service may hold it, and
            then it is fetched when it is first read.
        unreduced: whether integers may be beyond their type, as those of a sum that was not looked
            at; they are of it modulo 2^n, and are cut to it when they are revealed.
        computed: whether a run gave it in this simulator, so that its floats are some steps off.
    """

    type: ShareType
    storage: str
    chunks: Sequence[bytes]
    unreduced: bool = False
    computed: bool = field(default=False, compare=False)

    def __repr__(self) -> str:
        return f"SpuShare({self.type})"  # never the data

    @property
    def layout(self) -> Storage:
        """Its storage.

        Raises:
            ValueError: the protocol and the field have no such storage.
        """
        kind = self.type
        found = storages(kind.protocol, kind.field).get(self.storage)
        if found is None:
            raise ValueError(
                f"its storage is {str(self.storage)[:100]!r}, which {kind.protocol} in "
                f"{kind.field} has not"
            )
        return found

    @property
    def nbytes(self) -> int:
        """Its size in bytes; as its type says where another process has the data."""
        chunks = self.chunks
        return sum(map(len, chunks)) if isinstance(chunks, tuple | list) else self.type.nbytes

    def block(self, at: int, size: int) -> memoryview:
        """Return the data of some elements, which are in one chunk.

        Args:
            at: the first element.
            size: the number of elements.
        """
        width = self.layout.nbytes
        number, start = divmod(at * width, CHUNK)
        start += len(header(self.type.plain.size * width, number * CHUNK))
        return memoryview(self.chunks[number])[start : start + size * width]


def check_share(share: SpuShare) -> None:
    """Validate a share from another party against its type, before its data is read.

    libspu reads past the end of data that is too short, so its size must be that of the type.

    Raises:
        ValueError: storage or data are not those of the type; names what differs.
    """
    _check_chunks(share.chunks, share.type.plain.size * share.layout.nbytes)


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
    fields = [b"\x08" + _varint(total)] if total else []
    fields += [b"\x10" + _varint(at)] if at else []
    return b"".join([*fields, b"\x1a", _varint(min(CHUNK, total - at))])


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def _encode(value: SpuShare) -> Encoded:
    told = {"unreduced": True} if value.unreduced else {}
    return {"storage": value.storage, **told}, list(value.chunks)


def _decode(
    kind: BaseType, header: Mapping[str, Any], buffers: Sequence[bytes | memoryview]
) -> SpuShare:
    storage, unreduced = header.get("storage"), header.get("unreduced", False)
    known = header.keys() <= {"storage", "unreduced"} and isinstance(unreduced, bool)
    if not known or not isinstance(storage, str):
        raise ValueError(f"it says {str(header)[:100]}, expected its storage alone")
    share = SpuShare(cast(ShareType, kind), storage, tuple(map(bytes, buffers)), unreduced)
    check_share(share)
    return share


CODEC = Codec(_encode, _decode)
