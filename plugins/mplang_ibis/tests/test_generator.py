"""SQL against what Ibis promises: what is dropped is said or refused, and no digits are lost."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import ibis
import pyarrow as pa
import pytest
from ibis_programs import at
from mplang_ibis import ibis_compile
from mplang_tables import arrow, table

import mplang_core as mp
from mplang_core.errors import TraceError

D = Decimal


@pytest.fixture(scope="module")
def sim():
    with mp.Simulator(mp.ClusterSpec.simple(1)) as made:
        yield made


def ran(sim, fn, data):
    """Return the rows of the result of a function of one table."""
    return mp.fetch(sim, mp.evaluate(sim, lambda: at("P0", fn, at("P0", table(data))))).to_pylist()


def compiled(fn, data):
    """Return the types of the result's columns."""
    made = ibis_compile(fn, mp.FeSignature((arrow.type_of(arrow.normalize(data)),)))
    return dict(made.pfunc.outs_info[0].columns)


# -- times


HOURS = pa.table({"v": pa.array([dt.datetime(2020, 6, 1, 23)], pa.timestamp("us", "UTC"))})
TOKYO = "timestamp('Asia/Tokyo')"


@pytest.mark.parametrize(
    "fn",
    [
        lambda t: t.select(x=t.v.cast(TOKYO).hour()),
        lambda t: t.select(x=t.v.cast(TOKYO).date()),
        lambda t: t.select(x=t.v.cast(TOKYO).strftime("%H")),
        lambda t: t.select(x=t.v.cast(TOKYO).truncate("D")),
        lambda t: t.select(x=t.v.cast(TOKYO).cast("timestamp")),
        lambda t: t.select(x=t.v.cast(TOKYO).cast("string")),
        lambda t: t.filter(t.v.cast(TOKYO).day_of_week.index() == 0),
        lambda t: t.group_by(d=t.v.cast(TOKYO).date()).agg(n=t.count()),
    ],
)
def test_a_time_in_another_zone_is_refused_while_compiling(fn):
    """DuckDB would give the hour in UTC."""
    with pytest.raises(TraceError, match=r"the zone 'Asia/Tokyo'.*ibis\.interval"):
        compiled(fn, HOURS)


def test_what_sqlglot_calls_unsupported_is_refused():
    naive = pa.table({"v": pa.array([dt.datetime(2020, 6, 1, 23)])})
    with pytest.raises(TraceError, match=r"DuckDB's SQL cannot say it: EXTRACT from TIMESTAMPTZ"):
        compiled(lambda t: t.select(x=t.v.cast("timestamp('UTC')").hour()), naive)


def test_the_remedy_for_a_zone_runs(sim):
    def tokyo(t):
        there = t.v.cast("timestamp") + ibis.interval(hours=9)
        return t.select(h=there.hour(), d=there.date())

    assert ran(sim, tokyo, HOURS) == [{"h": 8, "d": dt.date(2020, 6, 2)}]


def test_seconds_since_1970_are_whole(sim):
    times = pa.table({"v": [dt.datetime(1970, 1, 1, 0, 0, 1, 700_000)]})
    assert ran(sim, lambda t: t.select(x=t.v.epoch_seconds()), times) == [{"x": 1}]


# -- decimals


PRICES = pa.table(
    {
        "p": pa.array([D("0.01"), D("0.02"), None], pa.decimal128(12, 2)),
        "q": pa.array([D("1.25"), D("2.50"), D("7.00")], pa.decimal128(12, 2)),
        "n": [3, 4, 5],
        "f": [0.5, 0.25, 0.125],
    }
)


@pytest.mark.parametrize(
    ("fn", "type", "expected"),
    [
        (lambda t: t.p * t.q, "decimal128(18, 4)", [D("0.0125"), D("0.0500"), None]),
        (lambda t: t.p + t.q, "decimal128(13, 2)", [D("1.26"), D("2.52"), None]),
        (lambda t: t.q * (1 - t.p), "decimal128(18, 4)", [D("1.2375"), D("2.4500"), None]),
        (lambda t: (t.p * t.q).sum(), "decimal128(38, 4)", [D("0.0625")] * 3),
        (lambda t: (t.p * t.q).max(), "decimal128(18, 4)", [D("0.0500")] * 3),
        (lambda t: (t.p * t.q).round(3), "decimal128(12, 3)", [D("0.013"), D("0.050"), None]),
        (lambda t: t.p * t.n, "decimal128(31, 2)", [D("0.03"), D("0.08"), None]),
        (lambda t: t.q * 1.5, "decimal128(14, 3)", [D("1.875"), D("3.750"), D("10.500")]),
        (
            lambda t: t.q * D("0.0001"),
            "decimal128(16, 6)",
            [D("0.000125"), D("0.00025"), D("0.0007")],
        ),
        (lambda t: t.q * D("1E-7"), "decimal128(18, 9)", [D("1.25E-7"), D("2.5E-7"), D("7E-7")]),
        (lambda t: t.q * t.f, "double", [0.625, 0.625, 0.875]),
        (lambda t: t.p.mean(), "double", [0.015] * 3),
        (lambda t: t.p.median(), "double", [0.015] * 3),
        (lambda t: t.p.quantile(0.25), "double", [0.0125] * 3),
        (lambda t: (t.n * 1.5).quantile(0.25), "double", [5.25] * 3),
        (lambda t: t.p.std(how="pop"), "double", [0.005] * 3),
        (lambda t: t.p.var(how="pop"), "double", [0.000025] * 3),
        (lambda t: t.q.sqrt() ** 2, "double", [1.25, 2.5, 7.0]),
        (lambda t: t.q**2, "double", [1.5625, 6.25, 49.0]),
        (
            lambda t: ibis.coalesce(t.p * t.q, t.q),
            "decimal128(18, 4)",
            [D("0.0125"), D("0.05"), D(7)],
        ),
        (lambda t: t.q.sign(), "int8", [1, 1, 1]),
    ],
)
def test_decimals_keep_their_digits(sim, fn, type, expected):
    """Ibis infers the type of its operands for each of these, as decimal128(12, 2)."""

    def program(t):
        return t.select("q", x=fn(t)).order_by("q").select("x")

    assert compiled(program, PRICES) == {"x": type}
    got = [row["x"] for row in ran(sim, program, PRICES)]
    assert got == [pytest.approx(x) if isinstance(x, float) else x for x in expected]


# -- types of integers


NUMBERS = pa.table(
    {
        "a": pa.array([100, -100], pa.int8()),
        "b": pa.array([100, 100], pa.int8()),
        "u": pa.array([1, 250], pa.uint8()),
        "v": pa.array([2, 250], pa.uint8()),
        "i": [2**40, 7],
    }
)


@pytest.mark.parametrize(
    ("fn", "type", "expected"),
    [
        (lambda t: t.a + t.b, "int16", [200, 0]),
        (lambda t: t.a * t.b, "int16", [10_000, -10_000]),
        (lambda t: t.a - t.b - t.b, "int32", [-100, -300]),
        (lambda t: t.a + 100, "int16", [200, 0]),
        (lambda t: t.u - t.v, "int16", [-1, 0]),
        (lambda t: t.a + t.i, "int64", [2**40 + 100, -93]),
    ],
)
def test_a_sum_of_narrow_integers_is_as_wide_as_ibis_says(sim, fn, type, expected):
    """DuckDB's int8 + int8 is an int8, which overflows."""
    program = lambda t: t.select(x=fn(t))  # noqa: E731
    assert compiled(program, NUMBERS) == {"x": type}
    assert [row["x"] for row in ran(sim, program, NUMBERS)] == expected


@pytest.mark.parametrize(
    ("fn", "type"),
    [
        (lambda t: t.select(x=t.i.clip(1.5)), "decimal128(20, 1)"),
        (lambda t: t.select(x=t.i.cast("timestamp(9)")), "timestamp[us, tz=UTC]"),
    ],
)
def test_a_result_has_the_type_that_holds_what_duckdb_gives(fn, type):
    """Ibis infers int64 and timestamp[ns]."""
    assert compiled(fn, NUMBERS) == {"x": type}


BIG = pa.table(
    {
        "a": [2**60 + 1, -(2**60) - 1, 7, -7, 7, -7, 6, None],
        "b": [1, 1, 2, 2, -2, -2, -2, 1],
        "n": pa.array([100, -100, 7, -7, 7, -7, 6, None], pa.int8()),
    }
)


@pytest.mark.parametrize("divisor", ["b", 3, -3])
def test_integers_are_divided_exactly(sim, divisor):
    """Ibis divides doubles, which have 53 bits."""
    fn = lambda t: t.select(  # noqa: E731
        "a", "b", "n", x=t.a // (t.b if divisor == "b" else divisor), y=t.n // t.b
    )
    for row in ran(sim, fn, BIG):
        by = row["b"] if divisor == "b" else divisor
        assert row["x"] == (None if row["a"] is None else row["a"] // by)
        assert row["y"] == (None if row["n"] is None else row["n"] // row["b"])


TEXTS = pa.table({"s": ["banana", "Ba.na", None, ""]})


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (lambda t: t.s.find("a", 2), [3, 4, None, -1]),
        (lambda t: t.s.find("a"), [1, 1, None, -1]),
        (lambda t: t.s.lpad(8, "xy"), ["xybanana", "xyxBa.na", None, "xyxyxyxy"]),
        (lambda t: t.s.rpad(8, "xy"), ["bananaxy", "Ba.naxyx", None, "xyxyxyxy"]),
        (lambda t: t.s.lpad(3, "-"), ["banana", "Ba.na", None, "---"]),
    ],
)
def test_texts_are_searched_and_padded_as_ibis_says(sim, fn, expected):
    assert [row["x"] for row in ran(sim, lambda t: t.select(x=fn(t)), TEXTS)] == expected
