"""Frames of a link.

Each frame is ``kind u8, stream u32, key u16, head u32, size u64`` (network order), then the key
(UTF-8), the head, and ``size`` bytes of body if that is at most ``CHUNK``. A larger body follows
in ``CHUNK`` frames of the same stream, which may be interleaved with frames of other streams.

The kinds: ``MESSAGE`` carries a value, its key is ``run/op index``. ``OPEN`` says that the sender
has opened the run that the key names, with what it was shown of it in the head, ``CLOSE`` that it
has closed it, which ``CLOSED`` acknowledges, and ``ABORT`` that the run has failed, with the reason
in the head.
"""

from __future__ import annotations

import enum
import struct

from mplang_core.ext import WireError
from mplang_http.connection import Connection
from mplang_http.values import MAX_HEAD

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
        raise WireError(f"a key has at most {MAX_KEY} bytes, a head {MAX_HEAD}")
    return PREFIX.pack(kind, stream, len(key), len(head), size) + key + head


class BufferedReader:
    """Buffered reader of a connection; large bodies are read into their memory directly."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._buffer = memoryview(bytearray(BUFFER_SIZE))
        self._begin = self._end = 0

    def read_exactly(self, size: int) -> bytes:
        """Return the next ``size`` bytes.

        Raises:
            EOFError: the connection was closed.
        """
        if self._end - self._begin >= size:
            self._begin += size
            return bytes(self._buffer[self._begin - size : self._begin])
        out = bytearray(size)
        self.fill(memoryview(out))
        return bytes(out)

    def fill(self, view: memoryview) -> None:
        """Fill memory with the next bytes.

        Raises:
            EOFError: the connection was closed.
        """
        while len(view):
            here = min(self._end - self._begin, len(view))
            if here:
                view[:here] = self._buffer[self._begin : self._begin + here]
                self._begin += here
            elif len(view) >= BUFFER_SIZE:
                here = self._read_some(view)
            else:
                self._begin, self._end = 0, self._read_some(self._buffer)
            view = view[here:]

    def _read_some(self, view: memoryview) -> int:
        count = self._connection.read_into(view)
        if count == 0:
            raise EOFError("the peer has gone")
        return count
