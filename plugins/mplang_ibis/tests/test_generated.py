"""Generated SQL: what a party gives is what bare DuckDB gives on one thread, row by row."""

from __future__ import annotations

import random
import re

import duckdb
import pytest
import sql_queries
from mplang_ibis import query
from mplang_ibis.sql import read_sql
from mplang_ibis.statement import ibis_sql
from mplang_tables import arrow

from mplang_core.ext import Operand

TABLES = sql_queries.tables(300)


@pytest.fixture(scope="module")
def reference():
    with duckdb.connect(config={"threads": 1}) as con:
        for name, table in TABLES.items():
            con.register(name, table)
        yield con


def ran(text):
    """Return what a party gives, for a text whose tables get placeholders."""
    marked = re.sub(r"(FROM|JOIN) ([ab])\b", r"\1 {\2} AS \2", text).replace(" AS a AS a", " AS a")
    names = [name for name in TABLES if f"{{{name}}}" in marked]
    operands = [Operand(arrow.type_of(TABLES[name])) for name in names]
    attrs = ibis_sql(*operands, text=marked, names=names).pfunc.attrs
    tables = {name: TABLES[name] for name in names}
    return query.run_sql(read_sql(attrs["code"]), tables, attrs["gives"])


def check(reference, seeds):
    for seed in seeds:
        text = sql_queries.query(random.Random(seed))
        bound = reference.sql(text)
        sums = [kind == "HUGEINT" for kind in map(str, bound.types)]
        expected = [
            [int(x) if is_sum and x is not None else x for x, is_sum in zip(row, sums, strict=True)]
            for row in bound.fetchall()
        ]
        got = ran(text)
        assert got.column_names == bound.columns, text
        rows = [list(row.values()) for row in got.to_pylist()]
        assert str(rows) == str(expected), text  # as texts: NaN is NaN, 1.0 is not 1.00


def test_generated_queries_give_what_duckdb_gives(reference):
    check(reference, range(30))


@pytest.mark.long("a hundred and fifty queries")
def test_many_generated_queries_give_what_duckdb_gives(reference):
    check(reference, range(2000, 2150))
