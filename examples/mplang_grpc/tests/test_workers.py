"""Programs on worker processes, and what happens to them there."""

from __future__ import annotations

import contextlib
import doctest
import functools
import gc
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading

import mplang_core as mp
import numpy as np
import pytest
from mplang_core.ir.wire import to_bytes
from mplang_testing import dialect
from mplang_testing.waiting import NEVER, in_time

from mplang_grpc import comm, driver, rpc, wire

README = pathlib.Path(__file__).parents[1] / "README.md"


def start(rank, addresses):
    command = [sys.executable, "-P", "-m", "mplang_grpc.worker", str(rank), *addresses]
    return subprocess.Popen(
        [*command, "--import", dialect.__name__], stdout=subprocess.PIPE, text=True
    )


@contextlib.contextmanager
def running(count):
    """Workers, each a process of its own, and their cluster."""
    with reserved(count) as addresses:
        workers = [start(rank, addresses) for rank in range(count)]
        nodes = [{"name": f"node{i}", "address": f"grpc://{at}"} for i, at in enumerate(addresses)]
        try:
            for worker in workers:
                assert "listens" in worker.stdout.readline()
            yield workers, mp.ClusterSpec(nodes)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
                worker.stdout.close()


@contextlib.contextmanager
def reserved(count):
    """Ports that nobody else is given while workers start: bound, but not listened on."""
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(socket.socket()) for _ in range(count)]
        for sock in socks:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(("127.0.0.1", 0))
        yield [f"127.0.0.1:{sock.getsockname()[1]}" for sock in socks]


@pytest.fixture(scope="module")
def cluster():
    """Three workers."""
    with running(3) as (_, cluster):
        yield cluster


def double(x):
    return mp.invoke(dialect.add, x, x)


def around(x):
    return mp.pshfl_s(double(x), [0, 1, 2], [1, 2, 0])


@pytest.mark.parametrize("mode", ["standard", "launch"])
def test_programs_run_on_processes(cluster, mode):
    with mp.connect("grpc", cluster, mode=mode) as host:
        first = mp.evaluate(host, around, np.arange(3))
        for found in mp.fetch(host, mp.evaluate(host, around, first)):
            np.testing.assert_array_equal(found, [0, 4, 8])


def test_a_failure_is_told_and_the_workers_go_on(cluster):
    with mp.connect("grpc", cluster) as host:
        for _ in range(3):
            with pytest.raises(mp.errors.PartyError, match=r"party 2 failed in kit\.fail_at") as e:
                mp.evaluate(host, lambda x: mp.invoke(dialect.fail_at, x, party=2), 1)
            assert dialect.SECRET not in str(e.value)
            assert mp.fetch(host, mp.evaluate(host, double, 4)) == [8, 8, 8]


def test_two_hosts_share_workers(cluster):
    with mp.connect("grpc", cluster) as one, mp.connect("grpc", cluster) as other:
        mine, theirs = mp.evaluate(one, double, 1), mp.evaluate(other, double, 2)
        assert mp.fetch(one, mine) == [2, 2, 2]
        one.close()
        assert mp.fetch(other, theirs) == [4, 4, 4]


def test_a_worker_that_is_killed_is_named():
    with running(2) as (workers, cluster), mp.connect("grpc", cluster) as host:
        assert mp.fetch(host, mp.evaluate(host, double, 4)) == [8, 8]
        workers[1].kill()
        workers[1].wait()
        with pytest.raises(mp.errors.PartyError, match=r"party 1 at 127.* does not answer"):
            mp.evaluate(host, double, 4)


@pytest.mark.slow("a kernel takes 20 s, and 10 s pass until a stopped worker is noticed")
def test_a_worker_that_is_stopped_is_noticed_and_one_that_is_slow_is_not():
    with running(2) as (workers, cluster), mp.connect("grpc", cluster) as host:
        slow = functools.partial(mp.invoke, dialect.late, party=1, seconds=20.0)
        assert mp.fetch(host, mp.evaluate(host, slow, 4)) == [4, 4]
        stop = threading.Timer(2.0, workers[1].send_signal, [signal.SIGSTOP])
        stop.start()
        stopped = functools.partial(mp.invoke, dialect.late, party=1, seconds=NEVER)
        with (
            in_time(),
            pytest.raises(mp.errors.PartyError, match=r"party 1 at 127.* does not answer"),
        ):
            mp.evaluate(host, stopped, 4)
        stop.join()


# -- in this process


def test_values_that_are_dropped_are_freed():
    with mp.connect("grpc", mp.ClusterSpec.simple(2)) as host:
        values = host._parties[1]._values
        kept = mp.evaluate(host, double, 1)
        for i in range(5):
            mp.evaluate(host, double, i)
        gc.collect()
        mp.evaluate(host, double, 1)
        assert len(values) <= 2
        assert mp.fetch(host, kept) == [2, 2]
    assert not values


def test_what_is_no_request_is_refused():
    """Damaged bytes, a program that was tampered with, and a value that is not there."""
    with mp.connect("grpc", mp.ClusterSpec.simple(1)) as host:
        (client,) = host._clients
        send = client._channel.unary_unary(f"/{rpc.SERVICE}/Run")
        for data in (b"", b"\x00", b"\x94\x01", b"\x93" * 10_000):
            assert wire.decode(wire.Answer, send(data)).failure.kind == "WireError"
        program = mp.trace(mp.TraceContext(mp.ClusterSpec.simple(1)), double, 1).program
        data = to_bytes(program).replace(b"kit.add", b"kit.ads")
        client.ask(wire.Begin("x-0", []), 10)
        with pytest.raises(mp.errors.IRError, match=r"kit\.ads"):
            client.ask(wire.Run("x-0", "x", data, [wire.pack(np.array(1))], False), 10)
        with pytest.raises(mp.errors.RunError, match="no value"):
            client.ask(wire.Fetch("x", "x-0.0.0"), 10)
        assert mp.fetch(host, mp.evaluate(host, double, 4)) == [8]


def test_all_nodes_have_addresses_or_none():
    nodes = [{"address": "grpc://127.0.0.1:1"}, {}]
    with pytest.raises(mp.errors.ConfigError, match="all nodes have addresses, or none"):
        mp.connect("grpc", mp.ClusterSpec(nodes))


def test_a_port_that_is_taken_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(mp.errors.ConfigError, match=f"cannot listen on {address}"):
            rpc.Server(address, {})


@pytest.mark.parametrize("module", [wire, comm, driver])
def test_the_examples_run(module):
    assert doctest.testmod(module).failed == 0


def test_the_readme_runs():
    namespace = {"__name__": "__main__"}
    for block in re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.M | re.S):
        exec(block, namespace)
