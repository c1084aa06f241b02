"""Frames of a link.

Each frame is ``kind u8, stream u32, key u16, head u32, size u64`` (network order), then the key
(UTF-8), the head, and ``size`` bytes of body if that is at most ``CHUNK``. A larger body follows
in ``CHUNK`` frames of the same stream, which may be interleaved with frames of other streams.

The kinds: ``MESSAGE`` carries a value, its key is ``run/op index``. ``OPEN`` says that the sender
has opened the run that the key names, with what it was shown of it in the head, ``CLOSE`` that it
has closed it, which ``CLOSED`` or its own ``CLOSE`` acknowledges, and ``ABORT`` that the run has
failed, with the reason in the head. ``HEAD`` says that the sender permits the run; its head is what
the sender's gate has signed of its log once the run is on record there, or nothing before.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Generator

from mplang_http.ext import MAX_HEAD

from mplang_core.ext import WireError
from mplang_worker.link.connection import Connection

PREFIX = struct.Struct("!BIHIQ")
CHUNK = 1 << 20  # bytes
MAX_KEY = 4096  # bytes
BUFFER_SIZE = 128 << 10  # bytes


class Kind(enum.IntEnum):
    """Kind of a frame."""

    MESSAGE = 1
    CHUNK = 2
    OPEN = 3
    CLOSE = 4
    CLOSED = 5
    ABORT = 6
    HEAD = 7


def frame(kind: Kind, key: bytes = b"", head: bytes = b"", size: int = 0, stream: int = 0) -> bytes:
    """Return a frame without its body.

    Args:
        kind: kind of the frame.
        key: key of a message, or name of a run; UTF-8.
        head: head of a value, opening of a run, or reason of an abort.
        size: size of the body in bytes.
        stream: number of the stream of a large message.

    Raises:
        WireError: ``key`` exceeds ``MAX_KEY`` or ``head`` exceeds ``MAX_HEAD`` bytes.
    """
    if len(key) > MAX_KEY or len(head) > MAX_HEAD:
        raise WireError(f"a key has at most {MAX_KEY} bytes, a head {MAX_HEAD}", code="L001")
    return PREFIX.pack(kind, stream, len(key), len(head), size) + key + head


class Input:
    """Bytes read from a stream of frames. Half a frame stays for the thread that reads next.

    :meth:`exactly` and :meth:`fill` are generators: they stop where bytes are missing, and go on
    after :meth:`receive`.

    Args:
        connection: where the bytes come from; large bodies are read into their memory directly.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._buffer = memoryview(bytearray(BUFFER_SIZE))
        self._begin = self._end = 0
        self._large: memoryview | None = None  # where the next bytes go instead of the buffer

    def receive(self, deadline: float | None = None) -> bool:
        """Wait for some bytes; return whether there are, before the deadline or an interrupt.

        Raises:
            EOFError: the connection was closed.
            OSError: the connection is lost.
        """
        view = self._buffer[self._end :] if self._large is None else self._large
        count = self._connection.read_into(view, deadline)
        if count is None:
            return False
        if count == 0:
            raise EOFError("the peer has gone")
        if self._large is None:
            self._end += count
        else:
            self._large = self._large[count:]
        return True

    def prefix(self) -> tuple[int, int, int, int, int] | None:
        """Return the fields of the next prefix, or ``None`` if it is not here."""
        begin = self._begin
        if self._end - begin < PREFIX.size:
            return None
        self._begin = begin + PREFIX.size
        return PREFIX.unpack_from(self._buffer, begin)

    def take(self, size: int) -> bytes | None:
        """Return the next ``size`` bytes, or ``None`` if they are not here."""
        begin = self._begin
        if self._end - begin < size:
            return None
        self._begin = begin + size
        return bytes(self._buffer[begin : begin + size])

    def exactly(self, size: int) -> Generator[None, None, bytes]:
        """Return the next ``size`` bytes."""
        if size > BUFFER_SIZE:
            out = bytearray(size)
            yield from self.fill(memoryview(out))
            return bytes(out)
        while (data := self.take(size)) is None:
            here = self._end - self._begin
            if here == 0 or self._begin + size > BUFFER_SIZE:
                self._buffer[:here] = self._buffer[self._begin : self._end]
                self._begin, self._end = 0, here
            yield
        return data

    def fill(self, view: memoryview) -> Generator[None, None, None]:
        """Fill memory with the next bytes."""
        here = min(self._end - self._begin, len(view))
        view[:here] = self._buffer[self._begin : self._begin + here]
        self._begin += here
        self._large = view[here:]
        while len(self._large) >= BUFFER_SIZE:
            yield
        view, self._large = self._large, None
        view[:] = yield from self.exactly(len(view))
