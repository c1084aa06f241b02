"""Advice for code that Ibis or DuckDB refuse. Imports neither."""

from __future__ import annotations

import re

from mplang_core.ext import similar
from mplang_ibis.allowlist import FUNCTIONS

_OF_PANDAS = {
    "append": "t.union(u)",
    "apply": "an expression of columns, as t.mutate(twice=t.a * 2)",
    "assign": "t.mutate(twice=t.a * 2)",
    "astype": "t.a.cast('float64')",
    "drop_duplicates": "t.distinct()",
    "dtypes": "t.schema()",
    "iloc": "t.limit(5), or t.filter(t.a > 1)",
    "iterrows": "an expression of columns, as t.mutate(twice=t.a * 2)",
    "loc": "t.filter(t.a > 1), or t.select('a')",
    "map": "t.a.cases((1, 'one'), else_='other')",
    "melt": "t.pivot_longer(...)",
    "merge": "t.join(u, 'key')",
    "pivot": "t.pivot_wider(names_from='a', values_from='b', names=['x', 'y'])",
    "pivot_table": "t.pivot_wider(names_from='a', values_from='b', names=['x', 'y'])",
    "query": "t.filter(t.a > 1)",
    "reset_index": "t, which has no index",
    "set_index": "t, which has no index",
    "shape": "t.count()",
    "sort_values": "t.order_by('a')",
    "str": "the method itself, as t.a.upper()",
    "to_numpy": "the table itself, and outside of the function mplang_tables.to_tensor",
    "values": "the table itself, and outside of the function mplang_tables.to_tensor",
}

_CASTS = {
    **dict.fromkeys(("mean", "sum", "std", "var", "median"), ("numbers", "float64")),
    **dict.fromkeys(("year", "month", "day", "hour", "minute"), ("times", "timestamp")),
}
"""What a column has to hold for its method, and the type to cast it to."""

_RULES = (
    # kind of the error, what its message has, what the user's line has: what to write
    ("ValueError", "truth value", r"\sin\s", "instead of `in` write t.a.isin(['x', 'y'])"),
    ("ValueError", "truth value", r"\sif\s.*\selse\s", "instead of `if` write "
     "(t.a > 1).ifelse('x', 'y')"),
    ("ValueError|TypeError", "truth value", "", "instead of `and`, `or`, `not` use &, |, ~ between "
     "comparisons in parentheses, as (t.a > 1) & (t.b == 'x')"),
    ("TypeError", r"operand type\(s\) for [&|]", "", "comparisons with & and | between them stand "
     "in parentheses, as (t.a > 1) & (t.b == 'x')"),
    ("NameError", "'_'", "", "write `from ibis import _`"),
    ("TypeError", "item assignment", "", "a table is not changed; write "
     "t = t.mutate(twice=t.a * 2)"),
    ("TypeError", "'axis'|'dtype'|ufunc", "", "use the methods of columns instead of "
     "NumPy, as t.a.mean()"),
    ("TypeError", "not iterable", "", "instead of Python's functions use the methods of columns, "
     "as t.a.max() and t.a.sum()"),
    ("TypeError", "not subscriptable", "", "rows have no place; choose them by t.filter(...), "
     "or t.order_by('a').limit(1)"),
    ("IbisError", "unbound tables", "pivot_wider", "say which columns there are, as "
     "pivot_wider(..., names=['x', 'y'])"),
    ("IbisError", "unbound tables", "", "the function has tables without data; return the table "
     "itself, without .execute() or .to_pandas(), and mp.fetch(host, result)"),
    ("IntegrityError", "belong to another relation", "", "a column is one of the table that the "
     "method is called on; join the tables first, or write `_.a` (from ibis import _)"),
    ("IntegrityError", "Name collisions", "",
     "give the columns of the other table other names, as join(u, 'key', rname='{name}_of_u')"),
    ("IbisTypeError", "not comparable", "", "cast one of them, as t.a.cast('string')"),
    ("IbisTypeError", "Cannot compute precedence", "", "values of one type, as 'x' and 'y', or a "
     "cast, as t.a.cast('string')"),
    ("SignatureValidationError", "^Aggregate", "", "a column of agg is an aggregate, as "
     "t.a.sum() or t.a.first(); what has one row per row is t.select(...) or t.mutate(...)"),
    ("SignatureValidationError", "^Filter", "", "filter takes comparisons, as t.a > 1"),
    ("SignatureValidationError", "not coercible to a DataType", "", "types are bool, int64, "
     "float64, string, date, timestamp, decimal(10, 2), …"),
    ("Unsupported", "correlation|covariance", "", "write how='pop'"),
)  # fmt: skip

_OF_SQL = (
    (r"No function matches .*?'(?P<call>\w+\(.*?\))'", "it takes other types; cast the column "
     "first, as avg(TRY_CAST(a AS DOUBLE))"),
    ("Cannot compare values of type", "cast one of them, as CAST(a AS BIGINT), or write a text in "
     "single quotes"),
    ("Only SELECT statements", "mp.sql takes one SELECT, whose result mp.store keeps"),
)  # fmt: skip


def advice_for(error: Exception, line: str) -> str:
    """Return what to write instead; empty if nothing is known.

    Args:
        error: of Ibis, or of Python on its expressions.
        line: the user's line.

    Example:
        >>> advice_for(NameError("name '_' is not defined"), "")
        'write `from ibis import _`'
    """
    kind, message = type(error).__name__, str(error)
    if isinstance(error, AttributeError) and error.obj is not None:
        return _attribute(error.obj, str(error.name))
    if match := re.search(
        r"Column '(.*?)' is not found in table\. Existing columns: (.*)", message
    ):
        if re.search(r"[<>=]", match[1]):
            return "a condition is not text, but an expression, as t.a > 1"
        compared = "columns of two names are compared, as t.join(u, t.a == u.b)"
        other = compared if "join(" in line else ""
        return similar(match[1], re.findall(r"'(.*?)'", match[2])) or other
    for kinds, pattern, written, advice in _RULES:
        if re.match(kinds, kind) and re.search(pattern, message) and re.search(written, line):
            return advice
    return ""


def reason_of(error: Exception) -> str:
    """Return an error of Ibis as one line, without addresses and dumps of expressions."""
    text = re.sub(r"<ibis\.[\w.]*\.(\w+) object at 0x\w+>", r"\1", " ".join(str(error).split()))
    dump = re.match(r"(\w+)\(.*?has failed due to the following errors: (`\w+`)", text)
    short = f"{dump[1]} does not take these {dump[2]}" if dump else text[:500]
    return f"{type(error).__name__}: {short}"


def sql_advice(text: str, reason: str) -> str:
    r"""Return the reason of DuckDB, shortened, and what to write instead, if that is known.

    Args:
        text: SQL as the user wrote it.
        reason: what DuckDB says.

    Example:
        >>> sql_advice('SELECT a FROM t WHERE a = "x"', 'Referenced column "x" not found')
        'Referenced column "x" not found; a text stands in single quotes, \'x\', a name in double'
    """
    reason = re.split(r"\.? You might need to add| Candidate functions:", reason)[0]
    match = re.search(r'Referenced column "(.*?)" not found', reason)
    if match and f'"{match[1]}"' in text:
        return f"{reason}; a text stands in single quotes, '{match[1]}', a name in double"
    if match := re.search(r"the function (\w+)$", reason):
        question = similar(match[1], sorted(FUNCTIONS))
        return f"{reason}; {question}" if question else reason
    for pattern, advice in _OF_SQL:
        if re.search(pattern, reason):
            return f"{reason}; {advice}"
    return reason


def _attribute(owner: object, name: str) -> str:
    """Return what to write for an attribute that a table or a column does not have."""
    columns = list(getattr(owner, "columns", ()))
    if name in _OF_PANDAS:
        return f"write {_OF_PANDAS[name]}"
    if not columns and (kind := _CASTS.get(name)):
        column = getattr(owner, "get_name", str)()
        named = column if column.isidentifier() else "a"
        return f"{column!r} holds no {kind[0]}; cast it, as t.{named}.cast('{kind[1]}').{name}()"
    members = [each for each in dir(owner) if not each.startswith("_")]
    others = f"the columns are {', '.join(columns)}" if columns else ""
    return similar(name, columns) or similar(name, members) or others
