"""``mplang_gpu`` keeps what mplang asks of every plugin."""

from __future__ import annotations

import mplang_core as mp
from mplang_testing import DeviceSuite, PluginSuite


class TestDevice(DeviceSuite):
    kind = "GPU"
    tolerance = 1e-4  # of SPU

    def cluster(self):
        devices = {f"P{i}": {"kind": "PPU", "members": [i]} for i in range(2)}
        devices |= {f"G{i}": {"kind": "GPU", "members": [i]} for i in range(2)}
        devices["SP0"] = {"kind": "SPU", "members": [0, 1], "config": {"protocol": "SEMI2K"}}
        return mp.ClusterSpec.from_dict({"nodes": [{}, {}], "devices": devices})


class TestPlugin(PluginSuite):
    distribution = "mplang-gpu"
    heavy = ("jax", "pytest", "hypothesis")
