"""The 22 queries of TPC-H, as Ibis expressions and as SQL text, against bare DuckDB.

Both are those that Ibis is tested with; its wheel has them.
"""

from __future__ import annotations

import inspect

import duckdb
import pytest
import tpch_data
from ibis_programs import at
from tpch_queries import QUERIES, check_same, expression, of_text, ran, sql

import mplang_core as mp

TABLES = tpch_data.tables()


@pytest.fixture(scope="module")
def sim():
    with mp.Simulator(mp.ClusterSpec.simple(1)) as made:
        yield made


@pytest.fixture(scope="module")
def there(sim):
    """Put each table at the party."""
    with mp.with_ctx(sim):
        return {name: mp.put("P0", data) for name, data in TABLES.items()}


@pytest.fixture(scope="module")
def reference():
    """Open DuckDB on the same tables."""
    with duckdb.connect() as con:
        for name, data in TABLES.items():
            con.register(name, data)
        yield con


@pytest.mark.parametrize("number", QUERIES)
def test_an_expression_gives_what_its_sql_gives(sim, there, reference, number):
    query = expression(number)
    tables = [there[name] for name in inspect.signature(query).parameters]
    got = mp.fetch(sim, mp.evaluate(sim, lambda *ts: at("P0", query, *ts), *tables))
    expected = reference.execute(sql(number)).to_arrow_table()
    assert all(column.null_count < got.num_rows for column in got.columns)  # it finds something
    check_same(got, expected)


@pytest.mark.parametrize("number", QUERIES)
def test_a_text_gives_what_duckdb_gives(reference, number):
    got = ran(of_text(number, TABLES), TABLES)
    check_same(got, reference.execute(sql(number)).to_arrow_table())
