"""The 22 queries of TPC-H, as Ibis expressions at a party, against their SQL on DuckDB.

Both are those that Ibis is tested with; its wheel has them.
"""

from __future__ import annotations

import inspect
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
import tpch_data
from ibis.backends.tests.tpc import conftest
from ibis.backends.tests.tpc.h import test_queries as of_ibis
from ibis_programs import at

import mplang_core as mp

TABLES = tpch_data.tables()
SQL = Path(conftest.__file__).parent / "queries/duckdb/h"
QUERIES = [f"{n:02d}" for n in range(1, 23)]


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
def test_a_query_gives_what_its_sql_gives(sim, there, reference, number):
    query = _expression(number)
    names = list(inspect.signature(query).parameters)
    tables = [there[name] for name in names]
    got = mp.fetch(sim, mp.evaluate(sim, lambda *ts: at("P0", query, *ts), *tables))
    expected = reference.execute((SQL / f"{number}.sql").read_text()).to_arrow_table()
    assert got.num_rows == expected.num_rows > 0
    assert all(column.null_count < got.num_rows for column in got.columns)  # it finds something
    for mine, theirs in zip(got.columns, expected.columns, strict=True):
        for a, b in zip(mine.to_pylist(), theirs.to_pylist(), strict=True):
            assert _same(a, b), (a, b)


def _expression(number):
    """Return the function within a test of Ibis; of one its decorator lacks the name of a suite."""
    found = inspect.unwrap(getattr(of_ibis, f"test_{number}"))
    return inspect.getclosurevars(found).nonlocals.get("suite_name", found)


def _same(a, b):
    if isinstance(a, Decimal) and isinstance(b, Decimal):
        return a == b  # each digit
    return a == pytest.approx(b) if isinstance(a, float) else a == b
