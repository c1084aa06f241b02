"""``mplang_joins`` keeps what mplang asks of every plugin."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
from mplang_tables import arrow
from mplang_testing import FeopSuite, KernelSuite, Of, PluginSuite, Sample

from mplang_core import TableType

TABLE = pa.table({"id": ["a", None], "n": pa.array([5, 6], pa.int8())})
ATTRS = {"on": ("id",), "kinds": (("string", 0),), "columns": ("n",), "side": 1, "sides": 2}


REDUCED = pa.table({"id": ["a", None, "a"], "n": [5, 6, 7], "group": [2, 0, 1]})
GROUPED = {
    "code": "group", "groups": 3, "rows": 4, "limbs": (2,), "width": 2, "most": (3,)
}  # fmt: skip
GROUPS = TableType((("city", "string"), ("sum", "decimal128(38, 2)")))


def reduced(tokens, there, n):
    right = n.tolist() == [
        [[0, 6, 0, 0], [7, 0, 0, 0], [5, 0, 0, 0]],
        [[0, 2, 0, 0], [3, 0, 0, 0], [1, 0, 0, 0]],
        [[0, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]],
    ]
    return right and (tokens % 2 == 1).all() and there.tolist() == [1, 1, 0, 0]


ONE_KEY = pa.table({"n": [-5, 6], "group": [2, 0]})
UNITS = pa.table(
    {"id": ["a", None, "a", "b"], "g": ["u", "u", "u", "v"], "n": [5, 6, -7, None]},
    schema=pa.schema([("id", pa.string()), ("g", pa.string()), ("n", pa.int8())]),
)


def made_units(x):
    """A unit in each group: whether it is there; sum, size, count, and if it has any."""
    right = [[1, 0, 0], [0, 1, 0], [-2, 0, 0], [0, 0, 0], [12, 0, 0], [0, 0, 0], [2, 0, 0],
             [0, 0, 0], [1, 0, 0], [0, 0, 0]]  # fmt: skip
    return (x[0] % 2 == 1).all() and x[1:].tolist() == right


COMMON = pa.table({"id": ["c", "a"], "match": [0, 1]})


def placed(there, n):
    return there.tolist() == [0, 1, 1, 0] and n.tolist() == [
        [[0, 0, 6, 0], [0, 7, 0, 0], [0, 5, 0, 0]],
        [[0, 0, 2, 0], [0, 3, 0, 0], [0, 1, 0, 0]],
        [[0, 0, 1, 0], [0, 1, 0, 0], [0, 1, 0, 0]],
    ]


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
    Sample(
        "joins.reduced",
        np.arange(32, dtype=np.uint8),
        Of(arrow.type_of(REDUCED), REDUCED),
        attrs={**ATTRS, **GROUPED},
        random=True,
        expect=reduced,
    ),
    Sample(
        "joins.placed",
        Of(arrow.type_of(REDUCED), REDUCED),
        Of(arrow.type_of(COMMON), COMMON),
        attrs={
            "on": ATTRS["on"],
            "kinds": ATTRS["kinds"],
            "columns": ("n",),
            "keeps": True,
            **GROUPED,
        },
        expect=placed,
    ),
    Sample(
        "joins.grouped",
        Of(arrow.type_of(ONE_KEY), ONE_KEY),
        attrs={
            "columns": ("n",),
            "code": "group",
            "groups": 3,
            "limbs": (1,),
            "width": 3,
            "most": (3,),
        },
        expect=lambda n: n.tolist() == [[[6], [0], [-5]], [[6], [0], [5]]],
    ),
    Sample(
        "joins.units",
        np.arange(32, dtype=np.uint8),
        Of(arrow.type_of(UNITS), UNITS),
        attrs={
            "on": ("id",),
            "kinds": (("string", 0),),
            "by": (("g", ("u", "v")),),
            "functions": (("n", ("mean",)), ("id", ("units",))),
            "bits": 20,
            "counts": 9,
            "bounded": True,
            "side": 1,
            "sides": 2,
            "rows": 3,
        },
        random=True,
        expect=made_units,
    ),
    Sample(
        "joins.noisy_units",
        np.arange(32, dtype=np.uint8),
        Of(arrow.type_of(UNITS), UNITS),
        attrs={
            "on": ("id",),
            "kinds": (("string", 0),),
            "mine": 1,
            "rows": 3,
            "statistic": "histogram",
            "column": "g",
            "side": 1,
            "column_type": "string",
            "values": ("v", "u"),
            "low": 0,
            "high": 0,
            "digits": 0,
            "epsilon": 0.01,
            "delta": 0.0,
            "sides": 2,
        },
        random=True,
        expect=lambda x: x.shape == (4, 3) and x[1:3].sum() == 2,
    ),
    Sample(
        "joins.group_table",
        np.array([True, False]),
        np.array([150, 0]),
        np.array([True, False]),
        np.array(True),
        attrs={
            "grouped": True,
            "present": (True,),
            "checked": True,
            "labels": (("A", "B"), ()),
            "aggregates": (0, 0),
            "scales": (0, 2),
            "roots": (False, False),
            "order": ((0, 0, 0),),
            "gives": GROUPS,
        },
        expect=lambda t: t.to_pylist() == [{"city": "A", "sum": Decimal("1.50")}],
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
