"""Conformance of ``mplang_ibis`` with the kit for frontends."""

from __future__ import annotations

import pyarrow as pa
from mplang_tables import arrow
from mplang_testing import FeopSuite, KernelSuite, Of, PluginSuite, Sample

import mplang_core as mp

KIND = mp.TableType((("a", "int64"), ("b", "int64")))
DATA = pa.table({"a": [1, 2, 3], "b": [4, 5, 6]}, schema=arrow.schema(KIND))
TABLE = Of(KIND, DATA)


def more_than_one(t):
    return t.filter(t.a > 1).select("b")


SAMPLES = (
    Sample("ibis.compile", more_than_one, TABLE, expect=lambda t: t["b"].to_pylist() == [5, 6]),
)


class TestFeops(FeopSuite):
    family = "ibis"
    claims_all = True
    samples = SAMPLES


class TestKernels(KernelSuite):
    family = "ibis"
    samples = SAMPLES


class TestPlugin(PluginSuite):
    distribution = "mplang-ibis"
    heavy = ("ibis", "duckdb", "pyarrow", "pandas", "sqlglot", "jax")
