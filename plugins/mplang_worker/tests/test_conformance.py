"""Conformance tests of the HTTP backend, from the core's kit."""

from __future__ import annotations

import pytest
from mplang_http.coordinator.driver import SimpHttpDriver
from mplang_testing import BackendSuite, CommunicatorSuite, PluginSuite
from mplang_worker.link.comm import HttpCommunicator


class TestCommunicator(CommunicatorSuite):
    def make(self, parties, timeout):
        return HttpCommunicator.connected(parties, timeout)

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
    heavy = ("starlette", "uvicorn", "uvloop", "cryptography", "jax", "spu", "pytest", "hypothesis")


class TestWorkerPlugin(PluginSuite):
    distribution = "mplang-worker"
    heavy = ("jax", "spu", "duckdb", "pytest", "hypothesis")
