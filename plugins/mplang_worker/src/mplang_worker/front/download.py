"""Download of a value: it goes from an engine to its coordinator, a chunk at a time."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

CHUNK = 256 << 10  # bytes; as much stays in the cache while it is encrypted


class Download:
    """A value that an engine writes to a socket while the front reads it.

    Args:
        size: its size in bytes, as the engine says.
        sock: the front's end of a pair that it has made itself: with an end of the engine's, the
            engine could have the front wait.

    Attributes:
        size: its size in bytes.
    """

    def __init__(self, size: int, sock: socket.socket) -> None:
        self.size = size
        self._sock = sock

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the value, and close the socket.

        Raises:
            EOFError: the engine has ended, or writes less than it said.
        """
        loop, left = asyncio.get_running_loop(), self.size
        with self._sock:
            while left:
                data = await loop.sock_recv(self._sock, min(CHUNK, left))
                if not data:
                    raise EOFError(f"the engine ended {left} bytes before its value did")
                left -= len(data)
                yield data

    def close(self) -> None:
        """Close the socket, so that the engine writes no more."""
        self._sock.close()
