"""Conformance of ``mplang_data`` with the kit."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mplang_tables import arrow
from mplang_testing import FeopSuite, KernelSuite, LineageSuite, PluginSuite, Sample, SourceSuite
from postgres import server as server
from pyarrow import csv

import mplang_core as mp

KIND = mp.TableType((("age", "int64"), ("name", "string")))
TABLE = {
    "age": ("int64", [3, None, -(2**63)]),
    "name": ("string", ["Ann", 'a "b", c', "ü"]),
    "pay": ("double", [0.1, -0.0, None]),
    "ok": ("bool", [True, None, False]),
    "day": ("date32[day]", [0, 20000, None]),
    "at": ("timestamp[us]", [0, 1, None]),
    "sum": (
        "decimal128(12, 2)",
        [None, pa.scalar("1.25").cast(pa.decimal128(12, 2)).as_py(), None],
    ),
}


class TestFeops(FeopSuite):
    family = "data"
    samples = (
        Sample("data.read", attrs={"name": "people", "type": KIND}),
        Sample("data.read", attrs={"name": "scan", "type": mp.TensorType("f64", (2, 3))}),
        Sample("data.store", mp.TensorType("f64", (3,)), attrs={"name": "model", "nest": "0"}),
        Sample("data.load", attrs={"name": "model", "types": (mp.TensorType("f64", (3,)),)}),
        Sample("data.remove", attrs={"name": "model"}),
    )


class TestReads(KernelSuite):
    family = "data"
    samples = TestFeops.samples[:2]

    def make(self, parties):
        people = {"age": [3, None], "name": ["Ann", "ü"], "pay": [1.5, 2.5]}
        data = {"people": people, "scan": np.ones((2, 3))}
        spec = mp.ClusterSpec.simple(parties)
        return mp.Simulator(spec, data={node.name: data for node in spec.nodes})


class TestLineage(LineageSuite):
    family = "data"
    samples = TestFeops.samples[:1]


class TestParquet(SourceSuite):
    kind, data = "parquet", TABLE

    def store(self, folder, data):
        pq.write_table(data, folder / "a.parquet", row_group_size=2)
        return "a.parquet"


class TestParquetFiles(SourceSuite):
    kind, data = "parquet", TABLE

    def store(self, folder, data):
        for i in range(3):  # each with its columns in another order, and one more
            names = [*data.column_names[i:], *data.column_names[:i]]
            part = data.slice(i, 1).select(names).append_column("more", [[i]])
            pq.write_table(part, folder / f"{i}.parquet")
        return "?.parquet"


class TestCsv(SourceSuite):
    kind, data = "csv", TABLE

    def store(self, folder, data):
        csv.write_csv(data, folder / "a.csv")
        return "a.csv"


class TestArrow(SourceSuite):
    kind = "arrow"
    data = pa.table(
        {name: cells for name, (_, cells) in TABLE.items()},
        schema=arrow.schema(mp.TableType(tuple((name, of) for name, (of, _) in TABLE.items()))),
    )

    def store(self, folder, data):
        with pa.ipc.new_file(folder / "a.arrow", data.schema) as file:
            file.write_table(data)
        return "a.arrow"


class TestNpy(SourceSuite):
    kind, data = "npy", np.float64([[1, np.nan, -0.0], [4, 5, np.inf]])

    def store(self, folder, data):
        np.save(folder / "a.npy", data)
        return "a.npy"


class TestNpyOfFortran(TestNpy):
    def store(self, folder, data):
        np.save(folder / "a.npy", np.asfortranarray(data).astype(">f8"))
        return "a.npy"


@pytest.mark.slow("starts a process for each of its reads; the code is that for PostgreSQL")
class TestDuckDb(SourceSuite):
    kind, data = "duckdb", TABLE

    def store(self, folder, data):
        with duckdb.connect(str(folder / "a.duckdb")) as connection:
            connection.register("frame", data)
            connection.execute("CREATE TABLE people AS FROM frame")
        return "a.duckdb#people"


@pytest.mark.long("starts a database server, and a process for each of its reads")
class TestPostgreSql(SourceSuite):
    kind, data = "postgresql", TABLE

    @pytest.fixture(autouse=True)
    def _server(self, server):
        self.server = server
        server.execute(
            "CREATE TABLE people (age bigint, name text, pay double precision, ok boolean, "
            "day date, at timestamp, sum numeric(12, 2))"
        )
        yield
        self.server.execute("DROP TABLE IF EXISTS people")

    def store(self, folder, data):
        import psycopg

        with psycopg.connect(self.server.place) as connection:
            row = ", ".join(["%s"] * data.num_columns)
            for each in data.to_pylist():
                connection.execute(f"INSERT INTO people VALUES ({row})", tuple(each.values()))
        return f"{self.server.place.removeprefix('postgresql:')}#people"

    def remove(self, folder):
        self.server.execute("DROP TABLE people")

    damage = remove


class TestPlugin(PluginSuite):
    distribution = "mplang-data"
    heavy = ("pyarrow", "pandas", "duckdb", "ibis", "psycopg", "cryptography")
