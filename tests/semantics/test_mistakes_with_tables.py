"""What users of Ibis, SQL and pandas type by mistake with tables; each remedy runs.

The mistakes are those that people report of Ibis and pandas: ``and`` for ``&``, columns of other
tables, aggregates where rows are, methods of pandas, texts and times as numbers, indexes, nulls.
"""

from __future__ import annotations

import re
import types

import numpy as np
import pytest

import mplang_core as mp
from mplang_core.errors import PartyError, TraceError

ibis = pytest.importorskip("ibis")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("mplang_tables")

from ibis import _  # noqa: E402

pytestmark = pytest.mark.needs("ibis", "tables")

LINE = r"test_mistakes_with_tables\.py:\d+: "
PEOPLE = pa.table(
    {
        "id": ["c1", "c2", "c3"],
        "city": ["Bern", "Bern", "Chur"],
        "debt": [100, 250, 40],
        "number": ["1", "2", "6"],
        "born": ["1990-01-01", "1980-02-02", "1970-03-03"],
    }
)
ORDERS = pa.table({"customer": ["c3", "c1"], "spent": [10, 30], "no": [3, 1]})


def sets_a_column(t):
    t["twice"] = t.debt * 2
    return t


def returns_nothing(t):
    t.filter(t.debt > 50)


def of_my_own(debt: int) -> int:
    return debt * 2


def my_own(t):
    doubled = ibis.udf.scalar.python(of_my_own)
    return t.agg(n=doubled(t.debt).sum())


def another_table(t):
    other = ibis.table({"id": "string", "vip": "boolean"}, name="other")
    return t.join(other, "id")


def deferred(t):
    return t.filter(_.debt > 50)


undefined = types.FunctionType(deferred.__code__, {"__name__": __name__})
"""The same in a file that does not import ``_``."""


MISTAKES = {
    "and": (
        lambda t: t.filter(t.debt > 50 and t.city == "Bern"),
        "instead of `and`, `or`, `not` use &, |, ~",
        lambda t: t.filter((t.debt > 50) & (t.city == "Bern")).select("id"),
        {"id": ["c1", "c2"]},
    ),
    "or of deferred columns": (
        lambda t: t.filter((_.debt > 200) or (_.city == "Chur")),
        "instead of `and`, `or`, `not` use &, |, ~",
        lambda t: t.filter((_.debt > 200) | (_.city == "Chur")).select("id"),
        {"id": ["c2", "c3"]},
    ),
    "no parentheses": (
        lambda t: t.filter(t.debt > 50 & t.city == "Bern"),
        "stand in parentheses, as (t.a > 1) & (t.b == 'x')",
        lambda t: t.filter((t.debt > 50) & (t.city == "Bern")).select("id"),
        {"id": ["c1", "c2"]},
    ),
    "in": (
        lambda t: t.filter(t.city in ["Bern", "Basel"]),
        "t.a.isin(['x', 'y'])",
        lambda t: t.filter(t.city.isin(["Bern", "Basel"])).select("id"),
        {"id": ["c1", "c2"]},
    ),
    "if": (
        lambda t: t.select(size="large" if t.debt > 200 else "small"),
        "(t.a > 1).ifelse('x', 'y')",
        lambda t: t.select(size=(t.debt > 200).ifelse("large", "small")),
        {"size": ["small", "large", "small"]},
    ),
    "an unknown column": (
        lambda t: t.select("citty"),
        "did you mean 'city'?",
        lambda t: t.select("city").distinct().order_by("city"),
        {"city": ["Bern", "Chur"]},
    ),
    "an unknown attribute": (
        lambda t: t.filter(t.citty == "Bern"),
        "did you mean 'city'?",
        lambda t: t.filter(t.city == "Bern").select("id"),
        {"id": ["c1", "c2"]},
    ),
    "an unknown deferred column": (
        lambda t: t.filter(_.citty == "Bern"),
        "did you mean 'city'?",
        lambda t: t.filter(_.city == "Bern").select("id"),
        {"id": ["c1", "c2"]},
    ),
    "_ without an import": (
        undefined,
        "from ibis import _",
        lambda t: t.filter(_.debt > 50).select("id"),
        {"id": ["c1", "c2"]},
    ),
    "a mean of texts": (
        lambda t: t.agg(m=t.number.mean()),
        "'number' holds no numbers; cast it, as t.number.cast('float64').mean()",
        lambda t: t.agg(m=t.number.cast("float64").mean()),
        {"m": [3.0]},
    ),
    "a year of texts": (
        lambda t: t.select(y=t.born.year()),
        "'born' holds no times; cast it, as t.born.cast('timestamp').year()",
        lambda t: t.select(y=t.born.cast("timestamp").year()),
        {"y": [1990, 1980, 1970]},
    ),
    "a comparison of two types": (
        lambda t: t.filter(t.number > 1),
        "cast one of them, as t.a.cast('string')",
        lambda t: t.filter(t.number.cast("int64") > 1).select("id"),
        {"id": ["c2", "c3"]},
    ),
    "a column of rows in agg": (
        lambda t: t.group_by("city").agg(debt=t.debt),
        "a column of agg is an aggregate, as t.a.sum()",
        lambda t: t.group_by("city").agg(debt=t.debt.sum()).order_by("city"),
        {"city": ["Bern", "Chur"], "debt": [350, 40]},
    ),
    "groups without an aggregate": (
        lambda t: t.group_by("city"),
        "t.group_by('a').agg(n=t.count())",
        lambda t: t.group_by("city").agg(n=t.count()).order_by("city"),
        {"city": ["Bern", "Chur"], "n": [2, 1]},
    ),
    "a single value": (
        lambda t: t.debt.sum(),
        "a single value becomes one by .as_table()",
        lambda t: t.debt.sum().name("s").as_table(),
        {"s": [390]},
    ),
    "no return": (
        returns_nothing,
        "write `return` before it",
        lambda t: t.filter(t.debt > 200).select("id"),
        {"id": ["c2"]},
    ),
    "execute": (
        lambda t: t.filter(t.debt > 200).execute(),
        "without .execute() or .to_pandas(), and mp.fetch(host, result)",
        lambda t: t.filter(t.debt > 200).select("id"),
        {"id": ["c2"]},
    ),
    "item assignment": (
        sets_a_column,
        "write t = t.mutate(twice=t.a * 2)",
        lambda t: t.mutate(twice=t.debt * 2).select("twice"),
        {"twice": [200, 500, 80]},
    ),
    "loc": (
        lambda t: t.loc[t.debt > 200],
        "write t.filter(t.a > 1)",
        lambda t: t.filter(t.debt > 200).select("id"),
        {"id": ["c2"]},
    ),
    "sort_values": (
        lambda t: t.sort_values("debt"),
        "write t.order_by('a')",
        lambda t: t.order_by("debt").select("id"),
        {"id": ["c3", "c1", "c2"]},
    ),
    "apply": (
        lambda t: t.debt.apply(lambda v: v + 1),
        "write an expression of columns",
        lambda t: t.select(more=t.debt + 1),
        {"more": [101, 251, 41]},
    ),
    "astype": (
        lambda t: t.select(d=t.debt.astype("float64")),
        "write t.a.cast('float64')",
        lambda t: t.select(d=t.debt.cast("float64")),
        {"d": [100.0, 250.0, 40.0]},
    ),
    "a condition as a text": (
        lambda t: t.filter("debt > 200"),
        "a condition is not text, but an expression",
        lambda t: t.filter(t.debt > 200).select("id"),
        {"id": ["c2"]},
    ),
    "max of Python": (
        lambda t: t.agg(m=max(t.debt)),
        "as t.a.max()",
        lambda t: t.agg(m=t.debt.max()),
        {"m": [250]},
    ),
    "np": (
        lambda t: t.agg(m=np.mean(t.debt)),
        "methods of columns instead of NumPy, as t.a.mean()",
        lambda t: t.agg(m=t.debt.mean()),
        {"m": [130.0]},
    ),
    "a function of Python": (
        my_own,
        "a Python function of yours (a UDF), which cannot run at a party",
        lambda t: t.agg(n=(t.debt * 2).sum()),
        {"n": [780]},
    ),
    "correlation of a sample": (
        lambda t: t.agg(c=t.debt.corr(t.debt)),
        "write how='pop'",
        lambda t: t.agg(c=t.debt.corr(t.debt, how="pop").round()),
        {"c": [1.0]},
    ),
    "pivot without names": (
        lambda t: t.select("city", "debt").pivot_wider(
            names_from="city", values_from="debt", values_agg="sum"
        ),
        "names=['x', 'y']",
        lambda t: t.select("city", "debt").pivot_wider(
            names_from="city", values_from="debt", values_agg="sum", names=["Bern", "Chur"]
        ),
        {"Bern": [350], "Chur": [40]},
    ),
}


@pytest.fixture(scope="module")
def sim():
    with mp.Simulator(mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])) as made:
        yield made


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_with_a_table_and_its_remedy(sim, name, monkeypatch):
    monkeypatch.delattr("builtins._", raising=False)  # as doctests of others leave it
    wrong, told, repaired, expected = MISTAKES[name]
    with mp.with_ctx(sim):
        t = mp.put("P0", PEOPLE)
        with pytest.raises(TraceError, match=LINE + ".*" + re.escape(told)) as error:
            mp.device("P0")(wrong)(t)
        found = mp.device("P0")(repaired)(t)
    assert " object at 0x" not in str(error.value)
    assert len(str(error.value)) < 700
    assert mp.fetch(sim, found).to_pydict() == expected


JOINS = {
    "keys of two types": (
        lambda t, u: t.join(u, t.number == u.no),
        "cast one of them, as t.a.cast('string')",
        lambda t, u: t.join(u, t.number == u.no.cast("string")).select("id", "spent"),
        {"id": ["c1"], "spent": [30]},
    ),
    "keys of two names": (
        lambda t, u: t.join(u, "id"),
        "columns of two names are compared, as t.join(u, t.a == u.b)",
        lambda t, u: t.join(u, t.id == u.customer).order_by("id").select("id", "spent"),
        {"id": ["c1", "c3"], "spent": [30, 10]},
    ),
    "columns of the other table": (
        lambda t, u: t.filter(u.spent > 10),
        "join the tables first",
        lambda t, u: t.join(u, t.id == u.customer).filter(_.spent > 10).select("id"),
        {"id": ["c1"]},
    ),
    "merge": (
        lambda t, u: t.merge(u, left_on="id", right_on="customer"),
        "write t.join(u, 'key')",
        lambda t, u: t.join(u, t.id == u.customer).order_by("id").select("id"),
        {"id": ["c1", "c3"]},
    ),
    "a table that nobody hands over": (
        lambda t, u: another_table(t),
        "it reads another table, 'other'; pass it as an argument",
        lambda t, u: t.join(u, t.id == u.customer).agg(n=t.id.count()),
        {"n": [2]},
    ),
}


@pytest.mark.parametrize("name", JOINS)
def test_a_mistake_in_a_join_and_its_remedy(sim, name):
    wrong, told, repaired, expected = JOINS[name]
    with mp.with_ctx(sim):
        t, u = mp.put("P0", PEOPLE), mp.put("P0", ORDERS)
        with pytest.raises(TraceError, match=LINE + ".*" + re.escape(told)):
            mp.device("P0")(wrong)(t, u)
        found = mp.device("P0")(repaired)(t, u)
    assert mp.fetch(sim, found).to_pydict() == expected


SQL = {
    "a mean of texts": (
        "SELECT avg(number) AS m FROM {t}",
        "'avg(VARCHAR)'; it takes other types; cast the column first, as avg(TRY_CAST(a AS",
        "SELECT avg(TRY_CAST(number AS DOUBLE)) AS m FROM {t}",
        {"m": [3.0]},
    ),
    "double quotes": (
        'SELECT id FROM {t} WHERE city = "Chur"',
        "a text stands in single quotes, 'Chur'",
        "SELECT id FROM {t} WHERE city = 'Chur'",
        {"id": ["c3"]},
    ),
    "an unknown column": (
        "SELECT citty FROM {t} LIMIT 1",
        'Candidate bindings: "city"',
        "SELECT city FROM {t} LIMIT 1",
        {"city": ["Bern"]},
    ),
    "an unknown function": (
        "SELECT meen(debt) AS m FROM {t}",
        "did you mean 'mean'?",
        "SELECT mean(debt) AS m FROM {t}",
        {"m": [130.0]},
    ),
    "a number and a text": (
        "SELECT id FROM {t} WHERE number > 5",
        "cast one of them, as CAST(a AS BIGINT)",
        "SELECT id FROM {t} WHERE CAST(number AS BIGINT) > 5",
        {"id": ["c3"]},
    ),
    "no group": (
        "SELECT city, debt FROM {t} GROUP BY city",
        "must appear in the GROUP BY clause or must be part of an aggregate function",
        "SELECT city, sum(debt) AS debt FROM {t} GROUP BY city ORDER BY city",
        {"city": ["Bern", "Chur"], "debt": [350, 40]},
    ),
    "no braces": (
        "SELECT count(*) AS n FROM t",
        "it is written as {t}",
        "SELECT count(*) AS n FROM {t}",
        {"n": [3]},
    ),
    "a parameter": (
        "SELECT id FROM {t} WHERE debt > ?",
        "write the value in the text",
        "SELECT id FROM {t} WHERE debt > 200",
        {"id": ["c2"]},
    ),
    "not a SELECT": (
        "DELETE FROM {t}",
        "mp.sql takes one SELECT",
        "SELECT id FROM {t} WHERE debt > 200",
        {"id": ["c2"]},
    ),
}


@pytest.mark.parametrize("name", SQL)
def test_a_mistake_in_sql_and_its_remedy(sim, name):
    wrong, told, repaired, expected = SQL[name]
    with mp.with_ctx(sim):
        t = mp.put("P0", PEOPLE)
        with pytest.raises(TraceError, match=LINE + r"mp\.sql: .*" + re.escape(told)) as error:
            mp.sql("P0", wrong, t=t)
        assert "Candidate functions" not in str(error.value)
        found = mp.sql("P0", repaired, t=t)
    assert mp.fetch(sim, found).to_pydict() == expected


def test_the_text_before_the_party(sim):
    text = "SELECT count(*) AS n FROM {t}"
    with mp.with_ctx(sim):
        t = mp.put("P0", PEOPLE)
        with pytest.raises(TraceError, match=LINE + r"mp\.sql: the party comes first"):
            mp.sql(text, "P0", t=t)
        assert mp.fetch(sim, mp.sql("P0", text, t=t)).to_pydict() == {"n": [3]}


def test_a_text_that_is_no_number_while_it_runs(sim):
    text = "SELECT sum({}(city AS BIGINT)) AS s FROM {{t}}"
    with mp.with_ctx(sim):
        t = mp.put("P0", PEOPLE)
        told = r"party bank failed in ibis\.run at " + LINE + r".*column 's'.*TRY_CAST gives null"
        with pytest.raises(PartyError, match=told):
            mp.fetch(sim, mp.sql("P0", text.format("CAST"), t=t))
        found = mp.sql("P0", text.format("TRY_CAST"), t=t)
    assert mp.fetch(sim, found).to_pydict() == {"s": [None]}


PANDAS = {
    "an index of names": (
        lambda pd: pd.DataFrame({"a": [1, 2]}, index=["x", "y"]),
        "its index holds data (string) and has no name; write frame.rename_axis('name')",
        lambda frame: frame.rename_axis("name"),
        {"a": [1, 2], "name": ["x", "y"]},
    ),
    "columns of two levels": (
        lambda pd: pd.DataFrame({"g": [1, 1], "v": [1, 3]}).groupby("g").agg({"v": ["sum", "max"]}),
        "frame.columns = ['_'.join(map(str, each)) for each in frame.columns]",
        lambda frame: frame.set_axis(["_".join(map(str, each)) for each in frame.columns], axis=1),
        {"v_sum": [4], "v_max": [3], "g": [1]},
    ),
    "numbers and texts": (
        lambda pd: pd.DataFrame({"a": [1, "x"]}),
        "frame.astype({'name': str})",
        lambda frame: frame.astype({"a": str}),
        {"a": ["1", "x"]},
    ),
    "a time zone": (
        lambda pd: pd.DataFrame({"t": pd.to_datetime(["2024-07-01"]).tz_localize("Europe/Paris")}),
        'dt.tz_convert("UTC")',
        lambda frame: frame.assign(t=frame.t.dt.tz_convert("UTC").dt.hour),
        {"t": [22]},
    ),
    "durations": (
        lambda pd: pd.DataFrame({"t": pd.to_timedelta([1, 2], "s")}),
        "as by dt.total_seconds()",
        lambda frame: frame.assign(t=frame.t.dt.total_seconds()),
        {"t": [1.0, 2.0]},
    ),
    "periods": (
        lambda pd: pd.DataFrame({"t": pd.period_range("2024", periods=2, freq="Y")}),
        "as by dt.to_timestamp()",
        lambda frame: frame.assign(t=frame.t.dt.to_timestamp().dt.year),
        {"t": [2024, 2025]},
    ),
    "lists in cells": (
        lambda pd: pd.DataFrame({"a": [[1, 2], [3]]}),
        "as by frame.explode('name')",
        lambda frame: frame.explode("a").astype({"a": int}).reset_index(drop=True),
        {"a": [1, 2, 3]},
    ),
    "two columns of one name": (
        lambda pd: pd.DataFrame([[1, 2]], columns=["a", "a"]),
        "Duplicate column names found: ['a', 'a']",
        lambda frame: frame.set_axis(["a", "b"], axis=1),
        {"a": [1], "b": [2]},
    ),
}


@pytest.mark.parametrize("name", PANDAS)
def test_a_mistake_with_a_frame_and_its_remedy(sim, name):
    pd = pytest.importorskip("pandas")
    wrong, told, repaired, expected = PANDAS[name]
    frame = wrong(pd)
    with mp.with_ctx(sim):
        with pytest.raises(TraceError, match=LINE + ".*" + re.escape(told)):
            mp.put("P0", frame)
        assert mp.fetch(sim, mp.put("P0", repaired(frame))).to_pydict() == expected


def test_a_series_with_missing_integers(sim):
    pd = pytest.importorskip("pandas")
    series = pd.Series([1, None], dtype="Int64")
    with mp.with_ctx(sim):
        with pytest.raises(TraceError, match=LINE + r".*fill or drop what is missing.*np\.asarray"):
            mp.put("P0", series)
        found = mp.fetch(sim, mp.put("P0", np.asarray(series.fillna(0))))
        table = mp.fetch(sim, mp.put("P0", pd.DataFrame({"n": series})))
    assert found.tolist() == [1, 0]
    assert table.to_pydict() == {"n": [1, None]}


def test_texts_and_nulls_have_no_place_in_a_tensor(sim):
    from mplang_tables import fill_nulls, to_tensor

    at_p0 = mp.device("P0")
    with mp.with_ctx(sim):
        t = mp.put("P0", pa.table({"id": ["a", "b"], "pay": [1.0, None]}))
        told = LINE + r".*no place for 'id' \(string\); select the others"
        with pytest.raises(TraceError, match=told):
            at_p0(to_tensor)(t, rows=2)
        numbers = at_p0(lambda t: t.select("pay"))(t)
        with pytest.raises(PartyError, match=r"bank failed .*'pay' has nulls.*fill_nulls"):
            mp.fetch(sim, at_p0(to_tensor)(numbers, rows=2))
        filled = at_p0(to_tensor)(at_p0(fill_nulls)(numbers, columns=("pay",), value=0.0), rows=2)
    assert mp.fetch(sim, filled).tolist() == [[1.0], [0.0]]
