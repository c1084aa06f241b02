"""The 22 queries of TPC-H, as SQL, on PostgreSQL against DuckDB, with indexes on the keys.

Their text is in Ibis's wheel. The tables are small ones that are made here, or those of a folder of
Parquet files that MPLANG_TPCH names, such as those of ``tpchgen-cli -s 0.01 --format=parquet``.
"""

from __future__ import annotations

import os
from pathlib import Path

import odd_rows
import psycopg
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import tpch_data
from ibis.backends.tests.tpc import conftest
from mplang_ibis import query
from mplang_ibis.engines import Offered, refusal
from mplang_ibis.engines.postgresql import PostgreSqlDialect
from mplang_ibis.engines.run_postgresql import run_on_postgresql
from mplang_ibis.engines.types import type_of_column
from mplang_ibis.result_types import declared
from mplang_tables import arrow
from postgres import server as server

SQL = Path(conftest.__file__).parent / "queries/duckdb/h"
NUMBERS = [f"{n:02d}" for n in range(1, 23)]
KEYS = {
    "lineitem": ["l_orderkey", "l_partkey, l_suppkey"], "orders": ["o_orderkey", "o_custkey"],
    "partsupp": ["ps_partkey, ps_suppkey"], "part": ["p_partkey"], "customer": ["c_custkey"],
    "supplier": ["s_suppkey"], "nation": ["n_nationkey"], "region": ["r_regionkey"],
}  # fmt: skip
QUICK = ("01", "06", "11", "16", "20", "22")


def _tables():
    folder = os.environ.get("MPLANG_TPCH")
    if not folder:
        return tpch_data.tables()
    found = {name: parquet.read_table(f"{folder}/{name}.parquet") for name in KEYS}
    return {name: arrow.plain(each) for name, each in found.items()}


@pytest.fixture(scope="module")
def tables():
    return _tables()


@pytest.fixture(scope="module")
def there(server, tables):
    """Connect to a database with the tables, and indexes on their keys."""
    with psycopg.connect(server.place, autocommit=True) as made:
        for name, data in tables.items():
            fill(made, name, data)
        made.execute("ANALYZE")
        yield made


def fill(connection, name, data):
    """Make a table with indexes on its keys."""
    dialect = PostgreSqlDialect()
    kinds = [(f.name, dialect.type_name(type_of_column(str(f.type)))) for f in data.schema]
    columns = ", ".join(f'"{column}" {kind}' for column, kind in kinds)
    connection.execute(f"CREATE TABLE {name} ({columns})")
    with connection.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN") as copy:
        for row in zip(*(column.to_pylist() for column in data.columns), strict=True):
            copy.write_row(row)
    for key in KEYS[name]:
        connection.execute(f"CREATE INDEX ON {name} ({key})")


@pytest.mark.parametrize(
    "number",
    [
        n if n in QUICK else pytest.param(n, marks=pytest.mark.long("all 22 queries"))
        for n in NUMBERS
    ],
)
def test_a_query_is_equal_on_postgresql(there, tables, number):
    """Integers, decimals, texts and dates are; floats in twelve digits; and so is the order."""
    sql = (SQL / f"{number}.sql").read_text().strip().rstrip(";")
    offered = {n: Offered(arrow.type_of(data), ("public", n)) for n, data in tables.items()}
    kind = declared(query.types_of(sql, {name: each.kind for name, each in offered.items()}))
    mine = pa.Table.from_batches(list(run_on_postgresql(there, sql, offered, kind)))
    theirs = query.run_sql(sql, tables, kind)
    assert theirs.num_rows > 0
    assert odd_rows.differing(mine, theirs) == []


def test_no_query_is_refused(tables):
    types = {name: arrow.type_of(data) for name, data in tables.items()}
    texts = [(SQL / f"{number}.sql").read_text().strip().rstrip(";") for number in NUMBERS]
    assert [refusal(text, "postgresql", types) for text in texts] == [[]] * 22
