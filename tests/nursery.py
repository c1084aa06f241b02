"""Process from which fork servers of tests are forked; it has imported what takes long.

A fork server imports for two seconds. The tests have dozens, each with an environment of its own,
as its path begins with plugins of one test. Which plugins there are is found by the fork.
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
from collections.abc import Sequence

IMPORTED = (
    "duckdb", "jax", "jaxlib.lapack", "opendp.measurements", "pandas", "pyarrow.compute",
    "pyarrow.csv", "pyarrow.dataset", "pyarrow.parquet", "spu.api", "mplang_worker.cli.worker",
    "mplang_worker.engine.warm",
)  # fmt: skip
MOST = 1 << 20  # bytes of a request
PATH = "PYTHONPATH"


class Nursery:
    """Client of the process.

    Args:
        environment: that it imports in. That of a fork may have more variables of ours, and a
            longer path that ends with this one's.
    """

    def __init__(self, environment: dict[str, str]) -> None:
        self._path = environment.get(PATH, "")
        self._sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        number = theirs.fileno()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(number)], pass_fds=[number], env=environment
            )

    def start(self, modules: Sequence[str], number: int) -> Forked:
        """Fork a server: it has this process's environment, folder and output.

        Args:
            modules: that it imports; the first one has what it runs.
            number: descriptor of the socket to its client.
        """
        request = {
            "environment": dict(os.environ), "folder": os.getcwd(), "modules": modules,
            "more": os.environ.get(PATH, "").removesuffix(self._path),
        }  # fmt: skip
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

    def wait(self) -> None:
        """Wait for its end."""
        if self._handle >= 0:
            self._end.poll()
            os.close(self._handle)
            self._handle = -1


def _import() -> None:
    """Import what forks need; with the threads of OpenMP that mplang_spu's libspu.py gives it."""
    limit, cores = "OMP_THREAD_LIMIT", os.cpu_count() or 1
    limited = limit not in os.environ and cores < 4
    if limited:
        os.environ[limit] = "1"
    gc.disable()
    for name in IMPORTED:
        with contextlib.suppress(ImportError):  # what this environment has no tests of
            importlib.import_module(name)
    gc.freeze()
    gc.enable()
    if limited:
        del os.environ[limit]


def _serve(
    files: list[int], environment: dict[str, str], folder: str, modules: list[str], more: str
) -> None:
    number, *printed = files
    for i, file in enumerate(printed, 1):
        os.dup2(file, i)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[:0] = filter(None, more.split(os.pathsep))
    from mplang_worker.process import fork_server

    fork_server._serve(modules, number)


def main(number: int) -> None:
    """Import, and fork a server for each request."""
    _import()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits here for what was forked
    with socket.socket(fileno=number) as sock:
        while True:
            data, files, _, _ = socket.recv_fds(sock, MOST, 3)
            if not data:
                return
            if (pid := os.fork()) == 0:
                sock.close()
                _serve(files, **json.loads(data))
                return
            for each in files:
                os.close(each)
            sock.send(str(pid).encode())


if __name__ == "__main__":
    if sys.argv[1:]:
        main(int(sys.argv[1]))
    else:  # so that it is compiled, once
        _import()
