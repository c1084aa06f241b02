"""gRPC with generic handlers: bytes in, bytes out, no protoc."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

import grpc
import msgspec
from mplang_core.ext import CommError, ConfigError, Failure

from mplang_grpc import wire

SERVICE = "mplang.Party"
THREADS = 64  # requests that a party serves at once, the programs that it runs among them
GRACE = 1.0  # seconds that what is being asked gets to end
OPTIONS = (
    ("grpc.max_receive_message_length", 1 << 30),
    ("grpc.so_reuseport", 0),  # a port that is taken is an error
    ("grpc.keepalive_time_ms", 5_000),  # who is asked in vain for a sign of life …
    ("grpc.keepalive_timeout_ms", 5_000),  # … is lost, and so is what he was to answer
    ("grpc.http2.ping_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 1_000),
)

log = logging.getLogger("mplang.grpc")

Methods: TypeAlias = Mapping[type[Any], Callable[[Any], Any]]
"""What a server does, by class of the request."""


class Server:
    """Answers requests.

    Args:
        address: ``host:port``; the port 0 is any that is free.
        methods: what it does.

    Attributes:
        address: where it is.

    Raises:
        ConfigError: it cannot listen there.
    """

    def __init__(self, address: str, methods: Methods) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="mplang-grpc")
        self._server = grpc.server(self._pool, options=OPTIONS)
        handlers = {
            kind.__name__: grpc.unary_unary_rpc_method_handler(_answering(kind, method))
            for kind, method in methods.items()
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, handlers),)
        )
        try:
            port = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise ConfigError(f"cannot listen on {address}: {error}") from None
        self.address = f"{address.rpartition(':')[0]}:{port}"
        self._server.start()

    def wait(self) -> None:
        """Wait for its end."""
        self._server.wait_for_termination()

    def close(self) -> None:
        """End it, and what is being asked."""
        self._server.stop(GRACE).wait()
        self._pool.shutdown(wait=False, cancel_futures=True)


def _answering(kind: type[Any], method: Callable[[Any], Any]) -> Callable[[bytes, Any], bytes]:
    def answer(data: bytes, context: object) -> bytes:
        try:
            done, failure = method(wire.decode(kind, data)), None
        except Exception as error:
            log.debug("why a request failed", exc_info=error)
            done, failure = None, Failure.public(error)
        return wire.encode(wire.Answer(msgspec.Raw(wire.encode(done)), failure))

    return answer


class Client:
    """Asks one party.

    Args:
        rank: the party, for errors.
        address: where it is.
    """

    def __init__(self, rank: int, address: str) -> None:
        self._who = f"party {rank} at {address}"
        self._channel = grpc.insecure_channel(address, OPTIONS)

    def ask(self, request: wire.Request, timeout: float) -> Any:
        """Ask, and wait for the answer.

        Raises:
            MPLangError: the other could not do it.
            CommError: it does not answer.
        """
        return self._read(request, lambda: self._method(request)(wire.encode(request), timeout))

    def start(
        self,
        request: wire.Request,
        timeout: float | None = None,
        read: Callable[[Any], Any] = lambda done: done,
    ) -> Future[Any]:
        """Ask, and do not wait; what ``read`` makes of the answer will be in the future."""
        future = Future[Any]()

        def settle(result: Callable[[], bytes]) -> None:
            try:
                future.set_result(read(self._read(request, result)))
            except BaseException as error:
                future.set_exception(error)

        try:
            call = self._method(request).future(wire.encode(request), timeout)
        except ValueError as error:  # the connection is closed
            future.set_exception(CommError(f"{self._who} is not asked any more: {error}"))
        else:
            call.add_done_callback(lambda call: settle(call.result))
        return future

    def _method(self, request: wire.Request) -> Any:
        return self._channel.unary_unary(f"/{SERVICE}/{type(request).__name__}")

    def _read(self, request: wire.Request, call: Callable[[], bytes]) -> Any:
        try:
            answer = wire.decode(wire.Answer, call())
        except (grpc.RpcError, grpc.FutureCancelledError, ValueError) as error:
            why = error.details() if isinstance(error, grpc.Call) else type(error).__name__
            raise CommError(f"{self._who} does not answer: {why}") from None
        if answer.failure is not None:
            raise answer.failure.error()
        return wire.decode(request.gives, answer.done)

    def close(self) -> None:
        """End the connection, and what is being asked."""
        with contextlib.suppress(Exception):
            self._channel.close()
