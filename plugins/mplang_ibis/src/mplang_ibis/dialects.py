"""Translation of SQL of other dialects to that of DuckDB. Imports sqlglot when it is used."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mplang_tables import is_number

from mplang_core import TableType
from mplang_ibis.sql import quoted
from mplang_ibis.sql_text import shown

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

DUCKDB = "duckdb"
_MARK = "division"


def check_dialect(dialect: object) -> None:
    """Refuse a dialect that sqlglot does not know.

    Raises:
        TypeError: it does not; names one that is alike.
    """
    if dialect == DUCKDB:
        return
    from sqlglot.dialects.dialect import Dialect

    if not isinstance(dialect, str) or not dialect or Dialect.get(dialect) is None:
        near = difflib.get_close_matches(str(dialect).lower(), Dialect.classes, 1)
        raise TypeError(f"no dialect {dialect!r}; {near[0] if near else 'postgres'!r} is one")


def quoted_in(dialect: str, name: str) -> str:
    """Return a name as a dialect quotes it.

    Example:
        >>> quoted_in("mysql", "people"), quoted_in("duckdb", "people")
        ('`people`', '"people"')
    """
    if dialect == DUCKDB:
        return quoted(name)
    from sqlglot.expressions import to_identifier

    return to_identifier(name, quoted=True).sql(dialect=dialect)


def to_duckdb(text: str, dialect: str, tables: Mapping[str, TableType]) -> str:
    """Return SQL of a dialect as that of DuckDB.

    What it computes with is DuckDB's arithmetic all the same, but for a division of integers,
    which stays one where it is one.

    Args:
        text: one statement.
        dialect: the dialect, by sqlglot's name.
        tables: types of the tables that it reads, by name.

    Raises:
        ValueError: it is not one statement of that dialect, DuckDB cannot say it, or it is not
            known whether a division is one of integers; shows the line.

    Example:
        >>> numbers = TableType((("a", "int64"),))
        >>> " ".join(to_duckdb("SELECT a / 2 AS b FROM t", "postgres", {"t": numbers}).split())
        'SELECT ( a // 2 ) AS b FROM t'
    """
    if dialect == DUCKDB:
        return text
    import sqlglot
    from sqlglot.errors import ErrorLevel, ParseError, TokenError, UnsupportedError

    try:
        trees = [each for each in sqlglot.parse(text, read=dialect) if each is not None]
        if len(trees) != 1:
            raise ValueError(f"{len(trees)} statements; it may be one SELECT")
        tree = _divided(trees[0], dialect, tables)
        made = tree.sql(
            DUCKDB, pretty=True, comments=False, unsupported_level=ErrorLevel.RAISE
        )  # fmt: skip
    except UnsupportedError as error:
        raise ValueError(
            f"DuckDB's SQL, which the party runs, cannot say it: {' '.join(str(error).split())}"
        ) from error
    except (ParseError, TokenError) as error:
        details = (getattr(error, "errors", None) or [{}])[0]
        line = f"{shown(text, details['line'])}: " if "line" in details else ""
        reason = details.get("description") or str(error).split("\n", 1)[0]
        raise ValueError(f"{line}it is not SQL of the dialect {dialect!r}: {reason}") from error
    return str(made)


def _divided(tree: Expr, dialect: str, tables: Mapping[str, TableType]) -> Expr:
    """Return a tree whose divisions of integers are DuckDB's.

    sqlglot writes them as ``CAST(a / b AS BIGINT)``, which rounds, and where it does not know the
    types of columns, as a division of doubles.
    """
    from sqlglot.expressions import DataType, Div, IntDiv, Paren

    divisions = [each for each in tree.find_all(Div) if each.args.get("typed")]
    if not divisions:
        return tree
    for i, each in enumerate(divisions):
        each.meta[_MARK] = i
    integers = _integer_divisions(tree, dialect, tables)
    root = tree
    for i, each in reversed(list(enumerate(divisions))):  # the inner ones first
        if i not in integers:
            raise ValueError(
                f"is {each.sql(dialect)} a division of integers, which has no fraction? Cast both "
                "to INTEGER or one to DECIMAL, or write it in the dialect of DuckDB, where // "
                "divides integers and / numbers"
            )
        if not integers[i]:
            each.set("typed", False)
            continue
        made = Paren(this=IntDiv(this=each.this, expression=each.expression))
        made.type = DataType.build("BIGINT")
        each.replace(made)
    return root


def _integer_divisions(
    tree: Expr, dialect: str, tables: Mapping[str, TableType]
) -> dict[int, bool]:
    """Return for each marked division whose operands have known types whether both are integers."""
    from sqlglot.errors import SqlglotError
    from sqlglot.expressions import DataType, Div
    from sqlglot.optimizer.annotate_types import annotate_types
    from sqlglot.optimizer.qualify import qualify
    from sqlglot.schema import MappingSchema

    schema = MappingSchema(dialect=dialect)
    for name, kind in tables.items():
        columns = {column: DataType.build(_sql_type(type)) for column, type in kind.columns}
        schema.add_table(name, columns, dialect=dialect)
    try:
        qualified = qualify(
            tree.copy(), schema=schema, dialect=dialect, validate_qualify_columns=False,
            expand_alias_refs=False,
        )  # fmt: skip
        typed = annotate_types(qualified, schema=schema, dialect=dialect)
    except SqlglotError:
        return {}
    divides: dict[int, bool] = {}
    unknown = set()
    for each in typed.find_all(Div):
        i = each.meta.get(_MARK)
        sides = (each.this, each.expression)
        if i is None:
            continue
        real = any(side.is_type(*_NUMBERS_WITH_FRACTION) for side in sides)
        if not real and not all(side.is_type(*DataType.INTEGER_TYPES) for side in sides):
            unknown.add(i)
        divides[i] = not real
    return {i: whole for i, whole in divides.items() if i not in unknown}


_NUMBERS_WITH_FRACTION = ("float", "double", "decimal")


def _sql_type(type: str) -> str:
    """Return a type of a column as SQL knows it, coarsely."""
    if type.startswith(("int", "uint")):
        return "BIGINT"
    if type.startswith("decimal"):
        return "DECIMAL"
    if is_number(type):
        return "BOOLEAN" if type == "bool" else "DOUBLE"
    first = type.partition("[")[0].rstrip("0123456789")
    return {"string": "VARCHAR", "binary": "BLOB"}.get(first, first.upper())
