"""Process from which tests fork what they would start: it has imported what takes long.

A fork server imports for two seconds. The tests have dozens, each with an environment of its own,
as its path begins with plugins of one test. Which plugins there are is found by the fork, which
loads them; those of this environment are imported here.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from typing import Any

IMPORTED = (
    "duckdb", "jax", "jaxlib.lapack", "opendp.measurements", "pandas", "pyarrow.compute",
    "pyarrow.csv", "pyarrow.dataset", "pyarrow.parquet", "spu.api", "mplang_worker.cli.worker",
    "mplang_worker.engine.warm",
)  # fmt: skip
MOST = 1 << 20  # bytes of a request
PATH = "PYTHONPATH"
SEED = 2  # of hashes of strings, in it and in all forks: FeopSuite asks what programs are with it


class Nursery:
    """Client of the process.

    Args:
        environment: that it imports in. That of a fork may have more variables of ours, and a
            longer path that ends with this one's.
        *imported: modules that it imports; what engines need, and all plugins, by default.
    """

    def __init__(self, environment: dict[str, str], *imported: str) -> None:
        self._path = environment.get(PATH, "")
        self._sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        number = theirs.fileno()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(number), *imported],
                pass_fds=[number],
                env=environment | {"PYTHONHASHSEED": str(SEED)},
            )

    def start(self, modules: Sequence[str], number: int) -> Forked:
        """Fork a server: it has this process's environment, folder and output.

        Args:
            modules: that it imports; the first one has what it runs.
            number: descriptor of the socket to its client.
        """
        more = os.environ.get(PATH, "").removesuffix(self._path)
        return self._fork(number, {"serve": {"modules": modules, "more": more}})

    def ask(self, question: str, args: Sequence[object], timeout: float) -> Any:
        """Call ``module:function`` in a fork that has this process's import path.

        Args:
            question: what to call; gives data that JSON can write.
            args: data for it.
            timeout: seconds that it has.

        Raises:
            RuntimeError: it failed; with the end of what it wrote.
        """
        call = {"question": question, "args": args, "path": sys.path}
        with tempfile.TemporaryFile() as answer:
            self._fork(answer.fileno(), {"call": call}).wait(timeout)
            answer.seek(0)
            told = json.loads(answer.read() or b'{"error": "it has ended"}')
        if "error" in told:
            raise RuntimeError(told["error"])
        return told["found"]

    def _fork(self, number: int, work: dict[str, object]) -> Forked:
        request = {"environment": dict(os.environ), "folder": os.getcwd(), **work}
        socket.send_fds(self._sock, [json.dumps(request).encode()], [number, 1, 2])
        return Forked(int(self._sock.recv(32)))

    def close(self) -> None:
        """End it; what was forked goes on."""
        self._sock.close()
        self._process.wait()


class Forked:
    """Process that was forked; its methods are those of :class:`subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._end = select.poll()
        self._handle = -1
        with contextlib.suppress(ProcessLookupError):  # it has ended
            self._handle = os.pidfd_open(pid)
            self._end.register(self._handle, select.POLLIN)

    def wait(self, timeout: float | None = None) -> None:
        """Wait for its end, or end it after so many seconds."""
        if self._handle >= 0:
            if not self._end.poll(None if timeout is None else timeout * 1000):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            os.close(self._handle)
            self._handle = -1


def _import(names: Sequence[str]) -> None:
    """Import what forks need; with the threads of OpenMP that mplang_spu's libspu.py gives it."""
    limit, cores = "OMP_THREAD_LIMIT", os.cpu_count() or 1
    limited = limit not in os.environ and cores < 4
    if limited:
        os.environ[limit] = "1"
    gc.disable()
    for name in names or (*IMPORTED, *_modules_of_plugins()):
        with contextlib.suppress(Exception):  # what is not here, or fails: its tests tell
            module = importlib.import_module(name)
            for each in getattr(module, "mplang_preload", tuple)():
                importlib.import_module(each)
    gc.freeze()
    gc.enable()
    if limited:
        del os.environ[limit]


def _modules_of_plugins() -> list[str]:
    """Return what entry points name, without a record of it in the manager, which forks make."""
    from importlib_metadata import entry_points

    from mplang_core.plugins.manager import groups_of

    found = entry_points()
    groups = groups_of(found)
    return sorted({entry.module for entry in found if entry.group in groups})


def _work(
    files: list[int],
    environment: dict[str, str],
    folder: str,
    serve: dict[str, Any] | None = None,
    call: dict[str, Any] | None = None,
) -> None:
    number, *printed = files
    for i, file in enumerate(printed, 1):
        os.dup2(file, i)
        os.close(file)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # which is ignored here: no exit codes
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    if serve is not None:
        _serve(number, **serve)
    if call is not None:
        _call(number, **call)


def _serve(number: int, modules: list[str], more: str) -> None:
    sys.path[:0] = filter(None, more.split(os.pathsep))
    from mplang_worker.process import fork_server

    fork_server._serve(modules, number)


def _call(number: int, question: str, args: list[Any], path: list[str]) -> None:
    sys.path[:] = path
    module, _, function = question.partition(":")
    try:
        told = {"found": getattr(importlib.import_module(module), function)(*args)}
    except BaseException:
        told = {"error": traceback.format_exc(-4)}
    with open(number, "w", encoding="utf-8") as answer:
        json.dump(told, answer)


def main(number: int, imported: Sequence[str]) -> None:
    """Import, and fork a process for each request."""
    _import(imported)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits here for what was forked
    with socket.socket(fileno=number) as sock:
        while True:
            data, files, _, _ = socket.recv_fds(sock, MOST, 3)
            if not data:
                return
            if (pid := os.fork()) == 0:
                sock.close()
                _work(files, **json.loads(data))
                return
            for each in files:
                os.close(each)
            sock.send(str(pid).encode())


if __name__ == "__main__":
    if sys.argv[1:]:
        main(int(sys.argv[1]), sys.argv[2:])
    else:  # so that it is compiled, once
        _import(())
