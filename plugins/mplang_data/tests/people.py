"""Files of data sets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

PEOPLE = pa.table(
    {
        "id": [f"p{i}" for i in range(2000)],
        "age": pa.array([i % 90 for i in range(2000)], pa.int64()),
        "pay": pa.array([float(i) / 4 for i in range(2000)]),
        "sex": pa.array(["f" if i % 2 else "m" for i in range(2000)]).dictionary_encode(),
    }
)
COLUMNS = {"age": "int64", "pay": "float64", "sex": "string"}


@pytest.fixture
def folder(tmp_path):
    """Return a folder with the same people in files of each kind, and an array."""
    pq.write_table(PEOPLE, tmp_path / "people.parquet", row_group_size=300)
    pq.write_table(PEOPLE.slice(0, 700), tmp_path / "part-0.parquet")
    pq.write_table(PEOPLE.slice(700), tmp_path / "part-1.parquet")
    PEOPLE.to_pandas().to_csv(tmp_path / "people.csv", index=False)
    with pa.ipc.new_file(tmp_path / "people.arrow", PEOPLE.schema) as file:
        file.write_table(PEOPLE)
    np.save(tmp_path / "scan.npy", np.arange(12.0).reshape(4, 3))
    return tmp_path
