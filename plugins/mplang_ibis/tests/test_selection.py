"""Lineage of SQL: what of a result is rows of a table as they are, told and not guessed."""

from __future__ import annotations

import pytest
from mplang_ibis.selection import selection_of

from mplang_core import TableType

PEOPLE = TableType((("id", "int64"), ("Pay", "double"), ("city", "string")))
SALES = TableType((("person", "int64"), ("city", "string")))
TABLES = (("people", PEOPLE), ("sales", SALES))


def gives(*columns):
    types = dict(PEOPLE.columns)
    return TableType(tuple((name, types.get(name, "double")) for name in columns))


def test_columns_keep_their_names_and_filters_are_told():
    sql = 'SELECT "Pay" AS "wage", id FROM people AS t WHERE lower(t.city) = \'x\' AND PAY > 3'
    found = selection_of(sql, TABLES, TableType((("wage", "double"), ("id", "int64"))))
    assert found.table == 0
    assert found.columns == (("wage", "Pay"), ("id", "id"))
    assert found.filtered == {(0, "city"), (0, "Pay")}
    assert found.functions == {"lower"}


def test_what_is_computed_is_told_from_what_is_not():
    found = selection_of(
        'SELECT id, t."Pay" * 2 AS "Pay" FROM people AS t', TABLES, gives("id", "Pay")
    )
    assert found.columns == (("id", "id"), ("Pay", None))
    cast = TableType((("id", "int32"),))
    assert selection_of("SELECT id FROM people", TABLES, cast).columns == (("id", None),)


def test_a_filter_by_what_was_computed_names_what_that_is_made_of():
    sql = "SELECT id FROM (SELECT id, ln(Pay) AS x FROM people) AS t WHERE x > 1"
    found = selection_of(sql, TABLES, gives("id"))
    assert found.filtered == {(0, "Pay")}
    assert found.functions == {"ln"}


def test_a_match_is_told_with_what_else_decides():
    sql = (
        "SELECT t.id FROM people AS t SEMI JOIN (SELECT * FROM sales WHERE city = 'x') AS s "
        "ON t.id = s.person AND t.city > 'x'"
    )
    found = selection_of(sql, TABLES, gives("id"))
    assert found.table == 0
    assert found.matched == {(0, "id"), (1, "person")}
    assert found.same == {((0, "id"), (1, "person"))}
    assert found.filtered == {(0, "city"), (1, "city")}


def test_rows_that_are_not_matched_are_the_same_as_none():
    """Whoever is left is not in the other table, so counting them counts nobody of it."""
    sql = "SELECT t.id FROM people AS t ANTI JOIN sales AS s ON t.id = s.person"
    found = selection_of(sql, TABLES, gives("id"))
    assert found.matched == {(0, "id"), (1, "person")}
    assert found.same == frozenset()


def test_names_are_compared_as_duckdb_does():
    """It ignores the case of ASCII letters only; the K is a Kelvin sign."""
    odd = TableType((("größe", "double"), ("risk", "double")))
    sql = 'SELECT "GRößE" AS a, t.Risk AS b FROM odd AS t'
    found = selection_of(sql, (("odd", odd),), gives("a", "b"))
    assert [column for _, column in found.columns] == ["größe", "risk"]
    for name in ("ris\N{KELVIN SIGN}", "grÖße"):
        sql = f'SELECT t.risk * 2 AS "{name}", t."{name}" AS b FROM odd AS t'
        assert selection_of(sql, (("odd", odd),), gives(name, "b")) is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT id FROM people",
        "SELECT id FROM people LIMIT 3",
        "SELECT id FROM people ORDER BY Pay",
        "SELECT id FROM people GROUP BY id",
        "SELECT max(id) AS id FROM people",
        "SELECT id FROM people GROUP BY ALL",
        "SELECT id FROM people QUALIFY row_number() OVER (ORDER BY Pay) = 1",
        "SELECT id FROM people WHERE id = (SELECT max(id) FROM people)",
        "SELECT id FROM people WHERE id IN (SELECT person FROM sales)",
        "SELECT sum(id) OVER () AS id FROM people",
        "SELECT unnest([id, id]) AS id FROM people",
        "SELECT t.id FROM people AS t JOIN sales AS s ON t.id = s.person",
        "SELECT t.id FROM people AS t LEFT JOIN sales AS s ON t.id = s.person",
        "SELECT t.id FROM people AS t, sales AS s",
        "SELECT t.id FROM people AS t SEMI JOIN people AS s ON t.city = s.city",
        "SELECT id FROM people UNION ALL SELECT id FROM people",
        "SELECT id FROM people AS people(id, id2, id3)",
        "SELECT Pay AS x, x AS id FROM people",
        "SELECT id, Pay AS city FROM people WHERE city = 'x'",
        "SELECT rowid AS id FROM people",
        "SELECT 1 AS id",
        "SELECT id FROM people WHERE count(*) > 1",
        "SELECT COLUMNS(*) FROM people",
        "SELECT id FROM people POSITIONAL JOIN sales",
        "SELECT t.id FROM people AS t SEMI JOIN sales AS s ON t.id = s.person OR t.city = 'x'",
        "SELECT t.id FROM people AS t SEMI JOIN sales AS s ON t.id = s.person AND t.city < s.city",
        "SELECT t.id FROM people AS t SEMI JOIN sales AS s ON t.pay = s.person",
        "SELECT t.id FROM people AS t SEMI JOIN sales AS s ON t.city = s.person",
        "SELECT t.id FROM people AS t ANTI JOIN sales AS s ON t.id <> s.person",
        "SELECT alias.id FROM people AS alias",
        "SELECT Pay AS p, alias.p AS id FROM people",
        "SELECT id FROM people WHERE alias.id > 3",
        "SELECT id FROM people ASOF JOIN sales ON people.id >= sales.person",
    ],
)
def test_what_gives_other_rows_or_is_not_known_has_no_lineage(sql):
    assert selection_of(sql, TABLES, gives("id")) is None
