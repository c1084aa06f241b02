"""The frames of a link.

Each frame is ``kind u8, stream u32, key u16, head u32, size u64`` (network order), then the key
(UTF-8), the head, and where ``size`` is at most ``CHUNK`` so many bytes. A larger message is
followed by frames ``CHUNK`` of its stream, which may stand among frames of other streams.

The kinds: ``MESSAGE`` carries a value under the key ``run/place``. ``OPEN`` says that the sender
is in the run that the key names, ``CLOSE`` that it is no more, which ``CLOSED`` answers, and
``ABORT`` that the run has failed, for the reason in the head.
"""

from __future__ import annotations

import enum
import struct

from mplang_core.errors import WireError
from mplang_http.connection import Connection
from mplang_http.values import MAX_HEAD

__all__ = ["CHUNK", "MAX_KEY", "PREFIX", "BufferedReader", "Kind", "frame"]

PREFIX = struct.Struct("!BIHIQ")
CHUNK = 1 << 20  # bytes
MAX_KEY = 4096  # bytes
BUFFER_SIZE = 128 << 10  # bytes


class Kind(enum.IntEnum):
    """What a frame is."""

    MESSAGE = 1
    CHUNK = 2
    OPEN = 3
    CLOSE = 4
    CLOSED = 5
    ABORT = 6


def frame(kind: Kind, key: bytes = b"", head: bytes = b"", size: int = 0, stream: int = 0) -> bytes:
    """Return a frame up to its body.

    Raises:
        WireError: key or head are too long.
    """
    if len(key) > MAX_KEY or len(head) > MAX_HEAD:
        raise WireError(f"a key has at most {MAX_KEY} bytes, a head {MAX_HEAD}")
    return PREFIX.pack(kind, stream, len(key), len(head), size) + key + head


class BufferedReader:
    """Reads a pipe: small things out of a buffer, large things straight to where they belong."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._buffer = memoryview(bytearray(BUFFER_SIZE))
        self._begin = self._end = 0

    def read_exactly(self, size: int) -> bytes:
        """Return so many bytes.

        Raises:
            EOFError: the peer has gone.
        """
        if self._end - self._begin >= size:
            self._begin += size
            return bytes(self._buffer[self._begin - size : self._begin])
        out = bytearray(size)
        self.fill(memoryview(out))
        return bytes(out)

    def fill(self, view: memoryview) -> None:
        """Read into memory, all of it."""
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
