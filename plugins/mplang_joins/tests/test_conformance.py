"""``mplang_joins`` keeps what mplang asks of every plugin."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from mplang_tables import arrow
from mplang_testing import FeopSuite, KernelSuite, Of, PluginSuite, Sample

TABLE = pa.table({"id": ["a", None], "n": pa.array([5, 6], pa.int8())})
ATTRS = {"on": ("id",), "kinds": (("string", 0),), "columns": ("n",), "side": 1, "sides": 2}


def entered(tokens, there, n):
    return (tokens % 2 == 1).all() and there.tolist() == [1, 1, 0] and n.tolist() == [5, 6, 0]


SAMPLES = (
    Sample("joins.salt", random=True, expect=lambda salt: salt.shape == (32,)),
    Sample(
        "joins.enter",
        np.arange(32, dtype=np.uint8),
        Of(arrow.type_of(TABLE), TABLE),
        attrs={**ATTRS, "rows": 3},
        random=True,
        expect=entered,
    ),
)


class TestFeops(FeopSuite):
    family = "joins"
    samples = SAMPLES


class TestKernels(KernelSuite):
    family = "joins"
    samples = SAMPLES


class TestPlugin(PluginSuite):
    distribution = "mplang-joins"
    heavy = ("jax", "pyarrow", "spu", "duckdb")
