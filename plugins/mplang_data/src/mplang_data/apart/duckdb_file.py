"""DuckDB files, which anybody may have made: what they contain reaches nothing but themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from mplang_tables.ext import quoted, quoted_text

from mplang_data.description import SourceError

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
_WHAT_TO_DO = (
    "and a source is a table, or a view over tables of the same file; make a table of it: CREATE "
    "TABLE ... AS FROM ..."
)


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
    con.execute(f"ATTACH {quoted_text(path)} AS {quoted(name)} (READ_ONLY)")
    schema, _, table = table.rpartition(".")
    relation = ".".join(map(quoted, (name, schema or "main", table)))
    definitions = " UNION ALL ".join(
        f"SELECT * FROM ({each}) WHERE database_name = {quoted_text(name)}" for each in _OF_FILE
    )
    try:
        _check(con, table, f"SELECT * FROM {relation}", f"SELECT sql FROM ({definitions})")
    except CatalogException as error:
        raise SourceError("the database does not give it") from error
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
        raise SourceError(f"{name!r} reads from outside of its file, {_WHAT_TO_DO}") from error
    plan = json.loads(dict(plans)["logical_plan"])
    for operator in _operators(plan):
        if operator not in _OF_TABLES:
            raise SourceError(f"{name!r} is a view that reads {operator.lower()}, {_WHAT_TO_DO}")
    for (definition,) in con.execute(definitions).fetchall():
        # the plan has their values
        if told := _TELLS.search(definition or ""):
            raise SourceError(
                f"its file calls {told[1].lower()}, which discloses the process that reads it; "
                "drop the view, macro or column that does"
            )


def _operators(plan: Any) -> Iterator[str]:
    for each in plan:
        yield each["name"]
        yield from _operators(each["children"])
