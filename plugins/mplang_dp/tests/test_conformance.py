"""``mplang_dp`` keeps what mplang asks of every plugin."""

from __future__ import annotations

import pyarrow as pa
import pytest
from mplang_tables import arrow
from mplang_testing import FeopSuite, GuardSuite, KernelSuite, Of, PluginSuite, Sample

PEOPLE = pa.table({"id": [1, 2, 2, 3], "city": ["a", "a", "b", "b"], "pay": [1.0, 2.0, None, 5.0]})
X = Of(arrow.type_of(PEOPLE), PEOPLE)
NOISE = {"unit": "id", "epsilon": 1.0, "delta": 0.0}
PAY = {**NOISE, "column": "pay", "low": 0.0, "high": 9.0}
CITIES = {**NOISE, "column": "city", "values": ("a", "b"), "per_unit": 1}
SAMPLES = (
    Sample("dp.count", X, attrs={**NOISE, "per_unit": 1}, random=True),
    Sample("dp.sum", X, attrs=PAY, random=True),
    Sample("dp.mean", X, attrs=PAY, random=True),
    Sample("dp.histogram", X, attrs=CITIES, random=True, expect=lambda found: found.shape == (2,)),
)


class TestFeops(FeopSuite):
    family = "dp"
    samples = SAMPLES


class TestKernels(KernelSuite):
    family = "dp"
    samples = SAMPLES


@pytest.mark.long("runs each op hundreds of times, to compare distributions of results")
class TestGuards(GuardSuite):
    family = "dp"
    samples = SAMPLES


class TestPlugin(PluginSuite):
    distribution = "mplang-dp"
    heavy = ("opendp", "jax", "pytest", "hypothesis")
