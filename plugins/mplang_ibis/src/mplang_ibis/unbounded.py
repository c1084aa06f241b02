"""Work of SQL that the rows of its tables do not bound: products of rows, generators. Uses DuckDB.

What is not known to be bounded counts as unbounded. Columns are told apart by the table before the
dot, so a condition without it counts as one on any table.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mplang_core import MPLangError
from mplang_ibis.allowlist import FUNCTIONS, ROW_WISE
from mplang_ibis.growth import MAX_GROWTH, growth
from mplang_ibis.patterns import OPERATORS, is_linear
from mplang_ibis.query import nodes, parse
from mplang_ibis.syntax import JOIN, SELECT, UNION as SETS, Node, fold

MAX_READS = 100  # of tables, each WITH written out: thirty that double each other read 2**30
MAX_GROUPINGS = 16  # of GROUPING SETS, CUBE and ROLLUP

GENERATORS: Mapping[str, Sequence[int]] = {
    "repeat": (1,), "lpad": (1, 2), "rpad": (1, 2), "replace": (2,), "regexp_replace": (2,),
    "array_to_string": (1,), "unnest": (0,), "levenshtein": (0, 1), "jaro_similarity": (0, 1),
    "jaro_winkler_similarity": (0, 1),
}  # fmt: skip
"""Functions that take or give a product of their operands, and those that must be constant."""

_OPERATORS = {
    "!__postfix", "%", "&", "*", "**", "+", "-", "/", "//", "<<", ">>", "@", "^", "^@", "|", "||",
    "~",
}  # fmt: skip
"""Those whose work their operands bound, beside those of patterns; others may be products."""

COLLECTS = {"array_agg", "group_concat", "list", "listagg", "string_agg"}
"""Aggregates as large as the rows that they are made of: over a window, of each row all before."""

_WHOLE = {
    "approx_quantile", "entropy", "mad", "median", "mode", "quantile", "quantile_cont",
    "quantile_disc",
}  # fmt: skip
"""Aggregates that have to see all rows of a window again where it moves."""

_AGGREGATES = FUNCTIONS - ROW_WISE - {"unnest"}
_EQUAL = ("COMPARE_EQUAL", "COMPARE_NOT_DISTINCT_FROM")
_JOINS = {"INNER", "LEFT", "RIGHT", "OUTER", "FULL", "SEMI", "ANTI"}
_ONE_EACH = ("ASOF", "POSITIONAL")  # at most one row for each row of the other


class Work(NamedTuple):
    """Dependence of a query's work on the rows that it reads.

    Attributes:
        is_unbounded: whether it may pass any multiple of them.
        multiplies: whether it may give several times as many rows, or longer texts.
    """

    is_unbounded: bool
    multiplies: bool


@functools.lru_cache(maxsize=256)  # loops repeat the same code
def work_of(sql: str) -> Work:
    """Return what the rows that a query reads say of its work.

    Args:
        sql: one SELECT.

    Example:
        >>> work_of("SELECT a.x + 1 AS x FROM a WHERE a.x > 3")
        Work(is_unbounded=False, multiplies=False)
        >>> work_of("SELECT a.x FROM a JOIN b ON a.k = b.k")
        Work(is_unbounded=False, multiplies=True)
        >>> work_of("SELECT a.x FROM a JOIN b ON a.k < b.k")
        Work(is_unbounded=True, multiplies=True)
    """
    try:
        query = parse(sql)["node"]
        found = list(nodes(query))
        reads, times = _reads(query, {}), growth(query)
        joins = any(node.get("type") == "JOIN" for node in found)
        collates = any(node.get("class") == "COLLATE" or "collation" in node for node in found)
        unbounded = any(_multiplies(node, joins, collates) for node in found)
        unbounded |= _spreads_lists(query) or _groupings(query, {}) > MAX_GROWTH
        groupings = any(len(node.get("group_sets", ())) > 1 for node in found)
        return Work(
            unbounded or times > MAX_GROWTH or reads > MAX_READS,
            unbounded or times > 1 or reads > 1 or groupings,
        )
    except (MPLangError, LookupError, TypeError, RecursionError):
        return Work(is_unbounded=True, multiplies=True)  # nobody runs it, or it is unknown


def _multiplies(node: Node, joins: bool, collates: bool) -> bool:
    """Return whether a node may make more of rows than there are."""
    match node.get("type"), node.get("class"):
        case "RECURSIVE_CTE_NODE", _:
            return True
        case "JOIN", _:
            return not node.keys() <= {*JOIN, "using_columns", "alias"} or not _is_bounded(node)
        case "SELECT_NODE", _:
            if not node.keys() <= SELECT:
                return True
            filters = [node[name] for name in ("where_clause", "having", "qualify") if name in node]
            across = joins and any(map(_is_across, filters))
            return across or len(node.get("group_sets", ())) > MAX_GROUPINGS
        case "SET_OPERATION_NODE", _ if not node.keys() <= SETS:
            return True
        case _, "SUBQUERY":
            compared = node.get("comparison_type") in (None, "INVALID", *_EQUAL)
            return not compared or not _stands_alone(node["subquery"]["node"])
        case _, "WINDOW":
            return _is_window_unbounded(node)
        case _, "FUNCTION":
            return _is_product(fold(node["function_name"]), node.get("children", ()), collates)
    return False


def _is_product(name: str, given: Sequence[Node], collates: bool) -> bool:
    """Return whether a function may take or give a product of its operands."""
    if not is_linear(name, given, collates=collates):
        return True
    if not name.isidentifier() and name not in {*_OPERATORS, *OPERATORS}:
        return True
    factors = GENERATORS.get(name, ())
    return any(i < len(given) and given[i]["class"] != "CONSTANT" for i in factors)


def _is_window_unbounded(node: Node) -> bool:
    """Return whether each row may read all others anew."""
    name = fold(node["function_name"])
    bounds = [node.get(each) for each in ("start_expr", "end_expr")]
    if name in COLLECTS or any(next(_references(each), None) for each in bounds):
        return True
    moves = node.get("orders") or node.get("exclude_clause", "NO_OTHER") != "NO_OTHER"
    anew = name in _WHOLE or node.get("distinct") or node.get("arg_orders")
    return bool(anew and (moves or any(bounds)))


def _is_bounded(join: Node) -> bool:
    """Return whether a join is by equal columns, or with a single row."""
    kind = join.get("ref_type")
    if kind in _ONE_EACH or any(_is_one_row(join[side]) for side in ("left", "right")):
        return True
    if kind not in ("REGULAR", "NATURAL") or join.get("join_type") not in _JOINS:
        return False
    if not all(_is_alone(join[side]) for side in ("left", "right")):
        return False
    if kind == "NATURAL" or join.get("using_columns"):
        return True
    sides = [set(_names(join[side])) for side in ("left", "right")]
    equal = False
    for part in _parts(join["condition"]):
        if part["type"] in _EQUAL:
            found = [_tables(part[side]) for side in ("left", "right")]
            equal |= found[0] != found[1] and (
                all(a and a <= b for a, b in zip(found, sides, strict=True))
                or all(a and a <= b for a, b in zip(found, sides[::-1], strict=True))
            )
        elif not any(_tables(part) <= side for side in sides):
            return False
    return equal


def _is_across(condition: Node) -> bool:
    """Return whether a filter compares several columns, but by equality: DuckDB joins by it."""
    for part in _parts(condition):
        sides = [part[side] for side in ("left", "right")] if part["type"] in _EQUAL else [part]
        if any(len(_columns(each)) > 1 for each in sides):
            return True
    return False


def _is_one_row(table: Node) -> bool:
    """Return whether a table has one row at most: nothing but an aggregate of all rows."""
    if table["type"] == "EMPTY":
        return True
    if table["type"] != "SUBQUERY":
        return False
    query = table["subquery"]["node"]
    if query["type"] != "SELECT_NODE":
        return False
    grouped = query.get("group_expressions") or query.get("group_sets")
    by_all = query.get("aggregate_handling") != "STANDARD_HANDLING"  # as by GROUP BY ALL
    if grouped or by_all or not _stands_alone(query):
        return False
    return any(
        node.get("class") == "FUNCTION" and fold(node["function_name"]) in _AGGREGATES
        for node in _nodes_of_row(query["select_list"])
    )


def _is_alone(table: Node) -> bool:
    """Return whether a table is not a subquery that depends on the rows beside it."""
    if table["type"] == "JOIN":
        return all(_is_alone(table[side]) for side in ("left", "right"))
    return table["type"] != "SUBQUERY" or _stands_alone(table["subquery"]["node"])


def _stands_alone(query: Node) -> bool:
    """Return whether a query surely names no column of a query around it."""
    mine = {name for node in nodes(query) for name in _name(node)}
    return all(each <= mine for each in map(_tables, _references(query)))


# -- names


def _name(node: Node) -> Iterator[str]:
    if node.get("type") in ("BASE_TABLE", "SUBQUERY") and "class" not in node:
        yield fold(node.get("alias") or node.get("table_name") or "")


def _names(table: Node) -> Iterator[str]:
    """Yield what the tables of a FROM are called, without those within subqueries."""
    if table["type"] == "JOIN":
        for side in ("left", "right"):
            yield from _names(table[side])
    yield from _name(table)


def _parts(condition: Node) -> Iterator[Node]:
    if condition["type"] == "CONJUNCTION_AND":
        for each in condition["children"]:
            yield from _parts(each)
    else:
        yield condition


def _references(tree: Any) -> Iterator[Node]:
    return (node for node in nodes(tree) if node.get("class") == "COLUMN_REF")


def _columns(tree: Any) -> set[tuple[str, ...]]:
    return {tuple(map(fold, node["column_names"])) for node in _references(tree)}


def _tables(tree: Any) -> set[str]:
    """Return by what names of tables an expression reads columns; one without has no name."""
    return {".".join(column[:-1]) or "?" for column in _columns(tree)}


def _nodes_of_row(tree: Any) -> Iterator[Node]:
    """Yield the nodes of an expression, without those of subqueries and windows within."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo += node
        elif isinstance(node, dict) and node.get("class") not in ("SUBQUERY", "WINDOW"):
            yield node
            todo += node.values()


def _groupings(tree: Any, known: dict[str, int]) -> int:
    """Return how often a query groups rows at most that it grouped, each WITH written out."""
    if isinstance(tree, list):
        return max((_groupings(each, known) for each in tree), default=1)
    if not isinstance(tree, dict):
        return 1
    if tree.get("type") == "BASE_TABLE":
        return known.get(fold(tree["table_name"]), 1)
    entries = tree.get("cte_map", {}).get("map", ())
    known = dict(known) if entries else known
    for entry in entries:
        known[fold(entry["key"])] = _groupings(entry["value"], known)
    within = [value for name, value in tree.items() if name != "cte_map"]
    return max(1, len(tree.get("group_sets", ()))) * _groupings(within, known)


def _spreads_lists(query: Node) -> bool:
    """Return whether a list of rows, made in a query within, may meet each row of another one."""
    within: list[tuple[int, int]] = []

    def count(tree: Any) -> tuple[int, int]:
        """Return the numbers of lists, and of what gives one value to many rows."""
        if isinstance(tree, list | dict):
            each = [count(value) for value in (tree if isinstance(tree, list) else tree.values())]
            lists, spreads = sum(a for a, _ in each), sum(b for _, b in each)
            if isinstance(tree, dict):
                kind = tree.get("class")
                lists += kind == "FUNCTION" and fold(tree["function_name"]) in COLLECTS
                spreads += kind in ("SUBQUERY", "WINDOW") or (
                    not kind and tree.get("type") == "JOIN"
                )
                if str(tree.get("type")).endswith("_NODE") and tree is not query:
                    within.append((lists, spreads))
            return lists, spreads
        return 0, 0

    total = count(query)[1]
    return any(lists and spreads < total for lists, spreads in within)


def _reads(query: Node, known: Mapping[str, int]) -> int:
    """Return how many tables a query reads, each WITH written out where it is read."""
    known, count = dict(known), 0
    for entry in query.get("cte_map", {}).get("map", ()):
        known[fold(entry["key"])] = _reads(entry["value"]["query"]["node"], known)
    todo: list[Any] = [value for name, value in query.items() if name != "cte_map"]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo += node
        elif isinstance(node, dict):
            if node.get("type") == "BASE_TABLE":
                count += known.get(fold(node["table_name"]), 1)
            elif node.get("cte_map", {}).get("map"):
                count += _reads(node, known)
                continue
            todo += node.values()
    return count
