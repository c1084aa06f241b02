"""Queries of TPC-H, of the tests in Ibis's wheel, and how they run without a simulator."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from ibis.backends.tests.tpc import conftest
from ibis.backends.tests.tpc.h import test_queries as of_ibis
from mplang_ibis import ibis_compile, query
from mplang_ibis.sql import read_sql
from mplang_ibis.statement import ibis_sql
from mplang_tables import arrow

import mplang_core as mp
from mplang_core.ext import Operand

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
QUERIES = [f"{n:02d}" for n in range(1, 23)]
_SQL = Path(conftest.__file__).parent / "queries/duckdb/h"


def sql(number):
    """Return the SQL of a query."""
    return (_SQL / f"{number}.sql").read_text()


def expression(number):
    """Return the function within a test of Ibis; of one its decorator lacks the name of a suite."""
    found = inspect.unwrap(getattr(of_ibis, f"test_{number}"))
    return inspect.getclosurevars(found).nonlocals.get("suite_name", found)


def marked(number):
    """Return the SQL of a query with placeholders in place of its tables, and their names."""
    text = sql(number)
    names = [name for name in TABLES if re.search(rf"\b{name}\b", text)]
    return re.sub(rf"(?<![\w.])({'|'.join(names)})(?![\w.])", r"{\1}", text), names


def of_text(number, tables):
    """Return the program of a query's SQL."""
    text, names = marked(number)
    operands = [Operand(arrow.type_of(tables[name])) for name in names]
    return ibis_sql(*operands, text=text, names=names).pfunc


def of_expression(number, tables):
    """Return the program of a query's expression."""
    fn = expression(number)
    names = list(inspect.signature(fn).parameters)
    kinds = tuple(arrow.type_of(tables[name]) for name in names)
    return ibis_compile(fn, mp.FeSignature(kinds), names).pfunc


def ran(pfunc, tables):
    """Return what a program gives on tables by name, as its kernel does."""
    names = pfunc.attrs["names"]
    code, gives = read_sql(pfunc.attrs["code"]), pfunc.attrs["gives"]
    return query.run_sql(code, {name: tables[name] for name in names}, gives)


def check_same(got, expected):
    """Check that all values are equal: each digit of a decimal, floats to 1e-12."""
    assert got.num_rows == expected.num_rows > 0
    for mine, theirs in zip(got.columns, expected.columns, strict=True):
        for a, b in zip(mine.to_pylist(), theirs.to_pylist(), strict=True):
            assert a == pytest.approx(b, rel=1e-12, abs=0) if isinstance(a, float) else a == b
