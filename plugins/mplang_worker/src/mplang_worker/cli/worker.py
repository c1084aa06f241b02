"""Front process of a worker: owns the port and the key, and supervises the engines."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

from mplang_confinement import hide_memory

from mplang_core.ext import ConfigError
from mplang_worker.base.config import EngineConfig, WorkerConfig
from mplang_worker.base.logs import configure_logging, limit_log
from mplang_worker.cli.local import MAX_ERROR, READY
from mplang_worker.control.remote import add_remote_control
from mplang_worker.control.server import control_socket
from mplang_worker.front.acceptor import Acceptor
from mplang_worker.front.app import create_worker_app
from mplang_worker.front.data_sets import check_data
from mplang_worker.front.draining import drain
from mplang_worker.front.engines import Engines
from mplang_worker.front.live_config import ConfigFile
from mplang_worker.front.service_manager import notify
from mplang_worker.front.slow_start import wait_until_warm
from mplang_worker.front.warm_process import WARM
from mplang_worker.process.cgroups import engine_cgroups
from mplang_worker.process.fork_server import end_with_parent
from mplang_worker.process.forks import ForkServer
from mplang_worker.process.imports import check_installed, preload, restrict
from mplang_worker.process.interned import settle_interned
from mplang_worker.process.malloc import share_arenas
from mplang_worker.tls.certificates import Certificates

FLUSH = 0.1  # seconds for the last responses
START_TIMEOUT = 60.0  # seconds after which it is warned that engines' imports take long


def run_worker(
    config: WorkerConfig,
    *,
    forks: ForkServer | None = None,
    listening: socket.socket | None = None,
    ready: Callable[[str], None] = lambda address: None,
    start_timeout: float = START_TIMEOUT,
    file: ConfigFile | None = None,
) -> None:
    """Run a worker in this process until SIGINT or SIGTERM.

    SIGTERM lets the jobs that run end, up to ``timeouts.drain``. SIGINT, or a second SIGTERM, ends
    the worker at once. SIGHUP reloads the configuration, and ends nothing.

    Args:
        config: configuration of the worker.
        forks: its warm process, which forks the engines, and is closed at the end; by default a
            new interpreter. A fork of this process saves its imports.
        listening: listening socket; by default a new one at the configured address.
        ready: called with the worker's address when sessions can be opened.
        start_timeout: seconds after which it warns that its warm process still imports.
        file: the file of the configuration, which is read again when it changes, and at SIGHUP.

    Raises:
        ConfigError: the address cannot be bound, or a configured module or file is missing.
    """
    ignore_hangup()  # until it reloads; processes that it starts ignore it for good
    share_arenas()
    captured = config.log_format == "json"
    warm = forks or ForkServer(WARM, captured=captured)
    # cgroups are removed after all processes in them have ended
    with engine_cgroups(config, warm.pid) as cgroups, contextlib.closing(warm):
        hide_memory()
        _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))  # more than all engines have
        certificates = Certificates.of(config)
        check_installed(config)
        restrict(config.plugins)
        check_data(config)
        engines = Engines(config, certificates, warm, cgroups, file)
        if forks is None:  # a fork has what its parent has settled
            settle_interned()
        _run(config, certificates, engines, listening, ready, start_timeout)


def _run(
    config: WorkerConfig,
    certificates: Certificates | None,
    engines: Engines,
    listening: socket.socket | None,
    ready: Callable[[str], None],
    start_timeout: float,
) -> None:
    if listening is None:
        try:
            listening = socket.create_server((config.host, config.port), backlog=128)
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {config.host}:{config.port}: {error}", code="C015"
            ) from None
    import uvloop

    with listening, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:

        async def serve() -> None:
            async with control_socket(config, engines):
                await _serve(config, certificates, engines, listening, ready, start_timeout)

        runner.run(serve())


async def _serve(
    config: WorkerConfig,
    certificates: Certificates | None,
    engines: Engines,
    listening: socket.socket,
    ready: Callable[[str], None],
    start_timeout: float,
) -> None:
    app = create_worker_app(config, engines)
    add_remote_control(app, config, engines)
    acceptor = Acceptor(app, config, certificates, engines)
    loop = asyncio.get_running_loop()

    def note_certificates() -> None:
        if certificates is not None:
            digests = certificates.digests()
            loop.run_in_executor(None, engines.gate.note, "certificates", digests)

    def look(changed: bool) -> None:
        acceptor.check_connections(again=changed)
        engines.check_credentials(again=changed)
        if changed:
            note_certificates()

    limit_log(engines.log_quota.take)
    engines.start()
    note_certificates()
    serving = loop.create_task(acceptor.serve(listening))
    warming = loop.create_task(wait_until_warm(engines.warm.ready, start_timeout))
    draining: list[asyncio.Task[None]] = []
    tasks = [serving, warming]
    if certificates is not None:
        tasks.append(loop.create_task(certificates.watch(look)))

    def terminate() -> None:
        if draining or not warming.done():
            serving.cancel()
            return
        draining.append(loop.create_task(drain(config, engines)))
        draining[0].add_done_callback(lambda _: loop.call_later(FLUSH, serving.cancel))

    loop.add_signal_handler(signal.SIGINT, serving.cancel)
    loop.add_signal_handler(signal.SIGTERM, terminate)
    loop.add_signal_handler(signal.SIGHUP, lambda: engines.begin(engines.live.reload()))
    try:
        await asyncio.wait([serving, warming], return_when=asyncio.FIRST_COMPLETED)
        if warming.done():
            warming.result()
            scheme = "https" if config.tls is not None else "http"
            host, port = listening.getsockname()[:2]
            ready(f"{scheme}://{host}:{port}")
            notify("READY=1")
        with contextlib.suppress(asyncio.CancelledError):
            await serving
    finally:
        notify("STOPPING=1")
        for task in (*tasks, *draining):
            task.cancel()
        engines.stop()


def ignore_hangup() -> None:
    """Ignore SIGHUP in this process, and in those that it starts."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def prepare(argument: dict[str, Any]) -> None:
    """Import what engines need, once for all workers of a cluster on this machine.

    Args:
        argument: the plugins of all their configurations, as ``plugins``.
    """
    preload(EngineConfig(name="any", plugins=argument["plugins"]).plugins)


def run(argument: dict[str, Any], file: int) -> None:
    """Run a worker of a :class:`~mplang_worker.cli.local.LocalCluster`, in a session of its own.

    Args:
        argument: the path of its configuration, as ``config``, perhaps of its ``log``, and its
            ``start_timeout`` in seconds.
        file: descriptor of a socket: the port's listening socket comes over it, ``READY`` is
            written to it when the worker is ready, or the text of an error of its configuration,
            and its end ends the worker.
    """
    ignore_hangup()
    os.setsid()
    end_with_parent(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if argument["log"] is not None:
        log = os.open(argument["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(log, 2)
        os.close(log)
    line = socket.socket(fileno=file)

    def tell(address: str) -> None:
        line.sendall(READY)
        threading.Thread(target=_end_with, args=(line,), daemon=True).start()

    try:
        config = WorkerConfig.from_yaml(argument["config"])
        configure_logging(config.name, config.log_format, config.log_level)
        captured = config.log_format == "json"
        forks = ForkServer(WARM, here=True, captured=captured)  # before this process has a port
        _, (number, *_), _, _ = socket.recv_fds(line, 1, 1)
        source = ConfigFile(argument["config"], lambda: WorkerConfig.from_yaml(argument["config"]))
        options = {"ready": tell, "start_timeout": argument["start_timeout"], "file": source}
        run_worker(config, forks=forks, listening=socket.socket(fileno=number), **options)
    except ConfigError as error:
        line.sendall(str(error).encode()[:MAX_ERROR])
        sys.exit(1)


def _end_with(line: socket.socket) -> None:
    while line.recv(1):
        pass
    os.kill(os.getpid(), signal.SIGINT)
