"""The passes of ``mplang_stablehlo`` keep what the kit asks of every pass."""

from __future__ import annotations

from mplang_testing import PassSuite, PluginSuite


class TestLinking(PassSuite):
    name = "link_modules"


class TestControlFlow(PassSuite):
    name = "convert_control_flow"


class TestConditions(PassSuite):
    name = "fold_conditions"


class TestPlugin(PluginSuite):
    distribution = "mplang-stablehlo"
    heavy = ("jax", "jaxlib", "spu", "pytest", "hypothesis")
