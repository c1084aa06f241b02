"""Admission and execution of SQL. Imports DuckDB and Arrow."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import threading
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NoReturn

import duckdb
from mplang_tables import arrow
from mplang_tables.ext import Scan

from mplang_core import TableType
from mplang_core.ext import AdmissionError, KernelError
from mplang_ibis import settings
from mplang_ibis.allowlist import FUNCTIONS, KINDS, PROCESS
from mplang_ibis.joins import check_joins
from mplang_ibis.sql import NAME, quoted
from mplang_ibis.varying import why_not_repeatable

MAX_SIGNS = 64  # of which one operator is: DuckDB takes cubic time to split more, holding the GIL
_SIGNS = re.compile(rf"(?:\+|-(?!-)){{{MAX_SIGNS + 1}}}")  # two minus signs begin a comment
MAX_TRIED = 64  # columns of a failed result, each of which is tried alone
_SCAN_FAILED = "get_next failed"  # as DuckDB tells what Arrow could not read
AGAIN = 0.1  # seconds after which a connection is interrupted again, which was between two queries
FAILURES = (duckdb.Error, UnicodeDecodeError)  # messages are cut, perhaps within a character
OF_VALUES = (duckdb.ConversionException, duckdb.InvalidInputException, duckdb.OutOfRangeException)

LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
    "temp_directory": "",
    "threads": 1,  # makes the order of rows deterministic
}


def run_sql(sql: str, tables: Mapping[str, Any], gives: TableType, *, op: str = "ibis.run") -> Any:
    """Run one SELECT on tables, on a new connection without other access.

    Args:
        sql: in the dialect of DuckDB.
        tables: Arrow tables and scans by name; of a scan is read what the query needs.
        gives: the type of the result.
        op: the op that asks, for messages.

    Returns:
        The result as an Arrow table of that type.

    Raises:
        AdmissionError: the SQL is not allowed; names what is refused.
        KernelError: it took too long, a join gave too many rows, the result does not fit in
            the type, or DuckDB fails on the data: its reason may have values, and is for the owner.

    Example:
        >>> import pyarrow as pa
        >>> kind = TableType((("total", "int64"),))
        >>> run_sql('SELECT SUM("a") AS "total" FROM "x"', {"x": pa.table({"a": [1, 2]})}, kind)
        pyarrow.Table
        total: int64
        ----
        total: [[3]]
    """
    with _connect() as con:
        admit_on(con, sql, tables)
        for name, table in tables.items():
            register(con, name, table)
        with limited(con, op, settings.current.seconds):
            bound = bind(con, sql)
            try:
                found = bound.to_arrow_table()
            except duckdb.InterruptException:
                raise
            except FAILURES as error:
                _tell_damage(error, tables)
                raise failure(bound, error, op) from error
            check_joins(json.loads(con.get_profiling_information("json")), op)
    try:
        return arrow.cast(found, gives)
    except ValueError as error:
        raise KernelError(f"{op}: {error}", code="R010") from error


def failure(bound: duckdb.DuckDBPyRelation, error: Exception, op: str) -> KernelError:
    """Return what is raised for a query that fails on the data."""
    at = _failing(bound) if isinstance(error, OF_VALUES) else ""
    is_cast = isinstance(error, duckdb.ConversionException)
    advice = "; TRY_CAST gives null for what is not converted" if is_cast else ""
    return KernelError(f"{op}: {at}DuckDB fails: {_line(error)}{advice}", code="R010")


def _failing(bound: duckdb.DuckDBPyRelation) -> str:
    """Return which columns of a result fail alone, for a message; nothing if that tells nothing."""
    if len(bound.columns) > MAX_TRIED:
        return ""
    failing = []
    for name in bound.columns:
        try:
            bound.project(quoted(name)).to_arrow_table()
        except duckdb.InterruptException:
            raise
        except FAILURES:
            failing.append(name)
    if not failing or len(failing) == len(bound.columns) > 1:  # such as by a filter
        return ""
    return f"column{'s' * (len(failing) > 1)} {', '.join(map(repr, failing))}: "


def register(con: duckdb.DuckDBPyConnection, name: str, table: Any) -> None:
    """Give a table its name in SQL.

    Arrow filters rows for DuckDB, and takes NaN for no number, where DuckDB takes it for the
    greatest one. So a column of floats is one that is computed, on which DuckDB filters itself.
    """
    given = table.dataset if isinstance(table, Scan) else table
    floats = {field.name for field in table.schema if str(field.type) in ("float", "double")}
    if not floats:
        con.register(name, given)
        return
    con.register(f"{name} as it is", given)
    names = {column: quoted(column) for column in table.schema.names}
    columns = [f"-(-{q}) AS {q}" if column in floats else q for column, q in names.items()]
    con.execute(
        f"CREATE TEMP VIEW {quoted(name)} AS SELECT {', '.join(columns)} "
        f"FROM {quoted(f'{name} as it is')}"
    )


def _tell_damage(error: Exception, tables: Mapping[str, Any]) -> None:
    """Raise an error that names the scans if it was a scan that failed."""
    scans = [table for table in tables.values() if isinstance(table, Scan)]
    if scans and _SCAN_FAILED in str(error):
        with scans[0].reading(", ".join(scan.name for scan in scans)):
            raise error


@contextlib.contextmanager
def _connect() -> Iterator[duckdb.DuckDBPyConnection]:
    """Connect to a new, locked database, which has no table of another query."""
    with contextlib.closing(_new_database(settings.current.memory)) as con:
        yield con


def _new_database(memory: int) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(":memory:", config={**LOCKED, "memory_limit": f"{memory}B"})
    con.execute("SET GLOBAL TimeZone = 'UTC'")  # of all connections to it
    con.execute("SET enable_profiling = 'no_output'")
    con.execute("SET lock_configuration = true")
    return con


def _without_data() -> contextlib.closing[duckdb.DuckDBPyConnection]:
    """Connect to the locked database of this process that has no data, which takes no time.

    Tables are those of the connection: no other one has them.
    """
    return contextlib.closing(_empty_database(settings.current.memory, os.getpid()).cursor())


@functools.cache  # to make a database takes 12 ms; a process that was forked makes its own
def _empty_database(memory: int, process: int) -> duckdb.DuckDBPyConnection:
    return _new_database(memory)


@contextlib.contextmanager
def limited(con: duckdb.DuckDBPyConnection, op: str, seconds: float) -> Iterator[None]:
    """Interrupt what a connection does inside of ``with`` after some time."""
    ended = threading.Event()

    def interrupt() -> None:
        left = seconds
        while not ended.wait(left):
            con.interrupt()
            left = AGAIN

    threading.Thread(target=interrupt, daemon=True).start()
    try:
        yield
    except duckdb.InterruptException as error:
        raise KernelError(f"{op}: the query took longer than {seconds:g} s", code="R010") from error
    finally:
        ended.set()


def bind(con: duckdb.DuckDBPyConnection, sql: str) -> duckdb.DuckDBPyRelation:
    """Bind the SQL to the tables; no data is read yet, so the error message is safe to show."""
    try:
        return con.sql(sql)
    except duckdb.InterruptException:
        raise
    except FAILURES as error:  # of any kind, such as that of a constant that is folded
        raise AdmissionError(
            f"ibis.run: DuckDB refuses the SQL: {_line(error)}", code="A005"
        ) from error


# -- admission


def admit(sql: str, names: Collection[str]) -> None:
    """Refuse SQL other than one SELECT on the named tables.

    DuckDB's own parser reads it, which later runs it, so no two parsers can differ. Whatever is not
    known to be harmless is refused.

    Args:
        sql: in the dialect of DuckDB.
        names: the names of the tables.

    Raises:
        AdmissionError: it is anything else; names what.

    Example:
        >>> admit('SELECT "a" FROM "x"', ["x"])
        >>> admit("SELECT * FROM read_csv('secret.csv')", ["x"])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        mplang_core.errors.AdmissionError: ... may not run at a party: the table function read_csv
        mplang explain A005
    """
    with _without_data() as con:
        admit_on(con, sql, names)


def types_of(sql: str, tables: Mapping[str, TableType]) -> list[tuple[str, str]]:
    """Return the names and DuckDB's types of the columns of one SELECT, without data.

    Args:
        sql: in the dialect of DuckDB.
        tables: types of the tables by name.

    Raises:
        AdmissionError: it is anything else, or DuckDB refuses it; names what.

    Example:
        >>> types_of('SELECT sum("p") AS "s" FROM "x"', {"x": TableType((("p", "int8"),))})
        [('s', 'HUGEINT')]
    """
    with _without_data() as con:
        admit_on(con, sql, tables)
        for name, kind in tables.items():
            register(con, name, arrow.schema(kind).empty_table())
        bound = bind(con, sql)
        try:
            bound.limit(0).to_arrow_table()
        except FAILURES as error:  # such as of a constant that does not fit
            raise AdmissionError(
                f"ibis.run: DuckDB refuses the SQL: {_line(error)}", code="A005"
            ) from error
        return [*zip(bound.columns, map(str, bound.types), strict=True)]


def parse(sql: str) -> dict[str, Any]:
    """Return the syntax tree of one SELECT, as DuckDB serializes it.

    Raises:
        AdmissionError: it is anything else.
    """
    with _without_data() as con:
        return parse_on(con, sql)


def admit_on(con: duckdb.DuckDBPyConnection, sql: str, names: Collection[str]) -> None:
    """Refuse SQL as :func:`admit` does, by a connection that is there."""
    try:
        found = list(nodes(parse_on(con, sql)))
    except RecursionError as error:
        raise AdmissionError("ibis.run: the SQL is nested too deep", code="A005") from error
    ctes = {entry["key"] for node in found for entry in node.get("cte_map", {}).get("map", ())}
    for name in sorted(ctes):
        if not _GENERATED.fullmatch(name) and not NAME.fullmatch(name):
            _refuse(f"the name {name!r} in WITH")
    known = {name.lower() for name in (*names, *ctes)}
    for node in found:
        _check(node, known)


_GENERATED = re.compile(r"t\d+")  # Ibis's names of subqueries
_OPERATOR = re.compile(r"\W+")
_PLACES = {"catalog", "schema"}  # a file that is attached has types and macros of its own


def parse_on(con: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    """Return the syntax tree of the one SELECT, as :func:`parse` does, by a connection."""
    if _SIGNS.search(sql):
        _refuse(f"over {MAX_SIGNS} plus and minus signs in a row")
    asked = "SELECT json_serialize_sql(?::VARCHAR, skip_null := true, skip_empty := true)"
    try:
        row = con.execute(asked, [sql]).fetchone()
    except FAILURES as error:
        raise AdmissionError(
            f"ibis.run: it is not a SELECT that DuckDB reads: {_line(error)}", code="A005"
        ) from error
    assert row is not None
    try:
        found: dict[str, Any] = json.loads(row[0])
    except ValueError:  # instead of an error whose message would not fit
        raise AdmissionError(
            "ibis.run: it is not a SELECT that DuckDB reads", code="A005"
        ) from None
    if found["error"]:
        reason = str(found["error_message"]).split("\n", 1)[0]
        if "position" in found:
            before = sql.encode()[: int(found["position"])]
            reason = f"line {before.count(10) + 1}: {reason}"
        raise AdmissionError(
            f"ibis.run: it is not a SELECT that DuckDB reads: {reason}", code="A005"
        )
    statements: list[dict[str, Any]] = found.get("statements", [])
    if len(statements) != 1:
        _refuse(f"{len(statements)} statements; it may be one SELECT")
    return statements[0]


def nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield the nodes of a syntax tree."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            yield node
            todo += node.values()
        elif isinstance(node, list):
            todo += node


def _check(node: dict[str, Any], known: Collection[str]) -> None:
    kind = node.get("class", node.get("type"))
    if kind == "TABLE_FUNCTION":
        _refuse(f"the table function {node['function']['function_name']}")
    if isinstance(kind, str) and kind not in KINDS and not kind.endswith("_TYPE_INFO"):
        why = "; write the value in the text" if kind == "PARAMETER" else ""
        _refuse(f"{kind.replace('_', ' ').lower()}{why}")
    for key in ("sample", "at_clause"):
        if key in node:
            _refuse(f"{key.replace('_', ' ')}{why_not_repeatable(key)}")
    if kind == "BASE_TABLE":
        parts = [node.get(key) for key in ("catalog_name", "schema_name", "table_name")]
        *qualified, name = filter(None, parts)
        if qualified or name.lower() not in known:
            name = ".".join([*qualified, name])
            _refuse(f"the table {name!r}; declared are {', '.join(sorted(known))}")
    if isinstance(kind, str) and kind.endswith("_TYPE_INFO") and not _PLACES.isdisjoint(node):
        _refuse(f"the type {node.get('name')} of a catalog or a schema")
    if kind in ("FUNCTION", "WINDOW"):
        name = node["function_name"].lower()
        if "catalog" in node or node.get("schema", "main") != "main":
            _refuse(f"the function {name} of a catalog or a schema")
        if name not in FUNCTIONS and not _OPERATOR.fullmatch(name):
            _refuse(f"the function {name}{why_not_repeatable(name)}")
    if kind == "COLUMN_REF" and ".".join(node["column_names"]).lower() in PROCESS:
        word = node["column_names"][0]
        why = why_not_repeatable(word) or "; it may ask the process"
        _refuse(f"the word {word} without a table{why}")


def _refuse(what: str) -> NoReturn:
    raise AdmissionError(f"ibis.run: the SQL has what may not run at a party: {what}", code="A005")


def _line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
