"""SQL is parsed by one database of the process: to make one takes longer than to parse."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pytest
from mplang_ibis import query

import mplang_core as mp
from mplang_core.errors import AdmissionError

SQL = 'SELECT AVG("a") AS "c{}" FROM "x"'
QUERIES = 200


def alias_of(tree):
    (column,) = tree["node"]["select_list"]
    return column["alias"]


@pytest.fixture
def databases(monkeypatch):
    """Return the databases that are made."""
    made = []
    connect = duckdb.connect

    def count(*args, **options):
        made.append(args)
        return connect(*args, **options)

    monkeypatch.setattr(duckdb, "connect", count)
    query._empty_database.cache_clear()
    return made


def test_all_that_is_parsed_takes_one_database(databases):
    """The first analysis of a program took 110 ms, of which 66 to make six databases."""
    for i in range(6):
        query.parse(SQL.format(i))
        query.admit(SQL.format(i), ["x"])
    assert len(databases) == 1


def test_types_take_that_database_too_and_leave_no_table_in_it(databases):
    for kind, found in {"int64": "HUGEINT", "double": "DOUBLE"}.items():
        tables = {"x": mp.TableType((("a", kind),))}
        assert query.types_of('SELECT SUM("a") AS "s" FROM "x"', tables) == [("s", found)]
    assert len(databases) == 1
    with query._without_data() as con, pytest.raises(duckdb.Error, match="x does not exist"):
        con.sql('FROM "x"')


def test_threads_parse_at_once():
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: alias_of(query.parse(SQL.format(i))), range(QUERIES)))
    assert found == [f"c{i}" for i in range(QUERIES)]


def test_what_is_refused_leaves_nothing_for_the_next_query():
    with pytest.raises(AdmissionError, match="not a SELECT"):
        query.parse("CREATE TABLE x (a INT)")
    with pytest.raises(AdmissionError, match="not a SELECT"):
        query.parse("SELECT (")
    assert alias_of(query.parse(SQL.format(0))) == "c0"


def test_a_process_that_was_forked_parses():
    query.parse(SQL.format(0))
    child = os.fork()
    if not child:
        code = 1
        try:
            code = alias_of(query.parse(SQL.format(1))) != "c1"
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
