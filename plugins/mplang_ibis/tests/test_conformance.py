"""Conformance of ``mplang_ibis`` with the kit for frontends."""

from __future__ import annotations

import pyarrow as pa
from mplang_tables import arrow
from mplang_testing import FeopSuite, KernelSuite, LineageSuite, Of, PluginSuite, Sample

import mplang_core as mp

KIND = mp.TableType((("a", "int64"), ("b", "int64")))
DATA = pa.table({"a": [1, 2, 3], "b": [4, 5, 6]}, schema=arrow.schema(KIND))
TABLE = Of(KIND, DATA)


def more_than_one(t):
    return t.filter(t.a > 1).select("b")


SAMPLES = (
    Sample("ibis.compile", more_than_one, TABLE, expect=lambda t: t["b"].to_pylist() == [5, 6]),
    Sample(
        "ibis.sql",
        TABLE,
        attrs={"text": "SELECT b FROM {t} WHERE a > 1", "names": ("t",)},
        expect=lambda t: t["b"].to_pylist() == [5, 6],
    ),
)


class TestFeops(FeopSuite):
    family = "ibis"
    claims_all = True
    samples = SAMPLES


class TestKernels(KernelSuite):
    family = "ibis"
    samples = SAMPLES


LIST = mp.TableType((("who", "int64"), ("since", "int64")))
LISTED = Of(LIST, pa.table({"who": [1, 3], "since": [7, 8]}, schema=arrow.schema(LIST)))


class TestLineage(LineageSuite):
    family = "ibis"
    samples = (
        *SAMPLES,
        Sample("ibis.compile", lambda t: t.mutate(c=t.a + t.b).filter(t.b < 6), TABLE),
        Sample("ibis.compile", lambda t, u: t.semi_join(u, t.a == u.who), TABLE, LISTED),
        Sample("ibis.compile", lambda t, u: t.anti_join(u, t.a == u.who), TABLE, LISTED),
        Sample("ibis.compile", lambda t: t.group_by("a").agg(b=t.b.sum()), TABLE),
    )


class TestPlugin(PluginSuite):
    distribution = "mplang-ibis"
    heavy = ("ibis", "duckdb", "pyarrow", "pandas", "sqlglot", "jax")
