"""``mplang_guard`` keeps what mplang asks of every plugin."""

from __future__ import annotations

import pyarrow as pa
from mplang_tables import arrow
from mplang_testing import FeopSuite, KernelSuite, Of, PluginSuite, Sample

PEOPLE = pa.table({"id": [1, 2, 2, 3], "city": ["a", "a", "b", "b"], "pay": [1.0, 2.0, None, 5.0]})
X = Of(arrow.type_of(PEOPLE), PEOPLE)
SAMPLES = (
    Sample(
        "guard.aggregate",
        X,
        attrs={"unit": "id", "k": 2, "by": (), "aggregates": (("n", "count", ""),)},
        expect=lambda found: found.to_pylist() == [{"n": 4}],
    ),
)


class TestFeops(FeopSuite):
    family = "guard"
    samples = SAMPLES


class TestKernels(KernelSuite):
    family = "guard"
    samples = SAMPLES


class TestPlugin(PluginSuite):
    distribution = "mplang-guard"
    heavy = ("duckdb", "jax", "pytest", "hypothesis")
