"""Each option of Ibis's aggregates and windows against a model in Python: kept, or refused."""

from __future__ import annotations

import functools
import operator
import statistics

import ibis
import pyarrow as pa
import pytest
import sql_model as model
from mplang_ibis import ibis_compile, query
from mplang_ibis.sql import read_sql
from mplang_tables import arrow
from sql_model import at, by, extreme, joined, modes, of_present, quantile, where

import mplang_core as mp
from mplang_core.errors import TraceError

ROWS = [
    {"id": i, "g": g, "v": v, "w": w, "s": s, "b": b}
    for i, (g, v, w, s, b) in enumerate(
        [
            ("x", 5, 1.5, "b", True),
            ("y", None, 0.5, "a", None),
            ("x", 7, None, None, False),
            ("x", None, 2.5, "c", True),
            ("y", 2, 4.5, "a", True),
            ("y", 9, 3.5, None, False),
            ("z", None, None, None, None),
            ("x", 5, 7.5, "d", True),
            ("y", 4, None, "b", None),
            ("x", 1, 6.5, "a", False),
        ]
    )
]
DATA = pa.Table.from_pylist(ROWS)
KIND = arrow.type_of(DATA)

UP = ("w", False, False)
DOWN = ("w", True, False)
NULLS_FIRST = ("w", False, True)
ID_DOWN = ("id", True, False)


def run(fn):
    """Return the rows of a function of the table."""
    attrs = ibis_compile(fn, mp.FeSignature((KIND,))).pfunc.attrs
    return query.run_sql(read_sql(attrs["code"]), {"table0": DATA}, attrs["gives"]).to_pylist()


def nulls_first():
    return ibis.asc("w", nulls_first=True)


def late(row):
    return row["id"] > 2


AGGREGATES = {
    "count": (lambda t: t.v.count(), of_present(len, "v", 0)),
    "count where": (lambda t: t.v.count(where=t.id > 2), where(of_present(len, "v", 0), late)),
    "nunique": (lambda t: t.v.nunique(), of_present(lambda x: len(set(x)), "v", 0)),
    "nunique where": (
        lambda t: t.v.nunique(where=t.id > 2),
        where(of_present(lambda x: len(set(x)), "v", 0), late),
    ),
    "sum": (lambda t: t.v.sum(), of_present(sum, "v")),
    "sum where": (lambda t: t.v.sum(where=t.id > 2), where(of_present(sum, "v"), late)),
    "sum of bools": (lambda t: t.b.sum(), of_present(sum, "b")),
    "mean": (lambda t: t.v.mean(), of_present(statistics.fmean, "v")),
    "mean where": (
        lambda t: t.v.mean(where=t.id > 2),
        where(of_present(statistics.fmean, "v"), late),
    ),
    "mean of bools": (lambda t: t.b.mean(), of_present(statistics.fmean, "b")),
    "min where": (lambda t: t.v.min(where=t.id > 2), where(of_present(min, "v"), late)),
    "max": (lambda t: t.v.max(), of_present(max, "v")),
    "std": (lambda t: t.v.std(), of_present(statistics.stdev, "v", 2)),
    "std pop where": (
        lambda t: t.v.std(how="pop", where=t.id > 2),
        where(of_present(statistics.pstdev, "v"), late),
    ),
    "var": (lambda t: t.v.var(), of_present(statistics.variance, "v", 2)),
    "var pop": (lambda t: t.v.var(how="pop"), of_present(statistics.pvariance, "v")),
    "cov": (lambda t: t.v.cov(t.w), model.covariance("v", "w", 1)),
    "cov pop where": (
        lambda t: t.v.cov(t.w, how="pop", where=t.id > 2),
        where(model.covariance("v", "w", 0), late),
    ),
    "corr sample": (lambda t: t.v.corr(t.w), None),
    "median": (lambda t: t.v.median(), of_present(quantile(0.5), "v")),
    "median where": (
        lambda t: t.v.median(where=t.id > 2),
        where(of_present(quantile(0.5), "v"), late),
    ),
    "quantile": (lambda t: t.w.quantile(0.3), of_present(quantile(0.3), "w")),
    "mode": (lambda t: t.s.mode(), of_present(modes, "s")),
    "mode where": (lambda t: t.v.mode(where=t.id > 2), where(of_present(modes, "v"), late)),
    "any": (lambda t: t.b.any(), of_present(any, "b")),
    "all where": (lambda t: t.b.all(where=t.id > 2), where(of_present(all, "b"), late)),
    "bit_or where": (
        lambda t: t.v.bit_or(where=t.id > 2),
        where(of_present(lambda x: functools.reduce(operator.or_, x), "v"), late),
    ),
    "arbitrary": (lambda t: t.s.arbitrary(), of_present(lambda x: model.OneOf(tuple(x)), "s")),
    "arbitrary where": (
        lambda t: t.s.arbitrary(where=t.id > 2),
        where(of_present(lambda x: model.OneOf(tuple(x)), "s"), late),
    ),
    "argmin": (lambda t: t.s.argmin(t.w), extreme("s", "w", min)),
    "argmax": (lambda t: t.v.argmax(t.w), extreme("v", "w", max)),
    "argmin where": (
        lambda t: t.s.argmin(t.w, where=t.id > 2),
        where(extreme("s", "w", min), late),
    ),
    "argmax where": (
        lambda t: t.s.argmax(t.w, where=t.id > 2),
        where(extreme("s", "w", max), late),
    ),
    "first": (lambda t: t.v.first(), at("v", 0, nulls=False)),
    "first with nulls": (lambda t: t.v.first(include_null=True), at("v", 0, nulls=True)),
    "last": (lambda t: t.v.last(), at("v", -1, nulls=False)),
    "last with nulls": (lambda t: t.v.last(include_null=True), at("v", -1, nulls=True)),
    "first where": (lambda t: t.v.first(where=t.id > 2), where(at("v", 0, nulls=False), late)),
    "last where": (
        lambda t: t.v.last(where=t.id > 2, include_null=True),
        where(at("v", -1, nulls=True), late),
    ),
    "first by": (lambda t: t.s.first(order_by="w"), by(at("s", 0, nulls=False), UP)),
    "last by": (
        lambda t: t.s.last(order_by=[ibis.desc("w"), "id"], include_null=True),
        by(at("s", -1, nulls=True), DOWN, ("id", False, False)),
    ),
    "first by, nulls first": (
        lambda t: t.id.first(order_by=[ibis.asc("w", nulls_first=True), "id"]),
        by(at("id", 0, nulls=False), NULLS_FIRST, ("id", False, False)),
    ),
    "last by where": (
        lambda t: t.v.last(order_by=ibis.desc("id"), where=t.id > 2),
        where(by(at("v", -1, nulls=False), ID_DOWN), late),
    ),
    "group_concat": (lambda t: t.s.group_concat("-"), joined("s", "-")),
    "group_concat by": (
        lambda t: t.s.group_concat("-", order_by=ibis.desc("id")),
        by(joined("s", "-"), ID_DOWN),
    ),
    "group_concat by where": (
        lambda t: t.s.group_concat(
            "", order_by=[ibis.asc("w", nulls_first=True), "id"], where=t.id > 2
        ),
        where(by(joined("s", ""), NULLS_FIRST, ("id", False, False)), late),
    ),
    "collect": (lambda t: t.s.collect().join("-"), joined("s", "-")),
    "collect by": (
        lambda t: t.s.collect(order_by=ibis.desc("id")).join("-"),
        by(joined("s", "-"), ID_DOWN),
    ),
    "collect with nulls": (
        lambda t: t.s.collect(include_null=True).length(),
        lambda rows: len(rows) or None,
    ),
    "collect distinct": (
        lambda t: t.s.collect(distinct=True).length(),
        of_present(lambda x: len(set(x)), "s"),
    ),
    "collect distinct by": (
        lambda t: t.v.collect(distinct=True, order_by=ibis.desc("v"), where=t.id > 2).length(),
        where(of_present(lambda x: len(set(x)), "v"), late),
    ),
    "collect where": (
        lambda t: t.s.collect(where=t.id > 2).length(),
        where(of_present(len, "s"), late),
    ),
    "kurtosis pop": (lambda t: t.v.kurtosis(how="pop"), of_present(model.kurtosis_pop, "v", 2)),
}

WINDOWS = {
    "so far": (
        lambda: ibis.window(order_by="id", following=0),
        lambda rows, i: rows[: i + 1],
        [("id", False, False)],
        None,
    ),
    "two rows around, by group": (
        lambda: ibis.window(group_by="g", order_by="id", preceding=1, following=1),
        lambda rows, i: rows[max(0, i - 1) : i + 2],
        [("id", False, False)],
        "g",
    ),
    "before, downwards": (
        lambda: ibis.window(order_by=ibis.desc("id"), preceding=(3, 1)),
        lambda rows, i: rows[max(0, i - 3) : i],
        [ID_DOWN],
        None,
    ),
    "nulls first": (
        lambda: ibis.window(order_by=[ibis.asc("w", nulls_first=True), "id"], following=0),
        lambda rows, i: rows[: i + 1],
        [NULLS_FIRST, ("id", False, False)],
        None,
    ),
    "range": (
        lambda: ibis.range_window(order_by="id", preceding=2, following=1),
        lambda rows, i: [row for row in rows if -2 <= row["id"] - rows[i]["id"] <= 1],
        [("id", False, False)],
        None,
    ),
}

REFUSED_ALWAYS = {"corr sample"}
REFUSED_IN_WINDOWS = {
    "first where", "last where", "first by", "last by", "first by, nulls first", "last by where",
}  # fmt: skip


def same(got, expected):
    if isinstance(expected, float) and isinstance(got, int | float):
        return got == pytest.approx(expected)
    return expected == got


@pytest.mark.parametrize("name", AGGREGATES)
def test_an_aggregate_has_its_options(name):
    fn, expected = AGGREGATES[name]
    if name in REFUSED_ALWAYS:
        with pytest.raises(TraceError):
            run(lambda t: t.agg(x=fn(t)))
        return
    (row,) = run(lambda t: t.agg(x=fn(t)))
    assert same(row["x"], expected(ROWS)), (row, expected(ROWS))
    for row in run(lambda t: t.group_by("g").agg(x=fn(t))):
        wanted = expected([each for each in ROWS if each["g"] == row["g"]])
        assert same(row["x"], wanted), (row, wanted)


def two_windows(name):
    """Return two windows for an aggregate: together, aggregates have all, and each one often."""
    at, windows = list(AGGREGATES).index(name), list(WINDOWS)
    return [windows[(at + more) % len(windows)] for more in (0, 2)]


@pytest.mark.parametrize("name", AGGREGATES)
def test_an_aggregate_over_a_window_has_its_options(name):
    for window in two_windows(name):
        check_over_a_window(name, window)


@pytest.mark.long("58 aggregates over each window")
@pytest.mark.parametrize("window", WINDOWS)
def test_all_aggregates_over_a_window_have_their_options(window):
    for name in AGGREGATES:
        check_over_a_window(name, window)


def check_over_a_window(name, window):
    fn, expected = AGGREGATES[name]
    made, frame, order, group = WINDOWS[window]

    def program(t):
        return t.select("id", x=fn(t).over(made()))

    if name in REFUSED_ALWAYS | REFUSED_IN_WINDOWS:
        with pytest.raises(TraceError):
            run(program)
        return
    wanted = model.framed(ROWS, expected, frame, order, group)
    got = {row["id"]: row["x"] for row in run(program)}
    assert got.keys() == wanted.keys()
    wrong = {i: (got[i], wanted[i]) for i in got if not same(got[i], wanted[i])}
    assert not wrong, (name, window)


# -- ranks, and values of other rows

W, PLACE = ("w", False, False), ("id", False, False)


def places(rows):
    """Return for each row how many have a lesser w, one of nulls being the greatest."""
    keys = [(row["w"] is None, row["w"] or 0) for row in rows]
    return [sum(other < key for other in keys) for key in keys]


def dense(rows, i):
    found = places(rows)
    return len({place for place in found if place < found[i]})


def shifted(rows, i, by, otherwise=None, name="v"):
    return rows[i + by][name] if 0 <= i + by < len(rows) else otherwise


def tiles(rows, i, n):
    size, more = divmod(len(rows), n)
    return next(k for k in range(n) if i < (k + 1) * size + min(k + 1, more))


def nth(rows, n):
    return rows[n]["v"] if n < len(rows) else None


ANALYTIC = {
    "rank": (lambda t: ibis.rank(), W, lambda rows, i: places(rows)[i]),
    "dense_rank": (lambda t: ibis.dense_rank(), W, dense),
    "row_number": (lambda t: ibis.row_number(), PLACE, lambda rows, i: i),
    "percent_rank": (
        lambda t: ibis.percent_rank(),
        W,
        lambda rows, i: places(rows)[i] / max(1, len(rows) - 1),
    ),
    "cume_dist": (
        lambda t: ibis.cume_dist(),
        W,
        lambda rows, i: sum(place <= places(rows)[i] for place in places(rows)) / len(rows),
    ),
    "ntile": (lambda t: ibis.ntile(3), PLACE, lambda rows, i: tiles(rows, i, 3)),
    "lag": (lambda t: t.v.lag(), PLACE, lambda rows, i: shifted(rows, i, -1)),
    "lag 2": (lambda t: t.v.lag(2), PLACE, lambda rows, i: shifted(rows, i, -2)),
    "lag default": (lambda t: t.v.lag(default=-1), PLACE, lambda rows, i: shifted(rows, i, -1, -1)),
    "lead default": (
        lambda t: t.v.lead(3, default=t.id),
        PLACE,
        lambda rows, i: shifted(rows, i, 3, rows[i]["id"]),
    ),
    "nth": (lambda t: t.v.nth(1), PLACE, lambda rows, i: nth(rows, 1)),
}


@pytest.mark.parametrize("group", [None, "g"])
@pytest.mark.parametrize("name", ANALYTIC)
def test_ranks_and_values_of_other_rows(name, group):
    fn, order, expected = ANALYTIC[name]
    got = {
        row["id"]: row["x"]
        for row in run(
            lambda t: t.select("id", x=fn(t).over(ibis.window(group_by=group, order_by=order[0])))
        )
    }
    wanted = model.framed(ROWS, lambda pair: expected(*pair), lambda r, i: (r, i), [order], group)
    wrong = {i: (got[i], wanted[i]) for i in wanted if not same(got[i], wanted[i])}
    assert not wrong


CUMULATIVE = {
    "cumsum": (lambda t, **o: t.v.cumsum(**o), of_present(sum, "v")),
    "cummean": (lambda t, **o: t.v.cummean(**o), of_present(statistics.fmean, "v")),
    "cummin": (lambda t, **o: t.v.cummin(**o), of_present(min, "v")),
    "cummax": (lambda t, **o: t.v.cummax(**o), of_present(max, "v")),
    "cumany": (lambda t, **o: t.b.cumany(**o), of_present(any, "b")),
    "cumall": (lambda t, **o: t.b.cumall(**o), of_present(all, "b")),
}


@pytest.mark.parametrize("name", CUMULATIVE)
def test_cumulative_ones_take_groups_and_orders(name):
    fn, expected = CUMULATIVE[name]
    program = lambda t: t.select("id", x=fn(t, group_by="g", order_by=ibis.desc("id")))  # noqa: E731
    wanted = model.framed(ROWS, expected, lambda rows, i: rows[: i + 1], [ID_DOWN], "g")
    got = {row["id"]: row["x"] for row in run(program)}
    assert not {i: (got[i], wanted[i]) for i in wanted if not same(got[i], wanted[i])}


# -- tables


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (lambda t: t.drop_null(["v", "w"]), [0, 4, 5, 7, 9]),
        (lambda t: t.drop_null(["v", "w"], how="all"), [0, 1, 2, 3, 4, 5, 7, 8, 9]),
        (lambda t: t.order_by("id").limit(3, offset=2), [2, 3, 4]),
        (
            lambda t: t.order_by([ibis.desc("v", nulls_first=True), "id"]),
            [1, 3, 6, 5, 2, 0, 7, 8, 4, 9],
        ),
        (
            lambda t: t.order_by([ibis.asc("v", nulls_first=True), ibis.desc("id")]),
            [6, 3, 1, 9, 4, 8, 7, 0, 2, 5],
        ),
        (lambda t: t.order_by([ibis.desc("v"), "id"]), [5, 2, 0, 7, 8, 4, 9, 1, 3, 6]),
        (lambda t: t.filter(ibis.row_number().over(group_by="g", order_by="id") == 0), [0, 1, 6]),
        (lambda t: t.distinct(on="g", keep=None).order_by("id"), [6]),
        (lambda t: t.filter(t.v.isin([5, 9])).order_by("id"), [0, 5, 7]),
        (lambda t: t.filter(t.v.notin([5, 9])).order_by("id"), [2, 4, 8, 9]),
        (lambda t: t.filter(t.v.identical_to(None)).order_by("id"), [1, 3, 6]),
    ],
)
def test_options_of_tables(fn, expected):
    assert [row["id"] for row in run(fn)] == expected


@pytest.mark.parametrize("keep", ["first", "last"])
def test_rows_that_are_mixed_are_refused(keep):
    """Ibis takes the first value of each column that is not null, of several rows."""
    message = r"mixes rows.*row_number\(\)\.over\(group_by=\['g'\]"
    with pytest.raises(TraceError, match=message):
        run(lambda t: t.distinct(on="g", keep=keep))


def test_the_first_values_that_are_there():
    fn = lambda t: t.select("g", "v").group_by("g").agg(v=t.v.first(where=t.v.notnull()))  # noqa: E731
    assert {row["g"]: row["v"] for row in run(fn)} == {"x": 5, "y": 2, "z": None}


def test_different_rows_are_counted_by_distinct():
    with pytest.raises(TraceError, match="the function row"):
        run(lambda t: t.select("g", "b").nunique().name("n").as_table())
    assert run(lambda t: t.select("g", "b").distinct().count().name("n").as_table()) == [{"n": 6}]
