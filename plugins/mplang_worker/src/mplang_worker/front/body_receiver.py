"""Protocol of a connection while a large body comes: its bytes go to a file, past the parser."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

WINDOW = memoryview(bytearray(256 << 10))
"""What all connections receive into; a protocol empties it before another one is given it."""


class BodyReceiver(asyncio.BufferedProtocol):
    """Receives the rest of a body, in place of the connection's own protocol.

    A parser takes bodies as new byte strings, which are copied four times on their way to a file.
    Here they are decrypted into one window, which stays in the cache, and written from there.

    Args:
        http: the connection's own protocol, which is told what else happens to the connection.
        file: descriptor of the file to append to.
        count: bytes to receive; whatever follows them is left to ``http``.
        on_progress: called whenever some have been written.
        on_end: called when all have come.

    Attributes:
        done: is done when all have been written, or fails.
    """

    def __init__(
        self,
        http: asyncio.Protocol,
        file: int,
        count: int,
        on_progress: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._http = http
        self._file = file
        self._count = count
        self._on_progress = on_progress
        self._on_end = on_end

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to receive; never room for more than the body."""
        return WINDOW[: self._count]

    def buffer_updated(self, nbytes: int) -> None:
        """Write what was received; drop it if nobody waits for the body any more."""
        self._count -= nbytes
        if not self.done.done():
            try:
                self._write(WINDOW[:nbytes])
            except OSError as error:  # such as no memory left
                self.done.set_exception(error)
        if self._count == 0:
            self._on_end()
            if not self.done.done():
                self.done.set_result(None)

    def _write(self, data: memoryview) -> None:
        while len(data):
            data = data[os.write(self._file, data) :]
        self._on_progress()

    def pause_writing(self) -> None:
        """Forward to the connection's own protocol."""
        self._http.pause_writing()

    def resume_writing(self) -> None:
        """Forward to the connection's own protocol."""
        self._http.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail, and tell the connection's own protocol."""
        if not self.done.done():
            self.done.set_exception(ConnectionError("the connection has ended"))
        self._http.connection_lost(exc)
