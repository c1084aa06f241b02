"""``mplang_policy`` brings commands and a section of workers; the kit asks the rest."""

from __future__ import annotations

from mplang_testing import PluginSuite


class TestPlugin(PluginSuite):
    distribution = "mplang-policy"
    heavy = ("jax", "spu", "duckdb", "pyarrow", "pytest", "hypothesis")
