"""Conformance of ``mplang_tables`` with the kit."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import strategies as st
from mplang_tables import arrow
from mplang_testing import PluginSuite, TypeSuite

import mplang_core as mp

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
