"""Queries: from DuckDB's syntax tree to another engine's SQL.

Tables and columns within a statement have names that are made here, so nothing of the text of a
program is in the SQL that runs but constants; columns of an owner's views are named by the
catalogue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mplang_ibis.engines import names
from mplang_ibis.engines.casts import cast, together
from mplang_ibis.engines.comparisons import check_repeatable, condition
from mplang_ibis.engines.context import Context
from mplang_ibis.engines.expression import Expression, NotTranslatedError, Query, SqlColumn
from mplang_ibis.engines.joins import from_clause
from mplang_ibis.engines.names import NameScope, Table
from mplang_ibis.engines.types import INT32, NULL, SqlType
from mplang_ibis.engines.windows import order_key
from mplang_ibis.syntax import Node, fold

_SELECT = {
    "type", "modifiers", "select_list", "from_table", "where_clause", "group_expressions",
    "group_sets", "having", "qualify", "aggregate_handling", "cte_map",
}  # fmt: skip
_SETS = {"type", "modifiers", "setop_type", "setop_all", "left", "right", "cte_map"}
_STAR = {"class", "type", "query_location", "alias", "columns", "relation_name", "exclude_list"}
_DEPTH = 240  # of nodes within nodes


class _Order(NamedTuple):
    """Order and limit of a query, over the columns of its result and hidden ones."""

    keys: Sequence[str]
    hidden: Sequence[str]
    limit: str


def query(
    ctx: Context, node: Node, outer: NameScope, *, depth: int = 0, is_result: bool = False
) -> Query:
    """Return a query.

    Args:
        ctx: the translation.
        node: of DuckDB's tree.
        outer: the names around it, with the tables that it may read.
        depth: of nodes around it.
        is_result: whether its rows are the result, whose order is then total.

    Raises:
        NotTranslatedError: the engine would answer in another way, or it is not known.
    """
    if depth > _DEPTH:
        ctx.refuse("syntax", "deep nesting")
    around = ctx.varies
    known, ctes = _ctes(ctx, node, outer, depth)
    inner = NameScope(known, parent=outer)
    if node["type"] == "SELECT_NODE":
        made = _select(ctx, node, inner, depth, is_result)
    elif node["type"] == "SET_OPERATION_NODE":
        made = _set_operation(ctx, node, inner, depth, is_result)
    else:
        ctx.refuse("syntax", node["type"].replace("_", " ").lower())
    sql = f"WITH {', '.join(ctes)} {made.sql}" if ctes else made.sql
    ctx.varies = around  # its columns tell
    return made._replace(sql=ctx.check_length(sql))


def _ctes(
    ctx: Context, node: Node, outer: NameScope, depth: int
) -> tuple[Mapping[str, Table], list[str]]:
    """Return the tables that a query may read, and its WITH."""
    known, made = dict(outer.tables), []
    for entry in node.get("cte_map", {}).get("map", ()):
        value = entry["value"]
        if value.keys() - {"query", "materialized", "aliases"} or value["query"].keys() != {"node"}:
            ctx.refuse("syntax", f"WITH {entry['key']}")
        scope = NameScope(known, parent=outer.parent)
        result = query(ctx, value["query"]["node"], scope, depth=depth + 1)
        name = ctx.name("w")
        known[fold(entry["key"])] = Table(name, _renamed(ctx, result, value.get("aliases", ())))
        made.append(f"{name} AS ({result.sql})")
    return known, made


def _renamed(ctx: Context, result: Query, aliases: Sequence[str]) -> list[SqlColumn]:
    if len(aliases) > len(result.columns):
        ctx.refuse("syntax", "names of more columns than there are")
    new = [*aliases, *(each.name for each in result.columns[len(aliases) :])]
    return [each._replace(name=name) for each, name in zip(result.columns, new, strict=True)]


# -- SELECT


def _select(ctx: Context, node: Node, scope: NameScope, depth: int, is_result: bool) -> Query:
    unknown = node.keys() - _SELECT
    if unknown or node["aggregate_handling"] != "STANDARD_HANDLING":
        ctx.refuse("syntax", ", ".join(sorted(unknown)) or "GROUP BY ALL")
    source = from_clause(ctx, node["from_table"], scope, depth)
    items = list(_items(ctx, node["select_list"], scope))
    scope.items = {fold(name): each for name, each in items if name and isinstance(each, Mapping)}
    values = [_value(ctx, each, scope, depth) for _, each in items]
    columns = [
        SqlColumn(name, ctx.dialect.quoted(f"c{i}"), value and value.type, _varies(value))
        for i, ((name, _), value) in enumerate(zip(items, values, strict=True))
    ]
    modifiers = {each["type"]: each for each in node.get("modifiers", ())}
    order = _order(ctx, modifiers, scope, items, columns, depth, is_result)
    texts = [value.sql if value else "NULL" for value in values]
    picked = [f"{text} AS {column.sql}" for text, column in zip(texts, columns, strict=True)]
    picked += [f"{sql} AS {ctx.dialect.quoted(f'k{i}')}" for i, sql in enumerate(order.hidden)]
    where = list(scope.filters)
    qualified = None
    with ctx.going_on():
        if "where_clause" in node:
            where.append(condition(ctx, node["where_clause"], scope, depth))
    with ctx.going_on():
        if "qualify" in node:
            qualified = condition(ctx, node["qualify"], scope, depth)
            picked.append(f"{qualified} AS {ctx.dialect.quoted('q')}")
    distinct = "DISTINCT " * _is_distinct(ctx, modifiers)
    if distinct:
        check_repeatable(ctx, "DISTINCT", *filter(None, values))
    sql = f"SELECT {'' if qualified else distinct}{', '.join(picked)}"
    sql += f" FROM {source}" if source else ""
    sql += f" WHERE {' AND '.join(where)}" if where else ""
    sql += _grouping(ctx, node, scope, items, depth)
    names_only = ", ".join(column.sql for column in columns)
    if qualified:
        kept = [
            *(c.sql for c in columns),
            *(ctx.dialect.quoted(f"k{i}") for i in range(len(order.hidden))),
        ]
        sql = f"SELECT {distinct}{', '.join(kept)} FROM ({sql}) AS {ctx.name('q')} "
        sql += f"WHERE {ctx.dialect.quoted('q')}"
    if distinct and order.hidden:
        ctx.refuse("distinct", "DISTINCT with an order by a column outside of the result")
    return Query(_sorted(ctx, sql, names_only, order), columns)


def _varies(value: Expression | None) -> bool:
    return value is not None and value.varies


def _items(
    ctx: Context, nodes: Sequence[Node], scope: NameScope
) -> list[tuple[str | None, Node | SqlColumn]]:
    """Return the names and expressions of a select list, each ``*`` written out."""
    made: list[tuple[str | None, Node | SqlColumn]] = []
    for node in nodes:
        if node["class"] != "STAR":
            name = node.get("alias") or (node.get("column_names") or [None])[-1]
            made.append((name, node))
            continue
        left_out = node.get("exclude_list", [])
        if node.keys() - _STAR or node["columns"] or not all(isinstance(x, str) for x in left_out):
            ctx.refuse("syntax", "options of *")
        relation = node.get("relation_name")
        result = scope.columns(fold(relation) if relation else None)
        if not result:
            ctx.refuse("name", f"{relation or ''}*")
        hidden = {fold(each) for each in left_out}
        made += [(each.name, each) for each in result if fold(each.name or "") not in hidden]
    return made


def _value(ctx: Context, item: Node | SqlColumn, scope: NameScope, depth: int) -> Expression | None:
    """Return an expression of a select list; ``None`` if it is refused."""
    try:
        if isinstance(item, SqlColumn):
            return names.column(ctx, item)
        name = item.get("alias")
        following = {fold(name)} if name else set()
        scope.following |= following
        try:
            result = ctx.translate(item, scope, depth)
        finally:
            scope.following -= following
        if result.type.name == "interval":
            ctx.refuse("interval", "an interval as a result")
        return cast(ctx, result, INT32) if result.type == NULL else result
    except NotTranslatedError:
        return None


def _grouping(
    ctx: Context,
    node: Node,
    scope: NameScope,
    items: Sequence[tuple[str | None, Node | SqlColumn]],
    depth: int,
) -> str:
    keys, sets = node.get("group_expressions", ()), node.get("group_sets", [])
    if len(sets) > 1 or (sets and sorted(sets[0]) != list(range(len(keys)))):
        ctx.refuse("grouping", "several groupings at once")
    made = []
    for each in keys:
        with ctx.going_on():
            position = _position_of(ctx, each, items)
            value = ctx.translate(each, scope, depth) if position is None else None
            value = value or _value(ctx, items[position or 0][1], scope, depth)
            if value:
                check_repeatable(ctx, "GROUP BY", value)
                made.append(value.sql)
    text = f" GROUP BY {', '.join(made)}" if made else ""
    with ctx.going_on():
        if "having" in node:
            text += f" HAVING {condition(ctx, node['having'], scope, depth)}"
    return text


def _position_of(
    ctx: Context, node: Node, items: Sequence[tuple[str | None, Node | SqlColumn]]
) -> int | None:
    """Return the position in the select list that an integer in GROUP BY or ORDER BY names."""
    value = node.get("value", {}) if node["class"] == "CONSTANT" else {}
    if value.get("type", {}).get("id") not in ("INTEGER", "BIGINT"):
        return None
    position = value.get("value")
    if not isinstance(position, int) or not 1 <= position <= len(items):
        ctx.refuse("name", f"the position {position} in the select list")
    return position - 1


# -- order


def _order(
    ctx: Context,
    modifiers: Mapping[str, Node],
    scope: NameScope,
    items: Sequence[tuple[str | None, Node | SqlColumn]],
    columns: Sequence[SqlColumn],
    depth: int,
    is_result: bool,
) -> _Order:
    """Return the order of a result or of a limited query, completed by all of its columns."""
    unknown = modifiers.keys() - {"ORDER_MODIFIER", "LIMIT_MODIFIER", "DISTINCT_MODIFIER"}
    if unknown:
        ctx.refuse("limit", ", ".join(sorted(unknown)).replace("_", " ").lower())
    limit = _limit(ctx, modifiers.get("LIMIT_MODIFIER"))
    orders = modifiers.get("ORDER_MODIFIER", {}).get("orders", ())
    if limit and not orders:
        ctx.refuse("limit", "LIMIT without ORDER BY")
    if not (limit or is_result):
        return _Order([], [], "")
    keys: list[str] = []
    hidden: list[str] = []
    for each in orders:
        with ctx.going_on():
            result = _sorted_by(ctx, each["expression"], items, columns)
            if result is None:
                value = ctx.translate(each["expression"], scope, depth)
                named = ctx.dialect.quoted(f"k{len(hidden)}")
                hidden.append(value.sql)
                result = SqlColumn(None, named, value.type)
            keys.append(order_key(ctx, each, names.column(ctx, result)))
    rest = [each for each in columns if each.type is not None]
    keys += [f"{ctx.dialect.ordered(each.sql, each.type)} NULLS LAST" for each in rest if each.type]
    return _Order(keys, hidden, limit)


def _sorted_by(
    ctx: Context,
    node: Node,
    items: Sequence[tuple[str | None, Node | SqlColumn]],
    columns: Sequence[SqlColumn],
) -> SqlColumn | None:
    """Return the column of the result by which an order is; ``None`` if it is by another value."""
    if node["class"] == "STAR":
        ctx.refuse("syntax", "ORDER BY ALL")
    position = _position_of(ctx, node, items)
    if position is not None:
        return columns[position]
    if node["class"] == "COLUMN_REF" and len(node["column_names"]) == 1:
        wanted = fold(node["column_names"][0])
        result = [i for i, (name, _) in enumerate(items) if name and fold(name) == wanted]
        if result:
            return columns[result[0]]
    for i, (_, item) in enumerate(items):
        if isinstance(item, Mapping) and _bare(item) == _bare(node):
            return columns[i]
    return None


def _bare(tree: object) -> object:
    """Return a syntax tree without where in the text its nodes are, and what they are called."""
    if isinstance(tree, Mapping):
        hidden = ("query_location", "alias")
        return {name: _bare(value) for name, value in tree.items() if name not in hidden}
    return [_bare(each) for each in tree] if isinstance(tree, list) else tree


def _limit(ctx: Context, node: Node | None) -> str:
    if node is None:
        return ""
    text = ""
    for key, word in (("limit", "LIMIT"), ("offset", "OFFSET")):
        if key in node:
            value = (
                node[key].get("value", {}).get("value")
                if node[key]["class"] == "CONSTANT"
                else None
            )
            if not isinstance(value, int) or not 0 <= value < 1 << 62:
                ctx.refuse("limit", f"{word} by what is not a constant")
            text += f" {word} {value}"
    return text


def _is_distinct(ctx: Context, modifiers: Mapping[str, Node]) -> bool:
    result = modifiers.get("DISTINCT_MODIFIER")
    if result is not None and result.keys() != {"type"}:
        ctx.refuse("distinct", "DISTINCT ON")
    return result is not None


def _sorted(ctx: Context, sql: str, columns: str, order: _Order) -> str:
    if not order.keys and not order.limit:
        return sql
    made = f"SELECT {columns} FROM ({sql}) AS {ctx.name('q')}"
    return f"{made} ORDER BY {', '.join(order.keys)}{order.limit}"


# -- UNION


def _set_operation(
    ctx: Context, node: Node, scope: NameScope, depth: int, is_result: bool
) -> Query:
    unknown = node.keys() - _SETS
    if unknown or node["setop_type"] not in ("UNION", "EXCEPT", "INTERSECT"):
        ctx.refuse("syntax", ", ".join(sorted(unknown)) or node["setop_type"])
    outer = NameScope(scope.tables, parent=scope.parent and scope.parent.parent)
    sides = [query(ctx, node[side], outer, depth=depth + 1) for side in ("left", "right")]
    if len(sides[0].columns) != len(sides[1].columns):
        ctx.refuse("syntax", f"{node['setop_type']} of different columns")
    kinds = [_common(ctx, a, b) for a, b in zip(*(each.columns for each in sides), strict=True)]
    word = f" {node['setop_type']}{' ALL' * bool(node['setop_all'])} "
    if word != " UNION ALL ":
        compared = [names.column(ctx, c) for side in sides for c in side.columns if c.type]
        check_repeatable(ctx, word.strip(), *compared)
    sql = word.join(f"({_cast_to(ctx, each, kinds)})" for each in sides)
    columns = [
        SqlColumn(a.name, ctx.dialect.quoted(f"c{i}"), kind, a.varies or b.varies)
        for i, (a, b, kind) in enumerate(
            zip(sides[0].columns, sides[1].columns, kinds, strict=True)
        )
    ]
    modifiers = {each["type"]: each for each in node.get("modifiers", ())}
    items: list[tuple[str | None, Node | SqlColumn]] = [(each.name, each) for each in columns]
    order = _order(ctx, modifiers, NameScope({}), items, columns, depth, is_result)
    listed = ", ".join(column.sql for column in columns)
    if _is_distinct(ctx, modifiers):
        sql = f"SELECT DISTINCT {listed} FROM ({sql}) AS {ctx.name('q')}"
    return Query(_sorted(ctx, sql, listed, order), columns)


def _common(ctx: Context, a: SqlColumn, b: SqlColumn) -> SqlType | None:
    if a.type is None or b.type is None:
        return None
    return together(ctx, [Expression(a.sql, a.type), Expression(b.sql, b.type)])


def _cast_to(ctx: Context, made: Query, kinds: Sequence[SqlType | None]) -> str:
    pairs = list(zip(made.columns, kinds, strict=True))
    if all(column.type == kind for column, kind in pairs):
        return made.sql
    texts = [
        f"{cast(ctx, names.column(ctx, column), kind).sql if kind else 'NULL'} AS {column.sql}"
        for column, kind in pairs
    ]
    return f"SELECT {', '.join(texts)} FROM ({made.sql}) AS {ctx.name('q')}"
