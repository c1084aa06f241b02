"""The 22 queries of TPC-H, as SQL and as Ibis expressions, on Spark against bare DuckDB.

The tables are small ones that are made here, or those of a folder of Parquet files that
MPLANG_TPCH names, such as those of ``tpchgen-cli -s 0.01 --format=parquet``.
"""

from __future__ import annotations

import os

import duckdb
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import tpch_data
from mplang_ibis.engines import Offered, refusal
from mplang_ibis.sql import read_sql
from mplang_spark.run import run_on_spark
from mplang_tables import arrow
from tpch_queries import QUERIES, TABLES, check_same, of_expression, of_text, sql


@pytest.fixture(scope="module")
def tables():
    folder = os.environ.get("MPLANG_TPCH")
    if not folder:
        return tpch_data.tables()
    return {name: arrow.plain(parquet.read_table(f"{folder}/{name}.parquet")) for name in TABLES}


@pytest.fixture(scope="module")
def connection(server, tables):
    for name, data in tables.items():
        server.create(name, data)
    with server.connect() as made:
        yield made


@pytest.fixture(scope="module")
def reference(tables):
    with duckdb.connect() as con:
        for name, data in tables.items():
            con.register(name, data)
        yield con


@pytest.mark.parametrize("number", QUERIES)
@pytest.mark.parametrize("made", [of_text, of_expression])
def test_no_query_is_refused(made, number):
    small = tpch_data.tables()
    pfunc = made(number, small)
    kinds = {name: arrow.type_of(small[name]) for name in pfunc.attrs["names"]}
    assert refusal(read_sql(pfunc.attrs["code"]), "spark", kinds) == []


@pytest.mark.slow("a Spark server")
@pytest.mark.parametrize("number", QUERIES)
@pytest.mark.parametrize("made", [of_text, of_expression])
def test_a_query_is_equal_on_spark(connection, tables, reference, made, number):
    """Integers, decimals, texts and dates are; floats in twelve digits; and so is the order."""
    pfunc = made(number, tables)
    names = pfunc.attrs["names"]
    offered = {name: Offered(arrow.type_of(tables[name]), ("default", name)) for name in names}
    parts = run_on_spark(connection, read_sql(pfunc.attrs["code"]), offered, pfunc.attrs["gives"])
    got = pa.Table.from_batches(list(parts))
    check_same(got, reference.execute(sql(number)).to_arrow_table())
