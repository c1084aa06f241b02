"""HTTP client of a coordinator for one worker."""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import select
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np

from mplang_core.ext import (
    AdmissionError,
    CommError,
    ConfigError,
    RunError,
    ShutdownError,
    printable,
)
from mplang_http.address import split_address
from mplang_http.values import Buffer

MAX_SIZE = 1 << 40  # bytes of a response
CHUNK = 1 << 20  # bytes
IDEMPOTENT = ("GET", "PUT", "DELETE")


class LostWorkerError(RunError):
    """No response from a worker."""


class WorkerShutdownError(LostWorkerError, ShutdownError):
    """No response from a worker, which said before that it is being shut down."""


class RefusedError(RunError):
    """Error response of a worker.

    Attributes:
        status: HTTP status.
        code: error code.
    """

    def __init__(self, name: str, status: int, code: str, text: str) -> None:
        super().__init__(f"worker {name}: {text}")
        self.status, self.code = status, code


class WorkerClient:
    """Thread-safe HTTP client for one worker, with a pool of connections.

    Args:
        name: name of the worker, as in its certificate.
        address: ``http://host:port`` or ``https://host:port``.
        context: TLS context, needed for https.
        patience: timeout in seconds: of the worker's front to take a request, or to say that the
            process of the session is busy.
        session: name of the session that the front is asked about; a response is waited for as
            long as it is open.

    Raises:
        ConfigError: the address is malformed, or an https address has no context.
    """

    def __init__(
        self,
        name: str,
        address: str,
        context: ssl.SSLContext | None,
        patience: float,
        session: str | None = None,
    ) -> None:
        self.name = name
        self.address = address
        self._endpoint = split_address(address)
        if address.startswith("https:") and context is None:
            raise ConfigError(
                f"worker {name} at {address} wants certificates: the option tls, as certs/host "
                "for the files that mplang keygen makes"
            )
        self._context = context
        self._patience = patience
        self._session = session
        self._idle: queue.LifoQueue[http.client.HTTPConnection] = queue.LifoQueue()
        self._closed = False
        self._has_answered = False
        self._shuts_down = False  # whether it said so last

    def request(
        self,
        method: str,
        *path: str,
        body: Sequence[Buffer] = (),
        wait: float = 0.0,
        patience: float | None = None,
        on_progress: Callable[[int], None] = lambda count: None,
        **query: Any,
    ) -> Any:
        """Send a request, and return the JSON of its response.

        Args:
            method: ``GET``, ``PUT``, ``POST`` or ``DELETE``.
            *path: segments of the path.
            body: buffers to send.
            wait: seconds that the worker is asked to wait.
            patience: timeout in seconds in place of the client's; each chunk of a body restarts it.
            on_progress: called with the size in bytes of each chunk that was sent.
            **query: query parameters.

        Raises:
            RefusedError: the worker responds with an error.
            AdmissionError: the worker does not admit the program.
            CommError: the worker cannot reach a peer.
            ShutdownError: the worker is being shut down by its owner.
            LostWorkerError: the worker does not respond.
        """
        if wait:
            query["wait"] = wait
        url = "/" + "/".join(quote(part, safe="") for part in path)
        url += f"?{urlencode(query)}" if query else ""
        patience = wait + (self._patience if patience is None else patience)
        response, connection = self._send_request(method, url, body, patience, on_progress)
        data = self._read_response(response, connection)
        if response.status >= 300:
            raise self._error(response.status, data)
        self._shuts_down = False
        return _read_json(data)

    def fetch(
        self,
        *path: str,
        max_size: int = MAX_SIZE,
        patience: float | None = None,
        on_progress: Callable[[int], None] = lambda count: None,
    ) -> np.ndarray[Any, Any]:
        """Download bytes into one array, without intermediate copies.

        Args:
            *path: segments of the path.
            max_size: maximum size in bytes.
            patience: timeout in seconds in place of the client's.
            on_progress: called with the size in bytes of each chunk that was received.

        Returns:
            A read-only ``uint8[size]`` array.

        Raises:
            RefusedError: the worker responds with an error, or the size is unknown or too large.
            LostWorkerError: the worker does not respond.
        """
        url = "/" + "/".join(quote(part, safe="") for part in path)
        patience = self._patience if patience is None else patience
        response, connection = self._send_request("GET", url, (), patience)
        if response.status != 200:
            raise self._error(response.status, self._read_response(response, connection))
        size = int(response.headers.get("content-length", -1))
        if not 0 <= size <= max_size:
            connection.close()
            raise RefusedError(self.name, 200, "length", "a value without a length")
        data = np.empty(size, np.uint8)
        view = data.data
        try:
            while len(view):
                count = response.readinto(view[:CHUNK])
                if not count:
                    raise ConnectionError("the value ended early")
                view = view[count:]
                on_progress(count)
        except (OSError, http.client.HTTPException) as error:
            raise self._lost(connection, error) from error
        self._read_response(response, connection)
        data.flags.writeable = False
        return data

    def _error(self, status: int, data: bytes) -> RunError:
        """Return the exception for an error response.

        Callers raise it without a variable for it: its traceback would keep the frames alive, and
        they the values, until the garbage collector runs.
        """
        found = _read_json(data)
        described = found.get("error") if isinstance(found, dict) else None
        if not isinstance(described, dict):
            described = {"code": "http", "text": f"it answered {status}"}
        text = printable(str(described.get("text")), keep="\n")
        for kind in (AdmissionError, CommError, ShutdownError):
            if described.get("code") == kind.__name__:
                self._shuts_down = kind is ShutdownError
                return kind(f"worker {self.name}: {text}")
        return RefusedError(self.name, status, str(described.get("code")), text)

    def _send_request(
        self,
        method: str,
        url: str,
        body: Sequence[Buffer],
        patience: float,
        on_progress: Callable[[int], None] = lambda count: None,
    ) -> tuple[http.client.HTTPResponse, http.client.HTTPConnection]:
        while True:
            connection, used = self._acquire(patience)
            try:
                connection.putrequest(method, url, skip_accept_encoding=True)
                if body or method in ("PUT", "POST"):
                    connection.putheader("Content-Length", str(sum(map(len, body))))
                if url.endswith("/release"):
                    connection.putheader("Content-Type", "application/json")
                connection.endheaders()
                for chunk in _chunks(body):
                    connection.send(chunk)
                    on_progress(len(chunk))
                self._await_response(connection, patience)
                return connection.getresponse(), connection
            except http.client.RemoteDisconnected as error:
                if used and method in IDEMPOTENT:  # the worker closed an idle connection
                    connection.close()
                    continue
                raise self._lost(connection, error) from error
            except (OSError, http.client.HTTPException) as error:
                raise self._lost(connection, error) from error

    def _await_response(self, connection: http.client.HTTPConnection, patience: float) -> None:
        """Wait for a response, as long as the front answers that the session is open.

        Raises:
            TimeoutError: neither comes in time.
        """
        sock = connection.sock
        while not _is_readable(sock, patience):
            try:
                self._ask_front()
            except (OSError, http.client.HTTPException, LostWorkerError) as error:
                raise TimeoutError from error

    def _ask_front(self) -> None:
        """Ask the front, on a connection of its own, whether the session is open.

        Raises:
            OSError: it does not answer in time, or it is not.
        """
        if self._session is None:
            raise TimeoutError
        connection = self._connect(self._patience)
        try:
            connection.request("GET", f"/v1/sessions/{quote(self._session, safe='')}")
            if connection.getresponse().status != 200:
                raise TimeoutError
        finally:
            connection.close()

    def _read_response(
        self, response: http.client.HTTPResponse, connection: http.client.HTTPConnection
    ) -> bytes:
        self._has_answered = True
        try:
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise self._lost(connection, error) from error
        if self._closed or response.will_close:
            connection.close()
        else:
            self._idle.put(connection)
        return data

    def _acquire(self, patience: float) -> tuple[http.client.HTTPConnection, bool]:
        with contextlib.suppress(queue.Empty):
            while True:
                kept = self._idle.get_nowait()
                if kept.sock is not None and not _is_stale(kept.sock):
                    kept.sock.settimeout(patience)
                    return kept, True
                kept.close()
        return self._connect(patience), False

    def _connect(self, patience: float) -> http.client.HTTPConnection:
        host, port = self._endpoint
        made = http.client.HTTPConnection(host, port)
        try:
            sock = socket.create_connection((host, port), patience)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context is not None:
                sock = self._context.wrap_socket(sock, server_hostname=self.name)
            sock.settimeout(patience)
        except OSError as error:
            raise self._lost(made, error) from error
        made.sock = sock
        return made

    def _lost(
        self, connection: http.client.HTTPConnection, error: BaseException
    ) -> LostWorkerError:
        connection.close()
        if self._shuts_down:
            return WorkerShutdownError(
                f"worker {self.name} at {self.address} was shut down by its owner, and has not "
                "been started again"
            )
        if isinstance(error, TimeoutError):
            why = f"its front gave no sign of life for {self._patience:g} s (the option patience)"
        else:
            why = str(error) or type(error).__name__
        if isinstance(error, ssl.SSLError) and error.reason == "WRONG_VERSION_NUMBER":
            why += "; it has no certificates, so its address begins with http://"
        elif isinstance(error, ConnectionError) and not self._has_answered:
            why += (
                "; if it has certificates, its address begins with https://"
                if self._context is None
                else "; does it believe whoever signed the certificate of this coordinator?"
            )
        return LostWorkerError(f"worker {self.name} at {self.address} does not answer: {why}")

    def close(self) -> None:
        """Close all idle connections."""
        self._closed = True
        with contextlib.suppress(queue.Empty):
            while True:
                self._idle.get_nowait().close()


def _read_json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _chunks(body: Sequence[Buffer]) -> Iterator[Buffer]:
    for part in body:
        view = memoryview(part)
        for begin in range(0, len(view), CHUNK):
            yield view[begin : begin + CHUNK]


def _is_stale(sock: socket.socket) -> bool:
    """Return whether the peer has closed an idle connection."""
    return _is_readable(sock, 0)


def _is_readable(sock: socket.socket, timeout: float) -> bool:
    """Return whether there is something to read, or the connection has ended, within seconds."""
    if isinstance(sock, ssl.SSLSocket) and sock.pending():
        return True
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(timeout * 1000))
