"""The smallest and largest numbers of Parquet files are those of rows, whatever a file may have."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mplang_core as mp

COLUMNS = {"id": "int64", "pay": "double", "share": "float"}
ROWS = {"id": [1, 2, 3], "pay": [1.5, 3.5, 2.5], "share": pa.array([0.5, None, 0.25], pa.float32())}
NAN = ROWS | {"pay": [1.5, math.nan, 2.5]}
PUBLISHED = {"pay": (0, 10), "share": (0, 1)}


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    sets = {}
    for name, rows in {"plain": ROWS, "ranged": ROWS, "odd": NAN}.items():
        pq.write_table(pa.table(rows), folder / f"{name}.parquet")
        sets[name] = {"source": f"parquet:{folder}/{name}.parquet", "columns": COLUMNS}
    sets["ranged"]["ranges"] = PUBLISHED
    with mp.Simulator(mp.ClusterSpec([{"name": "bank"}]), data={"bank": sets}) as made:
        yield made


def asked(host, sql, name="plain"):
    """Return the row that SQL gives."""

    def program():
        people = mp.dataset("bank", name)
        return mp.sql("bank", sql, people=people)

    (row,) = mp.fetch(host, mp.evaluate(host, program)).to_pylist()
    return tuple(row.values())


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT max(pay) AS a FROM {people}", (3.5,)),
        ("SELECT min(pay) AS a, max(share) AS b, count(*) AS n FROM {people}", (1.5, 0.5, 3)),
        ("SELECT id AS a FROM {people} WHERE pay = (SELECT Max(pay) FROM {people})", (2,)),
        ("SELECT max(pay) AS a FROM {people} WHERE id < 9", (3.5,)),
    ],
)
@pytest.mark.parametrize("name", ["plain", "ranged"])
def test_the_largest_number_is_that_of_a_row(host, sql, expected, name):
    """DuckDB took NaN for it, from what a file tells of its rows, where nothing else was asked."""
    assert asked(host, sql, name) == expected


def test_nan_is_the_largest_number_where_a_row_has_it(host):
    assert math.isnan(*asked(host, "SELECT max(pay) AS a FROM {people}", "odd"))
