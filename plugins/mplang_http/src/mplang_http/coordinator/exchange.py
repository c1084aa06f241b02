"""Connection of the client: sends a request, and reads its response."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence

import httptools

from mplang_http.wire.values import Buffer

CHUNK = 1 << 20  # bytes that are sent or read at once
SMALL = 16 << 10  # bytes of a body that is sent in one packet with the head
MAX_HEAD = 64 << 10  # bytes of a response's head
MAX_BODY = 64 << 20  # bytes of a response that is not a value


class NoResponseError(ConnectionError):
    """The worker has closed the connection before a response began."""


class Response:
    """Response to a request, whose head has been read, and as much of its body as came with it.

    Args:
        sock: the connection.

    Attributes:
        status: HTTP status.
        size: bytes of its body; ``None`` if it does not say.
        keeps: whether the connection takes another request.
        retry_after: seconds after which the worker wants to be asked again; ``None`` if never.

    Raises:
        NoResponseError: the worker has closed the connection.
        OSError: the connection is lost, or what comes is not a response.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.status = 0  # until the head has come
        self.size: int | None = None
        self.keeps = False
        self.retry_after: float | None = None
        self._sock = sock
        self._body = b""
        self._complete = False
        self._parser = httptools.HttpResponseParser(self)
        self._read_head()

    def _read_head(self) -> None:
        count = 0
        while not self._complete:
            data = self._sock.recv(MAX_HEAD)
            count += len(data)
            if not data:
                raise NoResponseError("it closed the connection without a response")
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserError:
                raise ConnectionError("it answers with no HTTP") from None
            if count > MAX_HEAD and not self._complete:
                raise ConnectionError("the head of its response has no end")

    def on_message_begin(self) -> None:
        """Refuse a second response, which nobody asked for; the parser calls it."""
        if self._complete:
            raise ValueError("a second response")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field of the head; the parser calls it."""
        if name.lower() == b"content-length" and value.isdigit() and len(value) < 20:
            self.size = int(value)
        elif name.lower() == b"retry-after" and value.isdigit():
            self.retry_after = float(value[:4])

    def on_headers_complete(self) -> None:
        """Take the end of the head; the parser calls it."""
        self.status = self._parser.get_status_code()
        self.keeps = self._parser.should_keep_alive()
        self._complete = True

    def on_body(self, body: bytes) -> None:
        """Take what came of the body with the head; the parser calls it."""
        self._body += body

    def read_into(
        self, view: memoryview, on_timeout: Callable[[], None] | None = None
    ) -> Iterator[int]:
        """Read the body into memory of its size, and yield how many bytes came each time.

        Args:
            view: the memory.
            on_timeout: called when nothing came in time; raises if it is not to be waited for.

        Raises:
            OSError: the connection is lost, or nothing came in time.
        """
        count = len(self._body)
        view[:count] = self._body
        while True:
            yield count
            view = view[count:]
            if not view:
                return
            try:
                count = self._sock.recv_into(view[:CHUNK])
            except TimeoutError:
                if on_timeout is None:
                    raise
                on_timeout()
                count = 0
                continue
            if not count:
                raise ConnectionError("its response ended early")

    def read(self) -> bytes:
        """Return the body, which is not a value.

        Raises:
            OSError: the connection is lost, or the response has no size, or one that is too much.
        """
        if self.size is None:
            raise ConnectionError("it answers without a Content-Length")
        if self.size > MAX_BODY:
            raise ConnectionError(f"it answers with {self.size} bytes")
        if len(self._body) == self.size:
            return self._body
        body = bytearray(self.size)
        for _ in self.read_into(memoryview(body)):
            pass
        return bytes(body)


def send_request(
    sock: socket.socket,
    head: str,
    body: Sequence[Buffer],
    on_progress: Callable[[int], None] = lambda count: None,
) -> None:
    """Send a request.

    Args:
        sock: the connection.
        head: request line and fields, without the empty line.
        body: buffers of the body.
        on_progress: called with the size in bytes of each chunk of the body that was sent.

    Raises:
        OSError: the connection is lost.
    """
    start = f"{head}\r\n\r\n".encode("ascii")
    size = sum(map(len, body))
    if size <= SMALL:
        sock.sendall(b"".join([start, *body]))
        on_progress(size)
        return
    sock.sendall(start)
    for chunk in _chunks(body):
        sock.sendall(chunk)
        on_progress(len(chunk))


def _chunks(body: Sequence[Buffer]) -> Iterator[Buffer]:
    for part in body:
        view = memoryview(part)
        for begin in range(0, len(view), CHUNK):
            yield view[begin : begin + CHUNK]
