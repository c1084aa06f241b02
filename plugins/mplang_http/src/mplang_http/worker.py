"""Front process of a worker: owns the port, and supervises the engine."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable

from mplang_core.ext import ConfigError
from mplang_http.acceptor import Acceptor
from mplang_http.app import create_worker_app
from mplang_http.config import WorkerConfig
from mplang_http.logs import configure_logging
from mplang_http.supervisor import Supervisor
from mplang_http.tls import certificate_name, server_context

START_TIMEOUT = 60.0  # seconds that an engine has to start


def run_worker(
    config: WorkerConfig,
    *,
    listening: socket.socket | None = None,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Run a worker in this process until SIGINT or SIGTERM.

    Args:
        config: configuration of the worker.
        listening: listening socket; by default a new one at the configured address.
        ready: called with the worker's address when the engine is ready.

    Raises:
        ConfigError: the address cannot be bound, or a configured module or file is missing.
    """
    _check(config)
    if listening is None:
        try:
            listening = socket.create_server((config.host, config.port), backlog=128)
        except OSError as error:
            raise ConfigError(f"cannot listen on {config.host}:{config.port}: {error}") from None
    import uvloop

    with listening, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(config, listening, ready))


def _check(config: WorkerConfig) -> None:
    """Check imports and certificates here, for errors that only the engine would raise."""
    for module in config.imports:
        try:
            installed = importlib.util.find_spec(module) is not None
        except (ImportError, ValueError):
            installed = False
        if not installed:
            raise ConfigError(
                f"WorkerConfig {config.name}: field 'imports': no module {module!r} is installed; "
                "a worker imports nothing from its working directory"
            )
    if config.tls is not None:
        server_context(config.tls)
        name = certificate_name(config.tls.cert)
        if name != config.name:
            raise ConfigError(
                f"WorkerConfig {config.name}: field 'tls': {config.tls.cert} is of {name!r}, so "
                f"nobody would take this worker for {config.name}"
            )


async def _serve(
    config: WorkerConfig, listening: socket.socket, ready: Callable[[str], None]
) -> None:
    engine = Supervisor(config)
    acceptor = Acceptor(create_worker_app(config, engine), config, engine)
    loop = asyncio.get_running_loop()
    engine.start()
    serving = loop.create_task(acceptor.serve(listening))
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, serving.cancel)
    try:
        await engine.ready(START_TIMEOUT)
        scheme = "https" if config.tls is not None else "http"
        host, port = listening.getsockname()[:2]
        ready(f"{scheme}://{host}:{port}")
        with contextlib.suppress(asyncio.CancelledError):
            await serving
    finally:
        serving.cancel()
        engine.stop()


def _run_as_child(config: str, pipe: int) -> None:
    """Run a worker that writes its address to a pipe, and exits with its parent process."""
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def tell(address: str) -> None:
        with open(pipe, "w") as out:
            out.write(json.dumps({"address": address}) + "\n")

    made = WorkerConfig.from_yaml(config)
    configure_logging(made)
    run_worker(made, ready=tell)


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":  # the entry point of LocalCluster
    _run_as_child(sys.argv[1], int(sys.argv[2]))
