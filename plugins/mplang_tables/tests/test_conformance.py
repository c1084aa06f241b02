"""Conformance of ``mplang_tables`` with the kit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from mplang_tables import arrow, table
from mplang_testing import FeopSuite, KernelSuite, LineageSuite, Of, PluginSuite, Sample, TypeSuite

import mplang_core as mp

KIND = mp.TableType((("a", "int64"), ("b", "int64")))
DATA = pa.table({"a": [1, 2, 3], "b": [4, 5, 6]}, schema=arrow.schema(KIND))
TABLE = Of(KIND, DATA)
X = np.int64([[1, 4], [2, 5], [3, 6]])
REPLACING = (
    Sample(
        "table.encode",
        TABLE,
        attrs={"column": "a", "values": (3, 2, 1), "others": 3},
        expect=lambda t: t["a"].to_pylist() == [2, 1, 0],
    ),
    Sample(
        "table.decode",
        TABLE,
        attrs={"column": "a", "values": ("x", "y"), "others": True},
        expect=lambda t: t["a"].to_pylist() == ["y", None, None],
    ),
    Sample(
        "table.one_hot",
        TABLE,
        attrs={"column": "a", "values": (1, 2), "others": True},
        expect=lambda t: t["a_2"].to_pylist() == [0, 1, 0],
    ),
    Sample(
        "table.fill_nulls",
        TABLE,
        attrs={"columns": ("a",), "value": 0},
        expect=lambda t: t["a"].to_pylist() == [1, 2, 3],
    ),
    Sample(
        "table.to_integers",
        TABLE,
        attrs={"column": "a", "unit": "cents"},
        expect=lambda t: t["a"].to_pylist() == [100, 200, 300],
    ),
    Sample(
        "table.from_integers",
        TABLE,
        attrs={"column": "a", "type": "decimal128(22, 2)", "unit": "cents"},
        expect=lambda t: list(map(str, t["a"].to_pylist())) == ["0.01", "0.02", "0.03"],
    ),
    Sample(
        "table.cast",
        TABLE,
        attrs={"type": mp.TableType((("a", "double"), ("b", "int64")))},
        expect=lambda t: t["a"].to_pylist() == [1.0, 2.0, 3.0],
    ),
)
"""Ops that replace columns, and keep rows and other columns as they are."""
SAMPLES = (
    Sample("table.to_tensor", TABLE, attrs={"rows": 3}, expect=lambda x: (x == X).all()),
    Sample(
        "table.to_padded",
        TABLE,
        attrs={"rows": 4},
        expect=lambda x, valid: (x[:3] == X).all() and valid.tolist() == [1, 1, 1, 0],
    ),
    Sample("table.from_tensor", X, attrs={"columns": ("a", "b")}, expect=DATA.equals),
    Sample(
        "table.to_masked",
        Of(KIND, pa.table({"a": [1, None], "b": [4, 5]}, schema=arrow.schema(KIND))),
        attrs={"rows": 3},
        expect=lambda x, valid: (
            x.tolist() == [[1, 4], [0, 5], [0, 0]]
            and valid.tolist() == [[True, True], [False, True], [False, False]]
        ),
    ),
    Sample(
        "table.from_padded",
        X,
        np.array([True, False, True]),
        attrs={"columns": ("a", "b")},
        expect=lambda t: t.to_pydict() == {"a": [1, 3], "b": [4, 6]},
    ),
    *REPLACING,
    Sample(
        "table.literal",
        attrs=dict(table(DATA)().pfunc.attrs),
        expect=lambda t: t.to_pydict() == DATA.to_pydict(),
    ),
)


class TestFeops(FeopSuite):
    family = "table"
    samples = SAMPLES


class TestKernels(KernelSuite):
    family = "table"
    samples = SAMPLES


class TestLineages(LineageSuite):
    family = "table"
    samples = REPLACING


NAMES = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=4)


class TestTable(TypeSuite):
    kinds = st.lists(
        st.tuples(NAMES, st.sampled_from(["int64", "double", "string"])),
        min_size=1,
        max_size=3,
        unique_by=lambda column: column[0].casefold(),
    ).map(lambda columns: mp.TableType(tuple(columns)))

    def values(self, kind):
        cells = {
            "int64": st.integers(-(2**63), 2**63 - 1),
            "double": st.floats(allow_nan=False),
            "string": st.text(max_size=3),
        }
        row = st.tuples(*(st.none() | cells[type] for _, type in kind.columns))
        return st.lists(row, max_size=4).map(
            lambda rows: pa.table(
                [[row[i] for row in rows] for i in range(len(kind.columns))],
                schema=arrow.schema(kind),
            )
        )


class TestPlugin(PluginSuite):
    distribution = "mplang-tables"
    heavy = ("pyarrow", "pandas", "polars", "duckdb", "ibis", "jax")
