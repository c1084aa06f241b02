"""DuckDB files, which anybody may have made: what they contain reaches nothing but themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from mplang_data.description import SIZE, SourceError
from mplang_data.relations import quoted, text

_CLOSED = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
    "temp_directory": "",
}
"""Settings of DuckDB with which a file reaches no other file, and no network. None is written."""

_OF_TABLES = {
    "AGGREGATE", "ANY_JOIN", "ASOF_JOIN", "COMPARISON_JOIN", "CROSS_PRODUCT", "CTE", "CTE_SCAN",
    "DELIM_GET", "DELIM_JOIN", "DEPENDENT_JOIN", "DISTINCT", "DUMMY_SCAN", "EMPTY_RESULT", "EXCEPT",
    "EXPRESSION_GET", "FILTER", "INTERSECT", "JOIN", "LIMIT", "MATERIALIZED_CTE", "ORDER_BY",
    "PIVOT", "POSITIONAL_JOIN", "PROJECTION", "RECURSIVE_CTE", "REC_CTE", "SAMPLE", "SEQ_SCAN",
    "TOP_N", "UNION", "UNNEST", "WINDOW",
}  # fmt: skip
"""Operators of DuckDB's plans that read tables of the file, or the rows of other operators."""

_TELLS = re.compile(r'\b(current_setting|getenv)"?\s*\(', re.IGNORECASE)
_OF_FILE = (
    "SELECT database_name, sql FROM duckdb_views() WHERE NOT internal",
    "SELECT database_name, sql FROM duckdb_tables()",
    "SELECT database_name, macro_definition FROM duckdb_functions() WHERE NOT internal",
)
_DEFINITIONS = f"SELECT sql FROM ({' UNION ALL '.join(_OF_FILE)})"
_WHAT_TO_DO = (
    "and a source is a table, or a view over tables of the same file; make a table of it: CREATE "
    "TABLE ... AS FROM ..."
)


def connect(path: str, *, read_only: bool, memory: int = SIZE) -> Any:
    """Connect Ibis to a DuckDB file.

    Args:
        path: where it is.
        read_only: whether one that is not there is an error, and is not made.
        memory: bytes that DuckDB takes.
    """
    import ibis  # type: ignore[import-untyped]

    made = ibis.duckdb.connect(path, read_only=read_only, memory_limit=f"{memory}B", **_CLOSED)
    made.con.execute("SET explain_output = 'all'")  # what a view is, not what is left of it
    made.con.execute("SET lock_configuration = true")  # after Ibis's own settings
    return made


def table(connection: Any, name: str, *, database: str | None) -> Any:
    """Return a table of a DuckDB file, or a view over its tables.

    Args:
        connection: Ibis's, to the file.
        name: the name of the table.
        database: its schema, as Ibis calls it.

    Raises:
        SourceError: it is a view that reads anything else.
    """
    from duckdb import PermissionException

    try:
        found = connection.table(name, database=database)
        sql = connection.compile(found)
    except PermissionException as error:
        raise SourceError(f"{name!r} reads what is not in its file, {_WHAT_TO_DO}") from error
    _check(connection.con, name, sql, _DEFINITIONS)
    return found


def attached(con: Any, path: str, table: str) -> str:
    """Attach a DuckDB file to a locked connection, and return what SQL selects from.

    Args:
        con: the connection.
        path: where the file is.
        table: the name of a table of it, or of a view over its tables, perhaps with its schema.

    Raises:
        SourceError: there is none, or it is a view that reads anything else.
    """
    from duckdb import CatalogException

    number = con.execute("SELECT count(*) FROM duckdb_databases()").fetchone()[0]
    name = f"source {number}"
    con.execute(f"ATTACH {text(path)} AS {quoted(name)} (READ_ONLY)")
    schema, _, table = table.rpartition(".")
    relation = ".".join(map(quoted, (name, schema or "main", table)))
    definitions = " UNION ALL ".join(
        f"SELECT * FROM ({each}) WHERE database_name = {text(name)}" for each in _OF_FILE
    )
    try:
        _check(con, table, f"SELECT * FROM {relation}", f"SELECT sql FROM ({definitions})")
    except CatalogException as error:
        raise SourceError(f"it has no table {table!r}") from error
    return relation


def _check(con: Any, name: str, sql: str, definitions: str) -> None:
    """Check what a table of a file reads, if it is a view.

    Raises:
        SourceError: it reads anything but tables of its file.
    """
    from duckdb import PermissionException

    try:
        plans = con.execute(f"EXPLAIN (FORMAT json) {sql}").fetchall()
    except PermissionException as error:
        raise SourceError(f"{name!r} reads what is not in its file, {_WHAT_TO_DO}") from error
    plan = json.loads(dict(plans)["logical_plan"])
    for operator in _operators(plan):
        if operator not in _OF_TABLES:
            raise SourceError(f"{name!r} is a view that reads {operator.lower()}, {_WHAT_TO_DO}")
    for (definition,) in con.execute(definitions).fetchall():
        # the plan has their values
        if told := _TELLS.search(definition or ""):
            raise SourceError(
                f"its file calls {told[1].lower()}, which tells of the process that reads it; "
                "drop the view, macro or column that does"
            )


def _operators(plan: Any) -> Iterator[str]:
    for each in plan:
        yield each["name"]
        yield from _operators(each["children"])
