"""``mplang_guard`` keeps what mplang asks of every plugin."""

from __future__ import annotations

import pyarrow as pa
from mplang_tables import arrow
from mplang_testing import FeopSuite, GuardSuite, KernelSuite, Of, PluginSuite, Sample

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


WANTED = (
    *(("n", "count", ""), ("units", "units", ""), ("known", "count", "pay")),
    *(("total", "sum", "pay"), ("mean", "mean", "pay"), ("std", "std", "pay")),
)
ATTRS = {"unit": "id", "k": 3, "by": ("city",), "aggregates": WANTED}


class TestGuards(GuardSuite):
    family = "guard"
    samples = (
        Sample("guard.aggregate", X, attrs=ATTRS),
        Sample("guard.aggregate", X, attrs={**ATTRS, "by": (), "aggregates": WANTED[3:5]}),
        Sample("guard.aggregate", X, attrs={**ATTRS, "k": 1, "aggregates": WANTED[2:3]}),
        Sample("guard.aggregate", X, attrs={**ATTRS, "max_share": 500_000}),
    )


class TestPlugin(PluginSuite):
    distribution = "mplang-guard"
    heavy = ("duckdb", "jax", "pytest", "hypothesis")
