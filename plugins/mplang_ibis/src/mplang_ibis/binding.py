"""Types of parts of a query, which DuckDB binds on their own. Uses DuckDB."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import duckdb
from mplang_tables import arrow

from mplang_core import TableType
from mplang_ibis.query import _connect, register

Tree: TypeAlias = Any  # of JSON
Node: TypeAlias = Mapping[str, Tree]

MAX_PARTS = 64  # that are bound of a query, each with what is around it

_AS_WRITTEN = ("INTEGER", "BIGINT", "HUGEINT", "DECIMAL", "VARCHAR", "BOOLEAN")
"""Types of constants that DuckDB reads again as it writes them."""


class Binder:
    """Types by DuckDB's binder, of the parts of one query.

    Args:
        con: a connection whose tables have the names that the query uses; nothing is read.
        sql: the query, one SELECT.

    Attributes:
        query: its syntax tree, without what is empty.

    Raises:
        LookupError: DuckDB cannot read it, or, by a method, too many of its parts are bound.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, sql: str) -> None:
        self._con, self._count = con, 0
        self.query: Node = self._read(sql, "skip_null := true, skip_empty := true")
        self._whole: dict[int, Tree] = {}
        self._pair(self.query, self._read(sql, "skip_null := false"))
        self._empty = self._read("SELECT 1", "skip_null := false")

    def columns(self, query: Node, ctes: Sequence[Node] = ()) -> list[tuple[str, str]]:
        """Return the names and types of the columns of a query within the query.

        Args:
            query: its syntax tree.
            ctes: entries of WITH around it.

        Raises:
            LookupError: DuckDB cannot bind it on its own, such as one that reads a row around it.
        """
        own = query.get("cte_map", {}).get("map", ())
        return self._bound({**self._whole[id(query)], **self._with([*ctes, *own])})

    def types(self, expressions: Sequence[Node], select: Node, ctes: Sequence[Node]) -> list[str]:
        """Return the types of expressions of a SELECT, as those of one row that it reads.

        Raises:
            LookupError: DuckDB cannot bind them on their own.
        """
        if not expressions:
            return []
        parts = {
            "select_list": [self._whole[id(each)] for each in expressions],
            "from_table": self._whole[id(select["from_table"])],
        }
        return [kind for _, kind in self._bound({**self._empty, **parts, **self._with(ctes)})]

    def _with(self, ctes: Sequence[Node]) -> dict[str, Tree]:
        return {"cte_map": {"map": [self._whole[id(each)] for each in ctes]}}

    def _bound(self, node: Node) -> list[tuple[str, str]]:
        self._count += 1
        if self._count > MAX_PARTS:
            raise LookupError
        statement = {"node": _typed(node), "named_param_map": []}
        tree = json.dumps({"error": False, "statements": [statement]})
        try:
            row = self._con.execute("SELECT json_deserialize_sql(?::JSON)", [tree]).fetchone()
            assert row is not None
            bound = self._con.sql(row[0])
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            raise LookupError from error
        return [*zip(bound.columns, map(str, bound.types), strict=True)]

    def _read(self, sql: str, options: str) -> Node:
        asked = f"SELECT json_serialize_sql(?::VARCHAR, {options})"
        try:
            row = self._con.execute(asked, [sql]).fetchone()
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            raise LookupError from error
        assert row is not None
        node: Node = json.loads(row[0])["statements"][0]["node"]
        return node

    def _pair(self, part: Tree, whole: Tree) -> None:
        """Keep the whole node of each node, whose empty fields are left out."""
        if isinstance(part, dict):
            self._whole[id(part)] = whole
            for key, value in part.items():
                self._pair(value, whole[key])
        elif isinstance(part, list):
            for value, of_whole in zip(part, whole, strict=True):
                self._pair(value, of_whole)


def _typed(tree: Tree) -> Tree:
    """Return a tree whose constants have their types when DuckDB writes it as text, and reads that.

    It writes the double 5e-1 as 0.5, which it reads as a decimal.
    """
    if isinstance(tree, list):
        return [_typed(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    if tree.get("class") != "CONSTANT":
        return {key: _typed(value) for key, value in tree.items()}
    kind = tree["value"]["type"]["id"]
    if kind in _AS_WRITTEN or tree["value"]["is_null"]:
        return tree
    if kind != "DOUBLE":
        raise LookupError
    return {
        "class": "CAST", "type": "OPERATOR_CAST", "alias": tree.get("alias", ""),
        "query_location": tree.get("query_location", 0), "child": tree, "try_cast": False,
        "cast_type": {"id": "DOUBLE", "type_info": None},
    }  # fmt: skip


@contextlib.contextmanager
def connected(
    tables: Mapping[str, TableType] | duckdb.DuckDBPyConnection,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Return a connection with empty tables of types, or one that has tables already."""
    if not isinstance(tables, Mapping):
        yield tables
        return
    with _connect() as con:
        for name, kind in tables.items():
            register(con, name, arrow.schema(kind).empty_table())
        yield con
