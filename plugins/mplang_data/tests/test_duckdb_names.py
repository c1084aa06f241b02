"""SQL over a table of a DuckDB file reaches nothing else of that file, whatever an engine asks."""

from __future__ import annotations

from types import SimpleNamespace

import duckdb
import pytest
from mplang_data.section import SECTION

ASKER = SimpleNamespace(coordinator="host", session="s", parties=["bank"], rank=0)
AGES = {"data": "people", "type": 'table<["age", "int32"]>', "ranges": []}


@pytest.fixture
def ask(tmp_path):
    """Ask a worker without a gate, as an engine does that was taken over: return its answer."""
    path = tmp_path / "bank.duckdb"
    with duckdb.connect() as made:
        made.execute(f"""
            ATTACH '{path}' AS "source 3";
            USE "source 3";
            CREATE TABLE people AS SELECT 44 AS age, 'PRIVATE' AS diagnosis;
            CREATE TABLE salaries AS SELECT 99 AS age;
            CREATE TYPE mood AS ENUM ('PRIVATE');
            CREATE MACRO abs(x) AS (SELECT max(diagnosis) FROM "source 3".main.people);
            CREATE MACRO sign(x) AS (SELECT max(path) FROM duckdb_databases());
        """)
    people = {"source": f"duckdb:{path}#people", "columns": {"age": "int32"}, "readers": ["host"]}
    server = SECTION.front(SECTION.read({"people": people}, "/"), {})

    def answer(sql, column="string", name="people"):
        asked = {"tables": {"people": AGES, name: AGES}, "sql": sql}
        gives = {"gives": f'table<["a", "{column}"]>'}
        return server.answer(ASKER, "query", asked | gives, ())[0]

    return answer


def test_what_is_offered_is_answered(ask):
    answer = ask("SELECT main.abs(age::INT)::VARCHAR AS a FROM people")
    assert list(answer) == ["versions"]


@pytest.mark.parametrize("table", ["people", "salaries"])
def test_a_forged_name_is_no_table_of_the_file(ask, table):
    """Engines write the names: one read all tables, and columns that are not offered."""
    sql = f'SELECT max(COLUMNS(*))::VARCHAR AS a FROM "source 3".main.{table}'
    assert "not a name of a table" in ask(sql, name=f"source 3.main.{table}")["inadmissible"]


def test_a_forged_name_is_no_table_of_duckdb(ask):
    sql = "SELECT path AS a FROM system.main.duckdb_databases"
    assert "not a name" in ask(sql, name="system.main.duckdb_databases")["inadmissible"]


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT "source 3".main.abs(1) AS a FROM people',
        'SELECT "source 3".sign(1) AS a FROM people',
        "SELECT TRY_CAST('x' AS \"source 3\".main.mood)::VARCHAR AS a FROM people",
        "SELECT TRY_CAST(['x'] AS \"source 3\".mood[])::VARCHAR AS a FROM people",
    ],
    ids=["macro", "macro of a schema", "type", "type in a type"],
)
def test_macros_and_types_of_the_file_are_refused(ask, sql):
    assert "of a catalog or a schema" in ask(sql)["inadmissible"]
