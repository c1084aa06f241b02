"""The passes of ``mplang_passes`` keep what the kit asks of every pass."""

from __future__ import annotations

from mplang_testing import PassSuite, PluginSuite


class TestDeadCode(PassSuite):
    name = "eliminate_dead_code"


class TestFusion(PassSuite):
    name = "fuse_pcalls"


class TestAgreements(PassSuite):
    name = "clear_agreements"


class TestReads(PassSuite):
    name = "bring_reads"


class TestPlugin(PluginSuite):
    distribution = "mplang-passes"
    heavy = ("jax", "spu", "duckdb", "pyarrow", "pytest", "hypothesis")
