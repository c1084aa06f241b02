"""Generator of DuckDB's SQL: Ibis's, with what it drops without a word. Imports Ibis.

Each method here is one that Ibis 12 gets wrong for DuckDB, or leaves to chance; the tests hold all
options of its aggregates and windows against a model. What SQL cannot say is refused.
"""

# ruff: noqa: N802 - methods are called by Ibis's names of operations

from __future__ import annotations

from typing import Any, ClassVar

import ibis.expr.datatypes as dt  # type: ignore[import-untyped]
import ibis.expr.operations as ops  # type: ignore[import-untyped]
import sqlglot as sg
import sqlglot.expressions as sge
from ibis.backends.sql.compilers.duckdb import DuckDBCompiler  # type: ignore[import-untyped]
from ibis.expr import rules


def to_sql(expr: Any) -> str:
    """Return the SQL of a table expression; the same in every process.

    Raises:
        TypeError: it has what the SQL would leave out, or say in another way; says what to do.

    Example:
        >>> import ibis
        >>> t = ibis.table({"i": "int64", "v": "int64"}, name="t")
        >>> print(to_sql(t.select(last=t.v.last().over(order_by="i"))))  # doctest: +ELLIPSIS
        SELECT
          LAST_VALUE("t0"."v" IGNORE NULLS) OVER (...) AS "last"
        FROM "t" AS "t0"
    """
    _check_zones(expr)
    prepared = expr.op().replace(_prepared).to_expr()
    tree = _Compiler().to_sqlglot(prepared.unbind())
    try:
        return str(
            tree.sql(dialect=_Compiler.dialect, pretty=True, unsupported_level=sg.ErrorLevel.RAISE)
        )
    except sg.UnsupportedError as error:
        raise TypeError(f"DuckDB's SQL cannot say it: {error}") from error


def _check_zones(expr: Any) -> None:
    """Refuse times in a zone other than UTC: DuckDB reads each in the zone of its session."""
    for node in expr.op().find(ops.Value):
        kind = node.dtype
        if kind.is_timestamp() and kind.timezone not in (None, "UTC"):
            raise TypeError(
                f"{node.name} is a time in the zone {kind.timezone!r}, which DuckDB would read as "
                "one in UTC; keep times in UTC and add the offset by ibis.interval(hours=…), or "
                "convert the column before it is put"
            )


# -- nodes


class FirstPresent(ops.Analytic):  # type: ignore[misc]
    """First value of a window that is not null."""

    arg: ops.Column[dt.Any]
    dtype = rules.dtype_like("arg")


class LastPresent(FirstPresent):
    """Last value of a window that is not null."""


def _prepared(node: Any, changed: Any, **kwargs: Any) -> Any:
    """Return a node that says all that it means, and in one order.

    Ibis has the columns that are dropped in a set, and writes them in its order, which depends on
    the process (PYTHONHASHSEED). In a window it leaves out the options of first and last.
    """
    if isinstance(node, ops.DropColumns):
        parent = (changed or {}).get("parent", node.parent)
        return ops.Project(parent, {name: ops.Field(parent, name) for name in node.schema.names})
    made = node.__recreate__(changed) if changed else node
    if isinstance(made, ops.Aggregate):
        _check_rows(made)
    if isinstance(made, ops.WindowFunction) and isinstance(made.func, ops.First | ops.Last):
        return _windowed(made)
    return made


def _check_rows(table: Any) -> None:
    """Refuse what ``distinct(on=…, keep="first")`` is for Ibis: rows that are mixed of several.

    It takes the first value of each column that is not null.
    """
    for kind, keep in ((ops.First, "first"), (ops.Last, "last")):
        taken = {
            name: isinstance(each, kind)
            and isinstance(each.arg, ops.Field)
            and each.arg.name == name
            and not (each.include_null or each.order_by or each.where)
            for name, each in table.metrics.items()
        }
        rest = set(table.parent.schema.names) - set(table.groups)
        if taken and all(taken.values()) and set(taken) == rest:
            on = list(table.groups)
            raise TypeError(
                f"distinct(on=…, keep={keep!r}) mixes rows: it takes the {keep} value that is not "
                "null of each column; for whole rows write t.filter(ibis.row_number().over("
                f"group_by={on}, order_by=…) == 0), for such values t.x.{keep}(where=t.x.notnull())"
            )


def _windowed(window: Any) -> Any:
    func = window.func
    name = type(func).__name__.lower()
    if func.order_by:
        raise TypeError(
            f"{name}(order_by=…) over a window: SQL has one order there; give it to the window, as "
            f"by t.x.{name}().over(order_by=…)"
        )
    if func.where is not None:
        raise TypeError(
            f"{name}(where=…) over a window: SQL has no such filter; make other values null, as by "
            f"ibis.ifelse(condition, t.x, None).{name}().over(…)"
        )
    if func.include_null:
        return window
    kind = FirstPresent if isinstance(func, ops.First) else LastPresent
    return window.copy(func=kind(func.arg))


# -- SQL


class _Compiler(DuckDBCompiler):  # type: ignore[misc]
    __slots__ = ()

    SIMPLE_OPS: ClassVar[dict[Any, str]] = {}  # those of DuckDB are inherited as methods

    def visit_FirstPresent(self, op: Any, *, arg: Any) -> Any:
        return sge.IgnoreNulls(this=self.f.first_value(arg))

    def visit_LastPresent(self, op: Any, *, arg: Any) -> Any:
        return sge.IgnoreNulls(this=self.f.last_value(arg))

    def visit_Add(self, op: Any, *, left: Any, right: Any) -> Any:
        return self.binop(sge.Add, *self._widened(op, left, right))

    def visit_Subtract(self, op: Any, *, left: Any, right: Any) -> Any:
        return self.binop(sge.Sub, *self._widened(op, left, right))

    def visit_Multiply(self, op: Any, *, left: Any, right: Any) -> Any:
        return self.binop(sge.Mul, *self._widened(op, left, right))

    def _widened(self, op: Any, *sides: Any) -> list[Any]:
        """Cast integers to the type that Ibis infers: DuckDB's int8 + int8 is an int8."""
        if not op.dtype.is_integer():
            return list(sides)
        narrow = [
            not isinstance(arg, ops.Literal)
            and arg.dtype.is_integer()
            and arg.dtype.nbytes < op.dtype.nbytes
            for arg in (op.left, op.right)
        ]
        wide = [not isinstance(arg, ops.Literal) for arg in (op.left, op.right)]
        if narrow != wide:  # one is as wide as the result, which DuckDB takes
            return list(sides)
        return [self.cast(x, op.dtype) if n else x for x, n in zip(sides, narrow, strict=True)]

    def visit_FloorDivide(self, op: Any, *, left: Any, right: Any) -> Any:
        """Divide int64 exactly: Ibis divides doubles, which have 53 bits. By 0 it fails, as there.

        Numbers are rounded towards zero by DuckDB's ``//``, and down by Python's.
        """
        sides = (op.left, op.right)
        doubles = super().visit_FloorDivide(op, left=left.copy(), right=right.copy())
        if not all(arg.dtype.is_integer() for arg in sides) or not any(
            arg.dtype.nbytes == 8 and not isinstance(arg, ops.Literal) for arg in sides
        ):
            return doubles
        a, b = sge.paren(left), sge.paren(right)
        rest = sge.Mod(this=a.copy(), expression=b.copy())
        is_less = sge.and_(rest.neq(0), sge.paren(rest < 0).neq(sge.paren(b < 0)))
        towards_zero = sge.IntDiv(this=a, expression=b)
        exact = self.cast(towards_zero - self.cast(is_less, dt.int64), op.dtype)
        if isinstance(op.right, ops.Literal) and op.right.value:
            return exact
        return self.if_(b.copy().eq(0), doubles, exact)

    def visit_StringFind(self, op: Any, *, arg: Any, substr: Any, start: Any, end: Any) -> Any:
        """Find nothing in no text: Ibis finds -1, if it begins at a place."""
        found = super().visit_StringFind(op, arg=arg.copy(), substr=substr, start=start, end=end)
        return found if start is None else self.if_(arg.is_(sge.Null()), sge.Null(), found)

    def visit_Substring(self, op: Any, *, arg: Any, start: Any, length: Any) -> Any:
        """Write a constant place as one, which engines that count from the end otherwise have."""
        made = super().visit_Substring(op, arg=arg, start=start, length=length)
        if isinstance(op.start, ops.Literal) and op.start.value >= 0:
            made.set("start", sge.convert(op.start.value + 1))
        return made

    def visit_LPad(self, op: Any, *, arg: Any, length: Any, pad: Any) -> Any:
        """Pad to a length: Ibis repeats a text of several letters as often as it takes letters."""
        is_long = length <= self.f.length(arg.copy())
        return self.if_(is_long, arg.copy(), self.f.anon.lpad(arg, length, pad))

    def visit_RPad(self, op: Any, *, arg: Any, length: Any, pad: Any) -> Any:
        is_long = length <= self.f.length(arg.copy())
        return self.if_(is_long, arg.copy(), self.f.anon.rpad(arg, length, pad))

    def visit_ArgMin(self, op: Any, *, arg: Any, key: Any, where: Any) -> Any:
        """Leave out rows without a key, of which Ibis's FIRST takes one if there is no other."""
        return self.agg.arg_min_null(arg, key, where=where)

    def visit_ArgMax(self, op: Any, *, arg: Any, key: Any, where: Any) -> Any:
        return self.agg.arg_max_null(arg, key, where=where)

    def visit_Quantile(self, op: Any, *, arg: Any, quantile: Any, where: Any) -> Any:
        """Interpolate decimals as doubles: DuckDB rounds to their digits, and reads 1.5 as one."""
        if op.arg.dtype.is_numeric() and not op.arg.dtype.is_integer():
            arg = self.cast(arg, dt.float64)
        return super().visit_Quantile(op, arg=arg, quantile=quantile, where=where)

    def visit_ApproxMedian(self, op: Any, *, arg: Any, where: Any) -> Any:
        if not op.arg.dtype.is_numeric():
            return super().visit_ApproxMedian(op, arg=arg, where=where)
        return self.visit_ApproxQuantile(op, arg=arg, quantile=sge.convert(0.5), where=where)

    def visit_ExtractEpochSeconds(self, op: Any, *, arg: Any) -> Any:
        """Round down to seconds: DuckDB has them with a fraction."""
        return self.cast(self.f.floor(self.f.epoch(arg)), dt.int64)

    def visit_NonNullLiteral(self, op: Any, *, value: Any, dtype: Any) -> Any:
        """Give a decimal as many digits as it has, where Ibis says none: it takes three."""
        if not dtype.is_decimal() or dtype.scale is not None or not value.is_finite():
            return super().visit_NonNullLiteral(op, value=value, dtype=dtype)
        text = format(value, "f")
        whole, _, part = text.lstrip("-").partition(".")
        digits = max(1, len(whole.lstrip("0")) + len(part))
        return self.cast(sge.Literal.number(text), dt.Decimal(digits, len(part)))
