"""Local cluster: worker processes on this machine, for development, tests and demos."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from mplang_http.ext import TlsFiles
from packaging.utils import canonicalize_name

from mplang_core import ClusterSpec
from mplang_core.ext import ConfigError, RunError
from mplang_worker.base.allowed_plugins import installed_plugins
from mplang_worker.base.config import WorkerConfig, WorkerMode
from mplang_worker.base.sections import DATA, GATE, section_of
from mplang_worker.front.warm_process import WARM
from mplang_worker.process.backoff import Backoff
from mplang_worker.process.forks import Child, ForkServer, how_ended

_ANY_PORT = ("127.0.0.1", 0)
START_TIMEOUT = 60.0  # seconds
LAST_LINES = 10  # of a log, in the error of a worker that does not start
READY = b"."  # what a worker writes when it is
MAX_ERROR = 4096  # bytes of what it writes if its configuration is wrong
FAILURES = 1_000_000  # failed runs: all data of a local cluster is the developer's own


class LocalCluster:
    """Cluster of worker processes on loopback, each with a front and an engine.

    Args:
        parties: number of workers, or their names.
        tls: whether to create certificates; a folder to create them in; or existing ones by name,
            including one for ``host``.
        log: directory of the log files; the workers log to stderr by default.
        mode: ``development``: the workers also take programs of one op, those of standard mode
            and of eager calls. ``production``: whole programs only, the default of a worker
            that is run alone.
        sink: a folder for what programs store, with one of each worker, which a later cluster may
            load from; a temporary one by default.
        data: the data sets of each worker, by its name, as in its configuration; read by the
            coordinator of the cluster if they name no readers. Paths here and of gates are
            relative to the working directory.
        gates: the gate of each worker that has one, by its name, as in its configuration.
        controls: the control socket of each worker that has one, likewise.
        start_timeout: seconds that each worker has to start, once what all of them need is
            imported.
        **options: further fields of each :class:`WorkerConfig`; the default of ``limits.failures``
            is ``FAILURES``, unless ``limits`` is a :class:`Limits`.

    Attributes:
        spec: the cluster, with addresses.
        tls: certificate of the coordinator, or ``None``.
        workers: processes of the fronts.

    Raises:
        RunError: a worker does not start.
        ConfigError: a worker does not start, because of its configuration.

    Example::

        with LocalCluster(3) as cluster, mp.connect("http", cluster.spec) as host:
            ...
    """

    def __init__(
        self,
        parties: int | Sequence[str],
        *,
        tls: bool | str | Mapping[str, TlsFiles] = False,
        log: str | None = None,
        mode: WorkerMode = "development",
        data: Mapping[str, Mapping[str, Mapping[str, Any]]] | None = None,
        sink: str | os.PathLike[str] | None = None,
        gates: Mapping[str, Mapping[str, Any]] | None = None,
        controls: Mapping[str, Mapping[str, object]] | None = None,
        start_timeout: float = START_TIMEOUT,
        **options: Any,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="mplang-")
        self._log, self._start_timeout = log, start_timeout
        if log is not None and not Path(log).is_dir():
            raise RunError(f"no folder {log} for the log files of workers", code="C015")
        if isinstance(parties, int):
            parties = [f"node{i}" for i in range(parties)]
        self._names = list(parties)
        for what, fields in (("data", data), ("gates", gates), ("controls", controls)):
            if unknown := sorted(set(fields or {}) - set(self._names)):
                raise ConfigError(
                    f"{what} names {unknown[0]!r}; the parties are {', '.join(self._names)}",
                    code="C015",
                )
        self.tls: TlsFiles | None = None
        self._files: Mapping[str, TlsFiles] = {}
        self.workers: list[Child] = []
        self._lines: list[socket.socket] = []
        options["mode"] = mode
        self._data = data or {}
        self._gates, self._controls = gates or {}, controls or {}
        self._sink = Path(self._folder.name if sink is None else sink).absolute() / "sinks"
        self._listening = {name: socket.create_server(_ANY_PORT) for name in self._names}
        scheme = "https" if tls else "http"
        addresses = {
            name: f"{scheme}://127.0.0.1:{sock.getsockname()[1]}"
            for name, sock in self._listening.items()
        }
        if tls:
            options["peers"] = {**addresses, **options.get("peers", {})}
            options.setdefault("plugins", installed_plugins())
        self._configs = {name: self._configure(name, tls, options) for name in self._names}
        self.spec = ClusterSpec([{"name": name, "address": at} for name, at in addresses.items()])
        self._forks = [self._new_server()]
        self._backoffs: dict[int, Backoff] = {}
        self._restarted: dict[int, ForkServer] = {}
        self._due: dict[int, float] = {}  # when a worker that has ended is started again
        try:
            for name, started in [(name, self._start(name)) for name in self._names]:
                self._wait_for(name, *started)
        except BaseException:
            self.close()
            raise

    def _configure(
        self, name: str, tls: bool | str | Mapping[str, TlsFiles], options: Mapping[str, Any]
    ) -> WorkerConfig:
        fields: dict[str, Any] = {"name": name, "log_level": "warning", **options}
        limits = fields.get("limits", {})
        if isinstance(limits, Mapping):
            fields["limits"] = {"failures": FAILURES, **limits}
        if tls:
            from mplang_worker.tls.keygen import make_certificates

            folder = Path(tls if isinstance(tls, str) else self._folder.name).absolute()
            if isinstance(tls, Mapping):
                self._files, self.tls = tls, tls["host"]
            elif self.tls is None:
                self._files = make_certificates(folder, [*self._names, "host"], replace=True)
                self.tls = self._files["host"]
            fields = {"tls": self._files[name], "coordinators": ("host",), **fields}
        reader = fields["coordinators"][0] if tls else "local"
        fields["data"] = _read_by(reader, self._data.get(name, {}))
        if name in self._gates:
            fields["gate"] = self._gates[name]
        if name in self._controls:
            fields["control"] = self._controls[name]
        plugins = fields.get("plugins") or installed_plugins()
        if "mplang-data" in {str(canonicalize_name(each)) for each in plugins}:
            fields.setdefault("sink", self._sink_of(name))
        for section in (DATA, GATE):
            if fields.get(section):
                fields[section] = section_of(section).read(fields[section], os.getcwd())
        port = self._listening[name].getsockname()[1]
        config = WorkerConfig(**fields, port=port)
        self._write(config)
        return config

    def _sink_of(self, name: str) -> dict[str, str]:
        """Return the sink of a worker, with a key beside it."""
        self._sink.mkdir(parents=True, exist_ok=True)
        key = self._sink / f"{name}.key"
        if not key.exists():
            key.touch(mode=0o600)
            key.write_bytes(os.urandom(32))
        return {"folder": str(self._sink / name), "key_file": str(key)}

    def _write(self, config: WorkerConfig) -> None:
        text = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)
        self._path(config.name).write_text(text, encoding="utf-8")

    def _path(self, name: str) -> Path:
        return Path(self._folder.name) / f"{name}.yaml"

    def _start(self, name: str) -> tuple[Child, socket.socket]:
        ours, theirs = socket.socketpair()
        listening = self._listening.pop(name)
        socket.send_fds(ours, [b"."], [listening.fileno()])
        listening.close()
        log, patience = self._log_of(name), self._start_timeout
        argument = {
            "config": str(self._path(name)),
            "log": None if log is None else str(log),
            "start_timeout": 2 * patience,  # so that it is this process that gives up
        }
        with theirs:
            try:
                process = self._forks[-1].fork(argument, theirs.fileno(), patience)
            except OSError as error:
                ours.close()
                raise RunError(
                    f"worker {name} does not start: {error}; LocalCluster(…, "
                    f"start_timeout={patience:g}) sets the time to wait",
                    code="C015",
                ) from error
        self.workers.append(process)
        self._lines.append(ours)  # the worker ends when it is closed
        return process, ours

    def _log_of(self, name: str) -> Path | None:
        """Return the log file of a worker; ``None`` if it logs to stderr."""
        return None if self._log is None else (Path(self._log) / f"{name}.log").absolute()

    def _wait_for(self, name: str, process: Child, told: socket.socket) -> None:
        """Wait until a worker is ready.

        Raises:
            ConfigError: its configuration is wrong.
            RunError: it ends, or takes too long.
        """
        told.settimeout(self._start_timeout)
        late = False
        try:
            line = told.recv(MAX_ERROR)  # written at once
        except (TimeoutError, ConnectionError) as error:
            line, late = b"", isinstance(error, TimeoutError)
        if line == READY:
            return
        if line:
            process.wait()
            raise ConfigError(line.decode(errors="replace"), code="C015")
        process.kill()
        ended = how_ended(process.wait())
        what = (
            f"worker {name} was not ready {self._start_timeout:g} s after its start, which imports "
            "what engines need, and was ended; if the machine is busy, give it longer: "
            f"LocalCluster(…, start_timeout={5 * self._start_timeout:g})"
            if late
            else f"worker {name} ended {ended} before it was ready"
        )
        raise RunError(f"{what}\n{_last_lines(self._log_of(name))}", code="C015")

    def _new_server(self) -> ForkServer:
        """Return a fork server of workers, which has imported what their engines need."""
        made = ForkServer("mplang_worker.cli.worker", WARM)
        plugins = self._configs[self._names[0]].model_dump(mode="json")["plugins"]
        try:
            made.prepare({"plugins": plugins})
        except OSError as error:
            made.close()
            raise RunError(f"workers do not start: {error}", code="C015") from error
        except ConfigError:
            made.close()
            raise
        return made

    def signal(self, rank: int, number: int) -> None:
        """Send a signal to a worker, front and engine.

        Args:
            rank: rank of the worker.
            number: number of the signal.
        """
        os.killpg(self.workers[rank].pid, number)

    def restart(self, rank: int) -> None:
        """Start a worker that has exited, at the same address, in a new interpreter."""
        self.workers[rank].wait(10)
        if rank in self._restarted:  # nothing else runs there
            self._restarted.pop(rank).close()
        self._forks.append(self._new_server())
        self._restarted[rank] = self._forks[-1]
        name = self._names[rank]
        try:
            address = "127.0.0.1", self._configs[name].port
            self._listening[name] = socket.create_server(address)
        except OSError as error:
            raise RunError(f"worker {name} does not start: {error}", code="C015") from error
        started = self._start(name)
        self.workers[rank] = self.workers.pop()
        self._wait_for(name, *started)

    def watch(self) -> Iterator[str]:
        """Start each worker that has ended again, at the same address, with a back-off.

        Call it again and again.

        Yields:
            A line for each worker that has ended, and for each that was started again.

        Raises:
            ConfigError: its configuration is wrong.
        """
        now = time.monotonic()
        for rank, name in enumerate(self._names):
            code = self.workers[rank].poll()
            if code is None:
                continue
            if rank not in self._due:
                delay = self._backoffs.setdefault(rank, Backoff()).ended()
                self._due[rank] = now + delay
                yield f"{name} ended {how_ended(code)}; it is started again in {delay:g} s"
            if self._due[rank] > now:
                continue
            try:
                self.restart(rank)
            except ConfigError:
                raise
            except RunError as error:  # such as a port that is taken
                self._due[rank] = now + self._backoffs[rank].ended()
                yield str(error)
            else:
                self._backoffs[rank].begun()
                del self._due[rank]
                yield f"{name} is started again at {self.spec.nodes[rank].address}"

    def close(self) -> None:
        """Stop all workers."""
        for process in self.workers:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGCONT)
            process.terminate()  # one that has yet to start; others end with their line
        for line in self._lines:
            line.close()
        deadline = time.monotonic() + 5
        for process in self.workers:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.kill()  # one that began just now has no group yet
                process.wait()
        for server in self._forks:
            server.close()
        for listening in self._listening.values():
            listening.close()
        self._folder.cleanup()

    def __repr__(self) -> str:
        return f"<LocalCluster of {', '.join(node.name for node in self.spec.nodes)}>"

    def __enter__(self) -> LocalCluster:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _last_lines(log: Path | None) -> str:
    """Return what the log of a worker says last, or where it is."""
    if log is None:
        return "what it logged is above, on stderr; LocalCluster(…, log=FOLDER) keeps it in files"
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    if not lines:
        return f"it has logged nothing to {log}"
    return "\n  ".join([f"the end of its log, {log}:", *lines[-LAST_LINES:]])


def _read_by(reader: str, data: object) -> object:
    """Return data sets with a reader where they name none; what is none of them is told later."""
    if not isinstance(data, Mapping):
        return data
    return {
        name: {"readers": [reader], **each} if isinstance(each, Mapping) else each
        for name, each in data.items()
    }
