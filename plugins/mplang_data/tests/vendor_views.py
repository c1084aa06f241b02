"""Views of a vendor over what is not there where the file is made, such as URLs."""

from __future__ import annotations

import re

READERS = ("read_csv", "read_text", "read_blob", "read_parquet", "read_json", "glob")


def make_view(connection, query: str) -> None:
    """Make a view ``prices``, without a look at what it is to read.

    DuckDB looks when a view is made, and needs httpfs for URLs. But the view keeps names only,
    which are looked up when it is read: so they stand for something else here, which is dropped.
    """
    tables = re.findall(r"FROM '([^']+)'", query)
    columns = "SELECT 'a' AS id, 'a' AS note, 'a' AS content, 'a' AS file"
    for name in READERS:
        connection.execute(f'CREATE MACRO "{name}"(place) AS TABLE {columns}')
    for name in tables:
        connection.execute(f'CREATE TABLE "{name}" AS {columns}')
    connection.execute(f"CREATE VIEW prices AS {query}")
    for name in READERS:
        connection.execute(f'DROP MACRO TABLE "{name}"')
    for name in tables:
        connection.execute(f'DROP TABLE "{name}"')
