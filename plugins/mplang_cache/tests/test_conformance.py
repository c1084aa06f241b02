"""``mplang_cache`` keeps what the kit asks of every distribution."""

from __future__ import annotations

from mplang_testing import PluginSuite


class TestPlugin(PluginSuite):
    distribution = "mplang-cache"
    heavy = ("jax", "spu", "duckdb", "pyarrow", "pytest", "hypothesis")
