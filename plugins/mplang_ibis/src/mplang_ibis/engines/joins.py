"""FROM of a query: tables, queries and joins of them."""

from __future__ import annotations

from collections.abc import Sequence

from mplang_ibis.engines import names
from mplang_ibis.engines.casts import unify
from mplang_ibis.engines.comparisons import compare, condition
from mplang_ibis.engines.context import Context
from mplang_ibis.engines.expression import SqlColumn
from mplang_ibis.engines.names import NameScope, Relation
from mplang_ibis.syntax import Node, fold

_TABLE = {"type", "alias", "query_location", "table_name", "column_name_alias"}
_SUBQUERY = {"type", "alias", "query_location", "subquery", "column_name_alias"}
_VALUES = {"type", "alias", "query_location", "values", "column_name_alias"}
_JOIN = {
    "type", "alias", "query_location", "left", "right", "condition", "join_type", "ref_type",
    "delim_flipped", "using_columns",
}  # fmt: skip
_WORDS = {"INNER": "JOIN", "LEFT": "LEFT JOIN", "RIGHT": "RIGHT JOIN", "OUTER": "FULL JOIN",
          "FULL": "FULL JOIN"}  # fmt: skip


def from_clause(
    ctx: Context, node: Node, scope: NameScope, depth: int, *, filters: bool = True
) -> str:
    """Return FROM, and add its tables to the names of the query; empty if there is none.

    Args:
        ctx: the translation.
        node: of DuckDB's tree.
        scope: of the query.
        depth: of nodes around it.
        filters: whether WHERE filters its rows as a join there would.
    """
    kind = node["type"]
    if kind == "EMPTY":
        return ""
    if kind == "BASE_TABLE":
        return _table(ctx, node, scope)
    if kind == "SUBQUERY":
        return _subquery(ctx, node, scope, depth)
    if kind == "EXPRESSION_LIST":
        return _values(ctx, node, scope, depth)
    if kind == "JOIN":
        return _join(ctx, node, scope, depth, filters)
    return ctx.refuse("syntax", kind.replace("_", " ").lower())


def _add(
    ctx: Context, node: Node, scope: NameScope, name: str, columns: Sequence[SqlColumn]
) -> str:
    """Add a table to the names of a query, and return what it is called."""
    alias = ctx.name("r")
    called = node.get("column_name_alias", [])
    if len(called) > len(columns):
        ctx.refuse("syntax", "names of more columns than there are")
    new = [*called, *(each.name for each in columns[len(called) :])]
    renamed = [
        each._replace(name=name, sql=f"{alias}.{each.sql}")
        for name, each in zip(new, columns, strict=True)
    ]
    folded = fold(node.get("alias") or name)
    if folded and any(each.name == folded for each in scope.relations):
        ctx.refuse("name", f"{folded}, the name of two tables")
    scope.relations.append(Relation(folded, renamed))
    return alias


def _table(ctx: Context, node: Node, scope: NameScope) -> str:
    name = node.get("table_name", "")
    result = scope.tables.get(fold(name))
    if result is None or node.keys() - _TABLE:
        ctx.refuse("name", f"the table {name}")
    return f"{result.sql} AS {_add(ctx, node, scope, name, result.columns)}"


def _subquery(ctx: Context, node: Node, scope: NameScope, depth: int) -> str:
    if node.keys() - _SUBQUERY or node["subquery"].keys() != {"node"}:
        ctx.refuse("syntax", "options of a query in FROM")
    around = NameScope(scope.tables, parent=scope.parent)
    made = ctx.query(node["subquery"]["node"], around, depth=depth + 1)
    return f"({made.sql}) AS {_add(ctx, node, scope, '', made.columns)}"


def _values(ctx: Context, node: Node, scope: NameScope, depth: int) -> str:
    if node.keys() - _VALUES:
        ctx.refuse("syntax", "options of VALUES")
    rows = [[ctx.translate(each, scope, depth) for each in row] for row in node["values"]]
    columns = [unify(ctx, column) for column in zip(*rows, strict=True)]
    kinds = [kind for _, kind in columns]
    lines = [
        ", ".join(each.sql for each in row) for row in zip(*(c for c, _ in columns), strict=True)
    ]
    made = [SqlColumn(f"col{i}", ctx.dialect.quoted(f"c{i}"), kind) for i, kind in enumerate(kinds)]
    alias = _add(ctx, node, scope, node.get("alias", ""), made)
    listed = ", ".join(each.sql for each in made)
    return f"(VALUES {', '.join(f'({line})' for line in lines)}) AS {alias}({listed})"


def _join(ctx: Context, node: Node, scope: NameScope, depth: int, filters: bool) -> str:
    word, kind = node["join_type"], node["ref_type"]
    if node.keys() - _JOIN or kind not in ("REGULAR", "CROSS"):
        ctx.refuse("join", f"{kind.lower()} join")
    if word in ("SEMI", "ANTI"):
        return _semi_join(ctx, node, scope, depth, filters)
    if word not in _WORDS:
        ctx.refuse("join", f"{word.lower()} join")
    keeps_left, keeps_right = word in ("INNER", "LEFT"), word in ("INNER", "RIGHT")
    before = len(scope.relations)
    left = from_clause(ctx, node["left"], scope, depth, filters=filters and keeps_left)
    middle = len(scope.relations)
    right = from_clause(ctx, node["right"], scope, depth, filters=filters and keeps_right)
    if kind == "CROSS":
        return f"({left} CROSS JOIN {right})"
    sides = [scope.relations[before:middle], scope.relations[middle:]]
    return f"({left} {_WORDS[word]} {right} ON {_condition(ctx, node, scope, sides, depth)})"


def _semi_join(ctx: Context, node: Node, scope: NameScope, depth: int, filters: bool) -> str:
    """Return its left side; the other one is a condition of WHERE, which others do not see."""
    if not filters:
        ctx.refuse("join", f"{node['join_type'].lower()} join below an outer join")
    before = len(scope.relations)
    left = from_clause(ctx, node["left"], scope, depth)
    inner = NameScope(scope.tables, parent=scope.parent, relations=list(scope.relations))
    inner.merged = set(scope.merged)
    middle = len(inner.relations)
    right = from_clause(ctx, node["right"], inner, depth)
    sides = [inner.relations[before:middle], inner.relations[middle:]]
    where = [*inner.filters, _condition(ctx, node, inner, sides, depth)]
    word = "NOT EXISTS" if node["join_type"] == "ANTI" else "EXISTS"
    scope.filters.append(f"({word} (SELECT 1 FROM {right} WHERE {' AND '.join(where)}))")
    return left


def _condition(
    ctx: Context, node: Node, scope: NameScope, sides: Sequence[Sequence[Relation]], depth: int
) -> str:
    if "condition" in node:
        return condition(ctx, node["condition"], scope, depth)
    if node["join_type"] in ("OUTER", "FULL", "RIGHT") or not node.get("using_columns"):
        ctx.refuse("join", f"{node['join_type'].lower()} join by USING")
    return " AND ".join(_equal(ctx, name, scope, sides) for name in node["using_columns"])


def _equal(ctx: Context, name: str, scope: NameScope, sides: Sequence[Sequence[Relation]]) -> str:
    """Return the condition of one column of USING, which is one column from then on."""
    result = []
    for relations in sides:
        there = [
            column
            for relation in relations
            for column in relation.columns
            if column.name and fold(column.name) == fold(name) and column.sql not in scope.merged
        ]
        if len(there) != 1:
            ctx.refuse("name", f"{name} of USING")
        result.append(there[0])
    scope.merged.add(result[1].sql)
    return compare(ctx, "=", *(names.column(ctx, each) for each in result)).sql
