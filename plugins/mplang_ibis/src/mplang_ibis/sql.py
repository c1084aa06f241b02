"""Text of SQL in programs, and what it calls its tables. Imports no Ibis, DuckDB or Arrow."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mplang_tables.ext import quoted as quoted

from mplang_core.ext import unpack

MAX_SQL = 256 << 10  # bytes; DuckDB takes quadratic time for long conditions, holding the GIL

NAME = re.compile(r"(?!(t\d|pg_|duckdb_|sqlite_|pragma_|information_schema))[a-z][a-z0-9_]{0,62}")
"""Pattern of table names, which excludes names that Ibis generates, and DuckDB's catalog."""


def read_sql(code: bytes) -> str:
    """Decompress the SQL of an op; the party's DuckDB decides whether it may run.

    Raises:
        ValueError: it is not compressed text, or too long.
    """
    sql = unpack(code, MAX_SQL)
    if "\0" in sql:
        raise ValueError("the code has a NUL character")
    return sql


def check_names(names: Sequence[object]) -> None:
    """Refuse ambiguous table names.

    Raises:
        ValueError: a name does not match :data:`NAME`, names are not unique, or there are none.
    """
    for name in names:
        if not isinstance(name, str) or NAME.fullmatch(name) is None:
            raise ValueError(
                f"{name!r} is not a name of a table here: letters, digits and underscores, all in "
                "lower case; not t0, t1, … and none of DuckDB's own (duckdb_…, pg_…, sqlite_…)"
            )
    if len(set(names)) != len(names) or not names:
        raise ValueError(f"each table needs a different name, got ({', '.join(map(str, names))})")
