"""Conformance of ``mplang_ibis`` with the kit for frontends."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from mplang_ibis import table
from mplang_tables import arrow
from mplang_testing import FeopSuite, KernelSuite, Of, PluginSuite, Sample

import mplang_core as mp

KIND = mp.TableType((("a", "int64"), ("b", "int64")))
DATA = pa.table({"a": [1, 2, 3], "b": [4, 5, 6]}, schema=arrow.schema(KIND))
TABLE = Of(KIND, DATA)
X = np.int64([[1, 4], [2, 5], [3, 6]])


def more_than_one(t):
    return t.filter(t.a > 1).select("b")


SAMPLES = (
    Sample("ibis.compile", more_than_one, TABLE, expect=lambda t: t["b"].to_pylist() == [5, 6]),
    Sample("ibis.to_tensor", TABLE, attrs={"rows": 3}, expect=lambda x: (x == X).all()),
    Sample("ibis.from_tensor", X, attrs={"columns": ("a", "b")}, expect=DATA.equals),
    Sample(
        "ibis.literal",
        attrs=dict(table(DATA)().pfunc.attrs),
        expect=lambda t: t.to_pydict() == DATA.to_pydict(),
    ),
)


class TestFeops(FeopSuite):
    family = "ibis"
    samples = SAMPLES


class TestKernels(KernelSuite):
    family = "ibis"
    samples = SAMPLES


class TestPlugin(PluginSuite):
    distribution = "mplang-ibis"
    heavy = ("ibis", "duckdb", "pyarrow", "pandas", "sqlglot", "jax")
