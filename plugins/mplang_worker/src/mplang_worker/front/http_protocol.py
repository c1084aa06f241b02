"""HTTP on one connection of a worker: who the client is, limits of a head, and timeouts."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import math
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from cryptography.x509 import Certificate

from mplang_core.ext import AdmissionError
from mplang_worker.base.config import WorkerConfig, is_loopback
from mplang_worker.base.logs import log_cause
from mplang_worker.front.body_receiver import BodyReceiver
from mplang_worker.front.log_quota import STRANGERS
from mplang_worker.front.session_credentials import SessionCredentials
from mplang_worker.front.uvicorn_protocol import ServerConnections, ServerSettings, UvicornProtocol
from mplang_worker.tls.certificates import Certificates, peer_certificates

PACKET = 8 << 10  # bytes that are held until the end of a response
PROBES = (b"/health", b"/ready")  # what may be asked without a certificate, once a connection
KEEP_ALIVE = 75  # seconds that an idle connection is kept open
log = logging.getLogger("mplang.http.front")


@functools.lru_cache(maxsize=64)
def _is_loopback(host: bytes) -> bool:
    """Return whether a Host is loopback; else a name may have been bound to it (DNS rebinding)."""
    with contextlib.suppress(ValueError):
        return is_loopback(urlsplit(f"//{host.decode('latin-1')}").hostname or "")
    return False


class Connections(ServerConnections):
    """Connections of a worker.

    Attributes:
        strangers: those of clients that are not coordinators, oldest first.
    """

    def __init__(self) -> None:
        super().__init__()
        self.strangers: dict[LimitedHttpProtocol, None] = {}


class _OpenTransport:
    """Transport that sends the head of a response with its body, in one packet if they are small.

    What is written to whoever has gone is dropped; the transport of uvloop raises.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = b""

    def write(self, data: bytes) -> None:
        if len(self._held) + len(data) > PACKET:
            self.flush()
            self._send(data)
            return
        if not self._held:
            self._loop.call_soon(self.flush)  # at the end of this turn, if nothing follows
        self._held += data

    def flush(self) -> None:
        held, self._held = self._held, b""
        if held:
            self._send(held)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def _send(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class LimitedHttpProtocol(UvicornProtocol):
    """HTTP protocol with limits on the head, timeouts, and the client's name in the request state.

    A timer runs whenever the server waits for the client: for the head, for the rest of a body that
    no route reads, for the next request, for a response to be read.

    Args:
        settings: settings of the server.
        connections: all connections of the worker.
        worker: configuration of the worker.
        certificates: its certificates; ``None`` without TLS.
        credentials: told of the certificates of coordinators.
    """

    def __init__(
        self,
        settings: ServerSettings,
        connections: Connections,
        worker: WorkerConfig,
        certificates: Certificates | None,
        credentials: SessionCredentials,
    ) -> None:
        super().__init__(settings, connections)
        self._worker = worker
        self._certificates = certificates
        self._credentials = credentials
        self._strangers = connections.strangers
        self._chain: list[Certificate] = []  # of the client
        self._expires = math.inf
        self.caller: str | None = None
        self._head_bytes: int | None = 0  # bytes of the head so far; None once it is complete
        self._body_received = False  # whether the body of the last request is complete
        self._timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Identify the client, and refuse it or what is too much."""
        self._held_back = _OpenTransport(transport, self.loop)
        super().connection_made(self._held_back)  # type: ignore[arg-type]
        try:
            self.caller = self._identify(transport)
        except AdmissionError as error:
            with log_cause(STRANGERS):
                log.info("a certificate is refused: %s", error)
            self._make_room()
            self._send_error(403, "certificate", f"this certificate is refused: {error}")
            return
        self.app_state = {
            "caller": self.caller,
            "receive_body": self._receive_body,
            "abort": transport.abort,
        }
        self._start_timer(self._worker.timeouts.head)
        is_coordinator = self._worker.tls is None or self.caller in self._worker.coordinators
        if not is_coordinator and self.caller not in self._worker.controllers:
            self._make_room()
            return
        if is_coordinator and self.caller is not None and self._chain:
            self._credentials.met(self.caller, self._chain, self._expires)
        known = [
            each
            for each in self.connections
            if isinstance(each, LimitedHttpProtocol) and each not in self._strangers
        ]
        mine = sum(each.caller == self.caller for each in known)
        quotas, limit = self._worker.quotas, self._worker.limits.connections
        quota = limit if self._worker.tls is None else quotas.connections
        if mine > quota or len(known) > limit:
            self._send_error(429, "busy", f"{self.caller} has too many connections, or all have")

    def _make_room(self) -> None:
        """Count this as a connection of a stranger; cut the oldest one if there are too many."""
        self._strangers[self] = None
        if len(self._strangers) > self._worker.limits.unknown:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.transport.abort()

    def _identify(self, transport: asyncio.Transport) -> str | None:
        """Return the name of the client, which has none without a certificate.

        Raises:
            AdmissionError: its certificate is refused.
        """
        if self._certificates is None:
            return "local"
        chain = peer_certificates(transport.get_extra_info("ssl_object"))
        if not chain:
            return None
        party = self._certificates.trust.verify(chain)
        self._chain = chain
        # the client knows this worker by the certificate of the handshake, whatever comes later
        self._expires = min(party.expires, self._certificates.expires).timestamp()
        return party.name

    def check(self, *, again: bool) -> None:
        """Close the connection if a certificate of it has expired, or is refused.

        Args:
            again: whether to verify that of the client again.
        """
        why = "it, or that of this worker, has expired" if time.time() > self._expires else ""
        if again and self._chain and self._certificates is not None:
            try:
                self._certificates.trust.verify(self._chain)
            except AdmissionError as error:
                why = str(error)
        if why:
            log.warning("a connection of %s ends with its certificate: %s", self.caller, why)
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        self._strangers.pop(self, None)
        self._cancel_timer()
        self._cancel_stall_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a head."""
        if self.transport.is_closing():  # it was refused
            return
        if self._head_bytes is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes is not None and self._head_bytes > self._worker.limits.head:
            self._send_error(431, "head", "the request's head is too large")

    def on_message_begin(self) -> None:
        """Start the timer of a head."""
        super().on_message_begin()
        if self._head_bytes is None:
            self._head_bytes = 0
            self._start_timer(self._worker.timeouts.head)

    def on_headers_complete(self) -> None:
        """Refuse a request by its head, before a route sees it."""
        size = sum(len(name) + len(value) for name, value in self.headers) + len(self.url)
        if size > self._worker.limits.head:
            self._send_error(431, "head", "the request's head is too large")
            raise ValueError("the request's head is too large")
        refused = self._refusal()
        if refused is not None:
            self._send_error(*refused)
            raise ValueError(refused[2])
        self._head_bytes, self._body_received = None, False
        self._cancel_timer()
        super().on_headers_complete()

    def _refusal(self) -> tuple[int, str, str] | None:
        """Return why a request is refused whatever it asks: web pages may not reach a worker."""
        fields = dict(self.headers)
        if self.caller is None and self.url.partition(b"?")[0] not in PROBES:
            return 403, "no-certificate", "without a certificate there are /health and /ready only"
        if b"origin" in fields or b"sec-fetch-site" in fields:
            return 403, "browser", "a worker does not serve the requests of web pages"
        if self._worker.tls is None and not _is_loopback(fields.get(b"host", b"")):
            return 421, "host", "without tls a worker is asked at a loopback address"
        return None

    def _receive_body(
        self, file: int, count: int, on_progress: Callable[[], None]
    ) -> asyncio.Future[None]:
        """Write the rest of the body of this request to a file, as it comes.

        Args:
            file: descriptor of the file; if nobody waits any more, the rest is dropped.
            count: bytes that the application has yet to receive of this body, at least one.
            on_progress: called whenever some have been written.

        Returns:
            Is done when all have been written; fails if the connection or the file does.
        """
        receiver = BodyReceiver(self, file, count, on_progress, self.end_body)
        self.receive_by(receiver)
        return receiver.done

    def on_message_complete(self) -> None:
        """Start the timer of the next request."""
        super().on_message_complete()
        self._body_received = True
        if self.answered:
            self._start_timer(KEEP_ALIVE)

    def on_response_complete(self) -> None:
        """Send what is held, and start the timer of what comes next; a probe has one request."""
        self._held_back.flush()
        more = self.more_requests
        super().on_response_complete()
        if self.caller is None:
            self.transport.close()
        if not more and self._head_bytes is None:
            self._start_timer(KEEP_ALIVE if self._body_received else self._worker.timeouts.body)

    def pause_writing(self) -> None:
        """Start the timer of a client that does not read."""
        super().pause_writing()
        self._stall_timer = self.loop.call_later(self._worker.timeouts.body, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop it."""
        self._cancel_stall_timer()
        super().resume_writing()

    def refuse_damaged(self, why: str) -> None:
        """Send an error to who sends no HTTP."""
        self._send_error(400, "damaged", why)

    def _send_error(self, status: int, code: str, text: str) -> None:
        """Send an error response to a request that cannot be parsed, and close the connection."""
        if self.transport.is_closing():
            return
        content = json.dumps({"error": {"code": code, "text": text}}).encode()
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        self.transport.write(head.encode() + content)
        self.transport.close()

    def _cancel_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _start_timer(self, seconds: float) -> None:
        self._cancel_timer()
        self._timer = self.loop.call_later(seconds, self.transport.close)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
