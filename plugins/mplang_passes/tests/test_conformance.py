"""The passes of ``mplang_passes`` keep what the kit asks of every pass."""

from __future__ import annotations

from mplang_testing import PassSuite


class TestDeadCode(PassSuite):
    name = "eliminate_dead_code"


class TestFusion(PassSuite):
    name = "fuse_pcalls"
