"""Conformance tests of the HTTP backend, from the core's kit."""

from __future__ import annotations

import socket

import pytest
from mplang_http.comm import HttpCommunicator
from mplang_http.connection import Connection
from mplang_http.driver import SimpHttpDriver
from mplang_http.links import Links
from mplang_testing import BackendSuite, CommunicatorSuite, PluginSuite


def linked(parties, timeout):
    """Return communicators that are linked by TCP connections within this process."""
    names = [f"node{i}" for i in range(parties)]
    tables = [Links(name, None, max_message=1 << 30, max_links=8) for name in names]
    with socket.create_server(("127.0.0.1", 0)) as server:
        for a in range(parties):
            for b in range(a + 1, parties):
                near = socket.create_connection(server.getsockname())
                far, _ = server.accept()
                tables[a].add(Connection(near, timeout), names[b])
                tables[b].add(Connection(far, timeout), names[a])
    return [HttpCommunicator(r, names, tables[r], timeout) for r in range(parties)]


class TestCommunicator(CommunicatorSuite):
    def make(self, parties, timeout):
        return linked(parties, timeout)

    def finish(self, comms):
        for comm in comms:
            comm._links.close()


class TestBackend(BackendSuite):
    @pytest.fixture(autouse=True)
    def _workers(self, five_workers):
        type(self).workers = five_workers.spec.nodes

    def make(self, cluster):
        addresses = [node.address for node in self.workers[: cluster.world_size]]
        return SimpHttpDriver(cluster, addresses=addresses, timeout=30.0)


class TestPlugin(PluginSuite):
    distribution = "mplang-http"
    heavy = ("fastapi", "uvicorn", "uvloop", "cryptography", "jax", "spu", "pytest", "hypothesis")
