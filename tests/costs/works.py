"""Works whose cost is counted: tracing, planning, a message, a session's opening."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator

import numpy as np
from mplang_http import LocalCluster
from mplang_worker.link.comm import HttpCommunicator
from mplang_worker.link.connection import Connection
from mplang_worker.link.links import Links

import mplang_core as mp
from mplang_core.ir import from_bytes, to_bytes

OPS = 200
MESSAGES = 200
RUN = "run"

Work = Callable[[], object]


@mp.simple_op("costs.step")
def step(x: mp.TensorType) -> mp.TensorType:
    """Adds one."""
    return x


@mp.kernel("costs.step")
def _step(ctx, x):
    return x + 1


def chain(x):
    """Return what 200 ops make of a value."""
    for _ in range(OPS):
        x = mp.invoke(step, x)
    return x


CLUSTER = mp.ClusterSpec.simple(2)


@contextlib.contextmanager
def tracing() -> Iterator[Work]:
    """Trace a function of 200 ops."""
    yield lambda: mp.trace(mp.TraceContext(CLUSTER), chain, 0)


@contextlib.contextmanager
def planning() -> Iterator[Work]:
    """Read a program of 200 ops, verify it, and plan its run at a party."""
    data = to_bytes(mp.trace(mp.TraceContext(CLUSTER), chain, 0).program)
    with mp.Simulator(CLUSTER) as simulator:
        worker = simulator._parties.workers[0]
        yield lambda: worker.make_plan(from_bytes(data))


@contextlib.contextmanager
def message() -> Iterator[Work]:
    """Send 200 messages of 32 bytes on a link between two workers, one after the other."""
    names = ["a", "b"]
    with contextlib.ExitStack() as stack:
        links = [Links(name, max_message=1 << 20) for name in names]
        with socket.create_server(("127.0.0.1", 0)) as server:
            far = socket.create_connection(server.getsockname())
            near, _ = server.accept()
        for mine, other, sock in zip(links, names[::-1], (near, far), strict=True):
            stack.callback(mine.close)
            mine.add(Connection(sock, 30.0), other)
        a, b = (HttpCommunicator(i, names, links[i], 30.0) for i in range(2))
        for comm in (a, b):
            comm.open(RUN)
        for comm in (a, b):
            comm.openings(RUN, [1 - comm.rank])
        data, count = np.zeros(32, np.uint8), iter(range(1 << 30))

        def work() -> None:
            for _ in range(MESSAGES):
                key = f"{RUN}/{next(count)}"
                a.send(1, key, data)
                b.recv(0, key)

        yield work


@contextlib.contextmanager
def opening() -> Iterator[Work]:
    """Open and link a session of two workers, at its coordinator; see :func:`workers`."""
    cluster = mp.ClusterSpec.model_validate_json(os.environ[WORKERS])
    yield lambda: mp.connect("http", cluster)


WORKERS = "MPLANG_COST_WORKERS"


@contextlib.contextmanager
def workers() -> Iterator[dict[str, str]]:
    """Run workers; they start no process under valgrind, which lacks system calls for it.

    Yields:
        The environment of a process that counts.
    """
    with LocalCluster(2) as cluster:
        yield {**os.environ, WORKERS: cluster.spec.model_dump_json()}


WORKS = {each.__name__: each for each in (tracing, planning, message, opening)}
