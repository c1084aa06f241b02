"""Tables display as tables, in a terminal and a notebook, and cells do no more than show."""

from __future__ import annotations

import datetime
import io
import sys
import types
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from mplang_tables import table, table_view, view
from table_programs import at

import mplang_core as mp

HOSTILE = "<script>alert(1)</script>\x1b[2J\r\u202egnp.exe[bold]"


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")


def test_a_result_shows_its_rows_with_names_types_and_their_number(sim):
    people = {
        "name": ["Ann", "Bo"],
        "pay": [Decimal("1.50"), None],
        "born": [None, datetime.date(1982, 3, 4)],
    }
    found = mp.fetch(sim, mp.evaluate(sim, lambda: at("P0", table(people))))
    assert isinstance(found, pa.Table)
    assert str(view(found)).splitlines() == [
        "name                 pay  born",
        "string  decimal128(3, 2)  date32[day]",
        "Ann                 1.50  null",
        "Bo                  null  1982-03-04",
        "2 rows of 3 columns",
    ]
    assert repr(view(found)) == str(view(found))
    html = view(found)._repr_html_()
    for text in ("name", "string", "Ann", "1.50", "1982-03-04", "null"):
        assert f"<bdi>{text}</bdi>" in html


def test_long_tables_show_the_first_and_the_last_rows():
    lines = str(view(pa.table({"n": range(1000)}))).splitlines()
    shown = [line.strip() for line in lines]
    assert shown == [
        "n",
        "int64",
        *"01234",
        "…",
        *map(str, range(995, 1000)),
        "1,000 rows of 1 column",
    ]
    assert view(pa.table({"n": range(1000)}))._repr_html_().count("<tr>") == 2 + 11
    assert "…" not in str(view(pa.table({"n": range(11)})))


def test_columns_that_have_no_room_are_counted(monkeypatch):
    many = pa.table({f"column{i}": ["x" * 500] for i in range(30)})
    lines = str(view(many)).splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[-1] == "1 row of 30 columns; 28 more columns"
    monkeypatch.setenv("COLUMNS", "5")
    assert str(view(many)).splitlines()[0] == "column0"


@pytest.mark.parametrize("where", ["cell", "name"])
def test_a_hostile_text_shows_itself_and_does_no_more(where):
    rich = pytest.importorskip("rich.console")
    hostile = pa.table({"a": [HOSTILE]} if where == "cell" else {HOSTILE: ["a"]})
    terminal = io.StringIO()
    rich.Console(file=terminal, width=200, force_terminal=True).print(view(hostile))
    for text in (str(view(hostile)), view(hostile)._repr_html_()):
        assert not {"\x1b", "\r", "\u202e"} & set(text)
    assert "<script" not in view(hostile)._repr_html_()
    assert "\x1b[2J" not in terminal.getvalue()
    assert "\u202e" not in terminal.getvalue()
    assert r"\x1b[2J" in str(view(hostile))


@pytest.mark.parametrize(
    ("cells", "kind", "shown"),
    [
        ([2**31 - 1], pa.int32(), "<value out of range: 2147483647>"),
        ([1], pa.int32(), "1970-01-02"),
    ],
)
def test_dates_beyond_those_of_python_are_shown(cells, kind, shown):
    found = pa.table({"d": pa.array(cells, kind).cast(pa.date32())})
    assert str(view(found)).splitlines()[2] == shown


def test_every_type_is_shown():
    cells = {
        "bool": True, "int8": -1, "uint64": 2**64 - 1, "float": 0.5, "double": float("nan"),
        "string": "", "binary": b"\xff\x00", "date32[day]": datetime.date(2024, 1, 2),
        "time64[ns]": datetime.time(1, 2, 3), "timestamp[ns]": pd.Timestamp(1),
        "timestamp[us, tz=UTC]": datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC),
        "decimal128(38, 38)": Decimal("0.1"),
    }  # fmt: skip
    from mplang_tables import arrow_schema

    schema = arrow_schema(mp.TableType(tuple((name, name) for name in cells)))
    found = pa.table({name: [cell] for name, cell in cells.items()}, schema=schema)
    html = view(found)._repr_html_()
    for text in (
        "True",
        "-1",
        "18446744073709551615",
        "nan",
        "ff00",
        "1970-01-01 00:00:00.000000001",
    ):
        assert f"<bdi>{text}</bdi>" in html
    assert (
        view(found.slice(0, 0))
        ._repr_html_()
        .endswith("<p><bdi>0 rows of 12 columns</bdi></p></div>")
    )


def test_what_mp_put_takes_is_shown_and_nothing_else():
    assert "Ann" in str(view(pd.DataFrame({"name": ["Ann"]})))
    with pytest.raises(TypeError, match="this is not a table"):
        view([1, 2])


def test_a_view_becomes_a_frame_of_pandas_without_a_lost_digit():
    found = pa.table({"id": [2**53 + 1, None], "n": [1, 2], "ok": [True, None], "x": [0.5, None]})
    frame = view(found).to_pandas()
    assert frame.dtypes.astype(str).tolist() == ["Int64", "Int64", "boolean", "float64"]
    assert frame["id"].tolist() == [2**53 + 1, pd.NA]
    assert view(found.select(["n"])).to_pandas()["n"].dtype == "int64"


def test_a_view_becomes_a_frame_of_polars():
    polars = pytest.importorskip("polars")
    assert view(pa.table({"n": [1]})).to_polars().equals(polars.DataFrame({"n": [1]}))


# -- values of a program, whose rows are at a party


@pytest.mark.parametrize("evaluated", [True, False])
def test_a_value_of_a_program_shows_its_columns_and_who_has_it(sim, evaluated):
    seen = []

    def program():
        t = at("P1", table({"name": ["Ann"], "age": [17]}))
        seen.append([repr(t), t._repr_html_(), str(view(t))])
        return t

    t = mp.evaluate(sim, program)
    text, html, shown = [repr(t), t._repr_html_(), str(view(t))] if evaluated else seen[0]
    assert text.startswith('<table<["name", "string"], ["age", "int64"]> at P1')
    assert "<td><bdi>age</bdi></td><td><bdi>int64</bdi></td>" in html
    assert "A table at P1." in html
    assert shown.splitlines() == [
        "column  type", "name    string", "age     int64", "a table at {1} on P1",
    ]  # fmt: skip
    assert "Ann" not in text + html + shown


def test_a_name_of_a_column_is_escaped_where_a_value_shows_it(sim):
    with mp.with_ctx(sim):
        t = mp.put("P0", pa.table({HOSTILE: [1]}))
    assert "<script" not in t._repr_html_()
    assert not {"\x1b", "\r", "\u202e"} & set(t._repr_html_() + str(view(t)))


def test_other_values_show_their_text(sim):
    with mp.with_ctx(sim):
        x = mp.put("P0", [1, 2])
    assert "i64[2] at P0" in x._repr_html_()
    with pytest.raises(TypeError, match=r"test_view\.py:\d+: .*i64\[2\].* is not a table"):
        view(x)


# -- IPython


class Formatter:
    """What is used of a formatter of IPython."""

    def __init__(self, *known):
        self.shows = dict.fromkeys(known)

    def lookup_by_type(self, name):
        return self.shows[name]

    def for_type_by_name(self, module, name, show):
        self.shows[f"{module}.{name}"] = show


def ipython(monkeypatch, formatters):
    shell = types.SimpleNamespace(display_formatter=types.SimpleNamespace(formatters=formatters))
    there = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", there)
    table_view.show_in_ipython()


def test_ipython_shows_fetched_tables(monkeypatch):
    formatters = {"text/html": Formatter(), "text/plain": Formatter()}
    ipython(monkeypatch, formatters)
    found, texts = pa.table({"age": [17]}), []
    name = f"{pa.Table.__module__}.{pa.Table.__name__}"
    assert formatters["text/html"].shows[name](found) == view(found)._repr_html_()
    printer = types.SimpleNamespace(text=texts.append)
    formatters["text/plain"].shows[name](found, printer, False)
    assert texts == [str(view(found))]


def test_what_shows_tables_of_arrow_already_goes_on(monkeypatch):
    formatters = {"text/html": Formatter("pyarrow.lib.Table"), "text/plain": Formatter()}
    ipython(monkeypatch, formatters)
    assert formatters["text/html"].shows == {"pyarrow.lib.Table": None}


def test_without_ipython_nothing_is_registered(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    table_view.show_in_ipython()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None))
    table_view.show_in_ipython()
