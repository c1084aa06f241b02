"""Shared fixtures: local clusters, and workers with TLS and a hostile coordinator."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hostile_requests import GROWTH, LIMITS, jax_program, stablehlo
from http_raw import RawWorker
from mplang_http import LocalCluster
from mplang_http.tls.contexts import client_context, server_context
from mplang_testing.waiting import DEADLINE
from mplang_worker.link.connection import Connection, TlsConnection
from mplang_worker.tls.keygen import make_certificates

import mplang_core as mp

KIT = ("mplang_testing.dialect",)
NAMES = ["alice", "bob", "carol"]


@pytest.fixture(scope="session")
def five_workers():
    """Return five workers, shared by all tests."""
    with LocalCluster(5, insecure=True, imports=KIT) as cluster:
        yield cluster


@pytest.fixture
def three_workers():
    """Return three workers for one test, which may stop or kill them."""
    with LocalCluster(3, insecure=True, imports=KIT) as cluster:
        yield cluster


# -- workers with TLS, one of whose coordinators is hostile


@pytest.fixture(scope="session")
def tls_files(tmp_path_factory):
    """Return the certificates of three workers, and of the coordinators ``host`` and ``other``."""
    return make_certificates(tmp_path_factory.mktemp("certificates"), [*NAMES, "host", "other"])


@pytest.fixture(params=["no TLS", "TLS"])
def joined(request, tls_files):
    """Return a function that makes a connection, and the socket of its peer."""

    def make() -> tuple[Connection, socket.socket]:
        with socket.create_server(("127.0.0.1", 0)) as server:
            far = socket.create_connection(server.getsockname())
            near, _ = server.accept()
        if request.param == "no TLS":
            return Connection(near, DEADLINE), far
        files = tls_files[NAMES[0]]
        with ThreadPoolExecutor(1) as pool:
            wrapping = pool.submit(server_context(files).wrap_socket, near, server_side=True)
            far = client_context(files).wrap_socket(far, server_hostname=NAMES[0])
            return TlsConnection(wrapping.result(DEADLINE), DEADLINE), far

    return make


@pytest.fixture(scope="session")
def tls_logs(tmp_path_factory):
    """Return the folder of the logs of ``tls_workers``, in which reasons of failures stand."""
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="session")
def tls_workers(tls_files, tls_logs):
    """Return three workers with TLS, the ops of ``hostile_peer``, and ``insecure`` protocols."""
    with pytest.MonkeyPatch.context() as patch:
        paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        with LocalCluster(
            NAMES,
            tls=tls_files,
            coordinators=("host", "other"),
            imports=(*KIT, "hostile_peer"),
            insecure=True,
            log=str(tls_logs),
            log_level="debug",
            timeouts={"message": 20.0},
        ) as made:
            yield made


@pytest.fixture(scope="session")
def tls_host(tls_workers, tls_files):
    """Return the host of the hostile coordinator."""
    with mp.connect("http", tls_workers.spec, tls=tls_files["host"]) as made:
        yield made


@pytest.fixture
def raw_workers(tls_workers, tls_files) -> list[RawWorker]:
    """Return raw clients of the workers, with the hostile coordinator's certificate."""
    context = client_context(tls_files["host"], "http/1.1")
    return [RawWorker(tls_workers, rank, context) for rank in range(3)]


@pytest.fixture(scope="session")
def others_value(tls_workers, tls_files):
    """Return a function that fetches a value of the other coordinator."""
    with mp.connect("http", tls_workers.spec, tls=tls_files["other"]) as made:
        with mp.with_ctx(made):
            value = mp.put("P0", np.float64([98.6, 1.25]))
        yield lambda: mp.fetch(made, value)


@pytest.fixture(scope="session")
def crashes(tls_workers, tls_files):
    """Return a function that asks how often an engine of each worker has ended unexpectedly."""
    with mp.connect("http", tls_workers.spec, tls=tls_files["other"]) as made:
        clients = [each.client for each in made._workers]  # which stay connected
        yield lambda: [each.request("GET", "health")["crashes"] for each in clients]


@pytest.fixture
def unharmed_engines(crashes, others_value) -> Iterator[None]:
    """Check after the test that no engine has crashed, and the other value is intact."""
    before = crashes()
    yield
    assert crashes() == before
    np.testing.assert_array_equal(others_value(), [98.6, 1.25])


# -- a worker with small limits, to whom anybody sends anything


@pytest.fixture(scope="session")
def worker():
    """Return a worker with small limits, of a cluster of two, shared by all tests."""
    with LocalCluster(
        2,
        imports=("mplang_testing.dialect", "mplang_jax", "mplang_spu"),
        dialects=("kit", "jax", "spu"),
        limits=LIMITS,
        timeouts={"head": 1.5, "body": 1.5, "lease": DEADLINE, "connect": 2.0},
    ) as cluster:
        made = RawWorker(cluster)
        made.works()
        made.run(jax_program(stablehlo("return %arg0 : tensor<f32>")), np.float32(1))
        yield made


@pytest.fixture
def session(worker):
    """Return the name of an open session."""
    with worker.opened() as name:
        yield name


@pytest.fixture
def unharmed(worker):
    """Check after each test that the worker runs a program, and its memory has not grown."""
    before = worker.memory()
    yield
    worker.works()
    assert worker.memory(peak=True) - before < GROWTH


# -- a bank and a shop with gates, to whom an analyst sends what they would refuse


@contextlib.contextmanager
def new_bank(folder):
    with pytest.MonkeyPatch.context() as patch:
        paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        from bank_and_shop import Bank

        made = Bank(folder)
        with made.cluster:
            yield made


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """Return the bank of ``bank_and_shop``, for all tests of a module."""
    with new_bank(tmp_path_factory.mktemp("bank")) as made:
        yield made


@pytest.fixture
def unspent(tmp_path):
    """Return a bank whose budgets no other test uses."""
    with new_bank(tmp_path) as made:
        yield made


@pytest.fixture
def approvals(bank):
    """Have no approval of another test."""
    yield bank
    for each in bank.folder.glob("*.approval"):
        each.unlink()
