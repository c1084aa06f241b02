"""Types of results: what DuckDB gives, as tables have it, or a refusal by the column's name."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from ibis_programs import at
from mplang_ibis.statement import ibis_sql
from mplang_tables import arrow, table

import mplang_core as mp
from mplang_core.errors import PartyError, TraceError
from mplang_core.ext import Operand

KIND = mp.TableType(
    (
        ("b", "bool"),
        ("i", "int64"),
        ("u", "uint64"),
        ("d", "decimal128(12, 2)"),
        ("f", "double"),
        ("s", "string"),
        ("day", "date32[day]"),
        ("time", "time64[us]"),
        ("moment", "timestamp[us]"),
        ("utc", "timestamp[us, tz=UTC]"),
        ("raw", "binary"),
    )
)


def type_of(expression):
    text = f'SELECT {expression} AS "x" FROM {{t}}'
    ((_, kind),) = ibis_sql(Operand(KIND), text=text, names=["t"]).pfunc.outs_info[0].columns
    return kind


def ran(sim, text, columns):
    program = lambda: at("P0", ibis_sql, at("P0", table(columns)), text=text, names=["t"])  # noqa: E731
    result = mp.evaluate(sim, program)
    found = mp.fetch(sim, result)
    assert arrow.type_of(found) == result.base_type
    return found


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("count(*)", "int64"),
        ("sum(i)", "int64"),
        ("sum(b::int)", "int64"),
        ("sum(d)", "decimal128(38, 2)"),
        ("sum(d * d)", "decimal128(38, 4)"),
        ("d * d", "decimal128(18, 4)"),
        ("d * 1.5", "decimal128(14, 3)"),
        ("d / 3", "double"),
        ("avg(d)", "double"),
        ("avg(i)", "double"),
        ("i / 2", "double"),
        ("i // 2", "int64"),
        ("sum(f)", "double"),
        ("f::float", "float"),
        ("year(day)", "int64"),
        ("extract('month' FROM utc)", "int64"),
        ("day + INTERVAL 1 MONTH", "timestamp[us]"),
        ("day - day", "int64"),
        ("date_trunc('month', moment)", "timestamp[us]"),
        ("utc + INTERVAL 1 DAY", "timestamp[us, tz=UTC]"),
        ("moment::TIMESTAMP_NS", "timestamp[ns]"),
        ("moment::TIMESTAMP_S", "timestamp[s]"),
        ("time", "time64[us]"),
        ("i::TINYINT", "int8"),
        ("i::HUGEINT", "int64"),
        ("s::ENUM ('a', 'b')", "string"),
        ("s::UUID", "string"),
        ("raw", "binary"),
        ("encode(s)", "binary"),
        ("NULL", "int32"),
    ],
)
def test_a_column_has_the_type_that_duckdb_gives(expression, kind):
    assert type_of(expression) == kind


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("[i]", r"'x' is of DuckDB's type BIGINT\[\].*unnest"),
        ("list(s)", r"VARCHAR\[\].*unnest"),
        ("[i]::BIGINT[1]", r"BIGINT\[1\].*unnest"),
        ("moment - moment", r"INTERVAL.*date_diff"),
        ("{'a': i}", None),
        ("time::TIMETZ", "TIME WITH TIME ZONE.*cast it to TIME"),
        ("u::UHUGEINT", "UHUGEINT.*HUGEINT"),
        ("'101'::BIT", "BIT, which tables do not have; cast it"),
    ],
)
def test_another_type_is_refused_by_name_while_compiling(expression, message):
    with pytest.raises(TraceError, match=message):
        type_of(expression)


def test_a_sum_that_64_bits_do_not_hold_is_an_error_and_no_number(sim):
    for values in ([2**62, 2**62], [-(2**63), -1]):
        with pytest.raises(PartyError, match=r"column 'x' .*does not fit in int64"):
            ran(sim, "SELECT sum(a) AS x FROM {t}", {"a": values})
    largest = {"a": [2**62, 2**62 - 1]}
    assert ran(sim, "SELECT sum(a) AS x FROM {t}", largest).to_pylist() == [{"x": 2**63 - 1}]


def test_no_digit_of_a_decimal_is_lost(sim):
    data = {"d": pa.array([Decimal("9999999.99"), Decimal("0.01")], pa.decimal128(9, 2))}
    found = ran(sim, "SELECT d * d AS x, sum(d * d) OVER () AS y FROM {t}", data).to_pylist()
    assert [row["x"] for row in found] == [Decimal("99999999800000.0001"), Decimal("0.0001")]
    assert found[0]["y"] == Decimal("99999999800000.0002")


def test_an_enumeration_comes_back_as_its_texts(sim):
    found = ran(sim, "SELECT s::ENUM ('a', 'b') AS x FROM {t}", {"s": ["b", None, "a"]})
    assert found.column("x").to_pylist() == ["b", None, "a"]
