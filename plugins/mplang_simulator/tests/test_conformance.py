"""Conformance of ``mplang_simulator`` with the kit for backends."""

from __future__ import annotations

import pytest
from mplang_simulator import Simulator, ThreadCommunicator
from mplang_testing import BackendSuite, CommunicatorSuite, PluginSuite


@pytest.mark.once
class TestBackend(BackendSuite):
    def make(self, cluster):
        return Simulator(cluster)


class TestCommunicator(CommunicatorSuite):
    def make(self, parties, timeout):
        return ThreadCommunicator.connected(parties, timeout)


class TestPlugin(PluginSuite):
    distribution = "mplang-simulator"
    heavy = ("jax", "spu", "pytest", "hypothesis")
