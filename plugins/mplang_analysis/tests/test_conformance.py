"""The analyses of ``mplang_analysis`` keep what the kit asks of every analysis."""

from __future__ import annotations

from mplang_testing import AnalysisSuite, PluginSuite


class TestCosts(AnalysisSuite):
    name = "costs"


class TestDisclosure(AnalysisSuite):
    name = "disclosure"


class TestQueries(AnalysisSuite):
    name = "queries"


class TestRanges(AnalysisSuite):
    name = "ranges"


class TestPlugin(PluginSuite):
    distribution = "mplang-analysis"
    heavy = ("jax", "spu", "duckdb", "pyarrow", "pytest", "hypothesis")
