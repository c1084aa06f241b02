"""HTTP client of a coordinator for one worker."""

from __future__ import annotations

import contextlib
import json
import queue
import select
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np

from mplang_core.ext import (
    AdmissionError,
    CommError,
    ConfigError,
    Refusals,
    RunError,
    ShutdownError,
    printable,
)
from mplang_http.base.address import split_address
from mplang_http.coordinator.exchange import NoResponseError, Response, send_request
from mplang_http.coordinator.refusals import read_refusals
from mplang_http.tls.clock_hint import clock_hint
from mplang_http.wire.values import Buffer

MAX_SIZE = 1 << 40  # bytes of a response
IDEMPOTENT = ("GET", "PUT", "DELETE")


class LostWorkerError(RunError, code="R018"):
    """No response from a worker."""


class WorkerShutdownError(LostWorkerError, ShutdownError, code="R004"):
    """No response from a worker, which said before that it is being shut down."""


class RefusedError(RunError, code="R019"):
    """Error response of a worker.

    Attributes:
        status: HTTP status.
        reason: the worker's own word for it, as ``"busy"``.
        refusals: what the worker refuses, as data.
        retry_after: seconds after which the worker wants to be asked again; ``None`` if never.
    """

    def __init__(
        self, name: str, status: int, reason: str, text: str, retry_after: float | None = None
    ) -> None:
        super().__init__(f"worker {name}: {text}")
        self.status, self.reason, self.retry_after = status, reason, retry_after
        self.refusals = Refusals()


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
        self._host = address.partition("//")[2] or address
        if address.startswith("https:") and context is None:
            raise ConfigError(
                f"worker {name} at {address} wants certificates: the option tls, as certs/host "
                "for the files that mplang keygen makes",
                code="C004",
            )
        self._context = context
        self._patience = patience
        self._session = session
        self._idle: queue.LifoQueue[socket.socket] = queue.LifoQueue()
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
        response, sock = self._send_request(method, url, body, patience, on_progress)
        data = self._read_response(response, sock)
        if response.status >= 300:
            raise self._error(response.status, data, response.retry_after)
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
        response, sock = self._send_request("GET", url, (), patience)
        if response.status != 200:
            raise self._error(response.status, self._read_response(response, sock))
        if response.size is None or response.size > max_size:
            sock.close()
            raise RefusedError(self.name, 200, "length", "a value without a length")
        data = np.empty(response.size, np.uint8)
        try:
            for count in response.read_into(data.data, self._check_front):
                on_progress(count)
        except OSError as error:
            raise self._lost(sock, error) from error
        self._keep(response, sock)
        data.flags.writeable = False
        return data

    @property
    def is_closed(self) -> bool:
        """Whether its connections were closed for good."""
        return self._closed

    def _error(self, status: int, data: bytes, retry_after: float | None = None) -> RunError:
        """Return the exception for an error response.

        Callers raise it without a variable for it: its traceback would keep the frames alive, and
        they the values, until the garbage collector runs.
        """
        found = _read_json(data)
        described = found.get("error") if isinstance(found, dict) else None
        if not isinstance(described, dict):
            described = {"code": "http", "text": f"it answered {status}"}
        text = printable(str(described.get("text")), keep="\n")
        refusals = Refusals(read_refusals(self.name, described.get("refusals", [])))
        for kind in (AdmissionError, CommError, ShutdownError):
            if described.get("code") == kind.__name__:
                self._shuts_down = kind is ShutdownError
                code = str(described.get("explain", ""))
                made = kind(f"worker {self.name}: {text}", code=code)
                if isinstance(made, AdmissionError):
                    made.refusals = refusals
                return made
        refused = RefusedError(self.name, status, str(described.get("code")), text, retry_after)
        refused.refusals = refusals
        return refused

    def _send_request(
        self,
        method: str,
        url: str,
        body: Sequence[Buffer],
        patience: float,
        on_progress: Callable[[int], None] = lambda count: None,
        *,
        asks_front: bool = False,
    ) -> tuple[Response, socket.socket]:
        head = f"{method} {url} HTTP/1.1\r\nHost: {self._host}"
        if body or method in ("PUT", "POST"):
            head += f"\r\nContent-Length: {sum(map(len, body))}"
        if url.endswith("/release"):
            head += "\r\nContent-Type: application/json"
        while True:
            sock, used = self._acquire(patience)
            try:
                send_request(sock, head, body, on_progress)
                if not asks_front:
                    self._await_response(sock, patience)
                response = Response(sock)
                self._has_answered = True
                return response, sock
            except NoResponseError as error:
                if used and method in IDEMPOTENT:  # the worker closed an idle connection
                    sock.close()
                    continue
                raise self._lost(sock, error) from error
            except OSError as error:
                raise self._lost(sock, error) from error

    def _await_response(self, sock: socket.socket, patience: float) -> None:
        """Wait for a response, as long as the front answers that the session is open.

        Raises:
            TimeoutError: neither comes in time.
        """
        while not _is_readable(sock, patience):
            self._check_front()

    def _check_front(self) -> None:
        """Check that the front answers that the session is open.

        Raises:
            TimeoutError: it does not.
        """
        try:
            self._ask_front()
        except (OSError, LostWorkerError) as error:
            raise TimeoutError from error

    def _ask_front(self) -> None:
        """Ask the front, on another connection, whether the session is open.

        One that is idle spares a busy front, and this process, another handshake.

        Raises:
            OSError: it does not answer in time, or it is not.
        """
        if self._session is None:
            raise TimeoutError
        path = f"/v1/sessions/{quote(self._session, safe='')}"
        response, sock = self._send_request("GET", path, (), self._patience, asks_front=True)
        self._read_response(response, sock)
        if response.status != 200:
            raise TimeoutError

    def _read_response(self, response: Response, sock: socket.socket) -> bytes:
        try:
            data = response.read()
        except OSError as error:
            raise self._lost(sock, error) from error
        self._keep(response, sock)
        return data

    def _keep(self, response: Response, sock: socket.socket) -> None:
        """Keep a connection for the next request, if it takes one."""
        if self._closed or not response.keeps:
            sock.close()
        else:
            self._idle.put(sock)

    def _acquire(self, patience: float) -> tuple[socket.socket, bool]:
        with contextlib.suppress(queue.Empty):
            while True:
                kept = self._idle.get_nowait()
                if not _is_stale(kept):
                    kept.settimeout(patience)
                    return kept, True
                kept.close()
        return self._connect(patience), False

    def _connect(self, patience: float) -> socket.socket:
        sock = None
        try:
            sock = socket.create_connection(self._endpoint, patience)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context is not None:
                sock = self._context.wrap_socket(sock, server_hostname=self.name)
            sock.settimeout(patience)
            return sock
        except OSError as error:
            raise self._lost(sock, error) from error

    def _lost(self, sock: socket.socket | None, error: BaseException) -> LostWorkerError:
        if sock is not None:
            sock.close()
        if self._shuts_down:
            return WorkerShutdownError(
                f"worker {self.name} at {self.address} was shut down by its owner, and has not "
                "been started again"
            )
        if isinstance(error, TimeoutError):
            why = f"its front gave no sign of life for {self._patience:g} s (the option patience)"
        else:
            why = str(error) or type(error).__name__
        why += clock_hint(error)
        if isinstance(error, ssl.SSLError) and error.reason == "WRONG_VERSION_NUMBER":
            why += "; it has no certificates, so its address begins with http://"
        elif isinstance(error, ConnectionRefusedError):
            why += "; nothing listens there"
        elif isinstance(error, ConnectionError | ssl.SSLEOFError) and not self._has_answered:
            why += (
                "; if it has certificates, its address begins with https://"
                if self._context is None
                else "; does it believe whoever signed the certificate of this coordinator, and is "
                "that valid by its clock?"
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
