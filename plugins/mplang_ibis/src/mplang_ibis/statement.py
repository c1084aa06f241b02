"""``mp.sql``: one SELECT over tables of a party or several. Imports no Ibis, DuckDB or Arrow."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from mplang_tables import check_table

import mplang_core as mp
from mplang_core import ClusterSpec, FeProgram, Form, MPObject, PFunction, TableType, feop
from mplang_core.ext import AdmissionError, TraceError, at, device_of_party, flatten, pack
from mplang_ibis.advice import sql_advice
from mplang_ibis.dialects import check_dialect, quoted_in, to_duckdb
from mplang_ibis.result_types import declared
from mplang_ibis.sql import check_names
from mplang_ibis.sql_text import filled, located


def sql(
    party: str, text: str, /, *, dialect: str = "duckdb", match: str = "", **tables: MPObject
) -> MPObject:
    """Return the result of one SELECT over tables of a party, or of several parties.

    With an SPU, such as ``"SP0"``, the tables are those of several parties and stay there; what is
    aggregated of their join is secret until it is revealed. That takes the package mplang-joins.

    The text is part of the program, which all parties can read, and is checked at the party as all
    SQL is: one SELECT over these tables, with functions that depend on their operands alone.

    Args:
        party: the name of the party, or of its PPU, such as ``"P0"``; or of an SPU.
        text: the SELECT. ``{people}`` stands for the table that is handed over by that keyword;
            another column or number is written as it is.
        dialect: the dialect of the text: DuckDB's, which the party runs, or another one by
            sqlglot's name (``"postgres"``, ``"mysql"``, ``"spark"``, …), which is translated.
        match: on an SPU ``"secret"``, the default, or ``"psi"``: see :func:`mplang_joins.join`.
        **tables: the tables that it reads, which are at that party.

    Returns:
        A table at that party, of the columns and types that DuckDB gives the text. A sum of
        integers is an ``int64``; the party fails if that does not hold it. On an SPU a
        :class:`mplang_joins.JoinedGroups`.

    Raises:
        TraceError: there is no such party, the text is no SELECT over these tables, a column is of
            a type that tables do not have, or the dialect has what DuckDB lacks; shows the line of
            the program and, where it is known, that of the text.
        DisclosureError: a table is at another party.

    Example:
        >>> import mplang_core as mp
        >>> people = {"name": ["Ann", "Bo", "Cy"], "age": [17, 44, 71]}
        >>> def adults():
        ...     people = mp.dataset("bank", "people")
        ...     return mp.sql("bank", "SELECT avg(age) AS age FROM {people} WHERE age > 17",
        ...                   people=people)
        >>> cluster = mp.ClusterSpec([{"name": "bank"}])
        >>> with mp.Simulator(cluster, data={"bank": {"people": people}}) as sim:
        ...     mp.fetch(sim, mp.evaluate(sim, adults)).to_pylist()
        [{'age': 57.5}]
    """
    cluster = mp.cur_ctx().cluster_spec
    assert isinstance(cluster, ClusterSpec)
    if "{" in str(party):
        raise TraceError(f"{at()}mp.sql: the party comes first, and then the SELECT", code="T010")
    device = _device(cluster, party)
    for name, value in tables.items():
        if not isinstance(getattr(value, "base_type", None), TableType):
            kind = getattr(value, "base_type", type(value).__name__)
            raise TraceError(
                f"{at()}mp.sql: {name!r} is not a table, but {kind}; tables stand behind the text "
                "by keyword, numbers and texts in it",
                code="T010",
            )
    run = mp.device(device, **({"match": match} if match else {}))(ibis_sql)
    made: MPObject = run(*tables.values(), text=text, names=tuple(tables), dialect=dialect)
    return made


def _device(cluster: ClusterSpec, name: str) -> str:
    """Return the device of a party, or a device that runs queries over tables of several."""
    if name in cluster.devices and cluster.device(name).kind.form is not Form.PLAIN:
        return name
    return device_of_party(cluster, name, ibis_sql).name


@feop(
    name="ibis.sql",
    dialects=("sql",),
    execution_model="single_rank",
    inputs=({"kind": "Table"},),
    outputs=({"kind": "Table"},),
)
def ibis_sql(*tables: Any, text: str, names: Sequence[str], dialect: str = "duckdb") -> FeProgram:
    """Compile one SELECT over tables, without data; :func:`sql` calls it.

    Args:
        *tables: the tables: values, or operands without data.
        text: the SELECT, in which ``{people}`` stands for the table of that name.
        names: the names of the tables.
        dialect: the dialect of the text, by sqlglot's name.

    Returns:
        A program of the op ``ibis.run``. Its result is a table with the columns and types that
        DuckDB gives the text.

    Raises:
        TraceError: it is not a SELECT over these tables, or a column is of a type that tables do
            not have; shows the line of the program and, where it is known, that of the text.

    Example:
        >>> from mplang_core import TableType
        >>> from mplang_core.ext import Operand
        >>> people = Operand(TableType((("name", "string"), ("age", "int64"))))
        >>> text = "SELECT name, age / 2 AS half FROM {people}"
        >>> print(*ibis_sql(people, text=text, names=["people"]).pfunc.outs_info)
        table<["name", "string"], ["half", "double"]>
    """
    inputs, in_tree = flatten(tables)
    kinds = tuple(each.base_type for each in inputs)
    try:
        if not isinstance(text, str):
            raise TypeError(f"SQL is a text, got a {type(text).__name__}")
        code, gives = _compiled(text, tuple(names), kinds, dialect)
    except AdmissionError as error:
        reason = located(text, sql_advice(text, _reason(error)))
        raise TraceError(f"{at()}mp.sql: {reason}", code="T010") from error
    except (TypeError, ValueError) as error:
        raise TraceError(f"{at()}mp.sql: {error}", code="T010") from error
    attrs = {"code": code, "names": tuple(names), "gives": gives, "ibis": ""}
    return FeProgram(
        PFunction("ibis.run", kinds, (gives,), attrs),
        in_tree=in_tree,
        out_tree=flatten(0)[1],
        inputs=tuple(inputs),
        meta={"name": "ibis.sql", "dialect": "sql", "version": "1"},
    )


@functools.lru_cache(maxsize=128)  # loops repeat the same text
def _compiled(
    text: str, names: tuple[str, ...], kinds: tuple[TableType, ...], dialect: str
) -> tuple[bytes, TableType]:
    """Return the code of a text, and the type of its result."""
    from mplang_ibis import query

    if not names:
        raise ValueError(
            "it reads no table; hand one over by keyword, and write its name in braces"
        )
    check_names(names)
    tables = dict(zip(names, kinds, strict=True))
    for kind in kinds:
        check_table(kind)
    check_dialect(dialect)
    text = filled(text, {name: quoted_in(dialect, name) for name in names})
    duckdb_sql = to_duckdb(text, dialect, tables)
    gives = declared(query.types_of(duckdb_sql, tables))
    check_table(gives)
    return pack(duckdb_sql), gives


def _reason(error: AdmissionError) -> str:
    """Return all that DuckDB says: no data was read."""
    cause = error.__cause__
    full = str(error if cause is None else cause).removeprefix("ibis.run: ")
    return " ".join(full.split("\n\nLINE ", 1)[0].split())
