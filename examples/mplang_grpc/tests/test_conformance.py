"""``mplang_grpc`` keeps what mplang asks of every backend."""

from __future__ import annotations

from mplang_testing import BackendSuite, CommunicatorSuite, PluginSuite

from mplang_grpc.comm import GrpcCommunicator
from mplang_grpc.driver import SimpGrpcDriver


class TestCommunicator(CommunicatorSuite):
    def make(self, parties, timeout):
        return GrpcCommunicator.connected(parties, timeout)

    def finish(self, comms):
        for comm in comms:
            comm.shut()


class TestBackend(BackendSuite):
    def make(self, cluster):
        return SimpGrpcDriver(cluster)


class TestPlugin(PluginSuite):
    distribution = "mplang-grpc"
    heavy = ("grpc", "jax", "spu", "pytest", "hypothesis")
