"""Tables that users put: what is taken, what it becomes, and who gets it."""

from __future__ import annotations

import datetime
import pathlib
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from mplang_tables import (
    arrow,
    arrow_schema,
    decode,
    encode,
    from_integers,
    from_padded,
    table_type,
    to_integers,
    to_masked,
)

import mplang_core as mp
from mplang_core.errors import TraceError

FRAME = pd.DataFrame(
    {
        "name": ["Ann", "Bo", None],
        "age": [17, 44, 71],
        "pay": [1.5, float("nan"), 2.0],
        "sex": pd.Categorical(["f", "m", "f"]),
        "born": pd.to_datetime(["2009-01-02", "1982-03-04", None]),
    }
)
ROWS = [
    {"name": "Ann", "age": 17, "pay": 1.5, "sex": "f", "born": datetime.datetime(2009, 1, 2)},
    {"name": "Bo", "age": 44, "pay": None, "sex": "m", "born": datetime.datetime(1982, 3, 4)},
    {"name": None, "age": 71, "pay": 2.0, "sex": "f", "born": None},
]


@pytest.fixture(scope="module")
def workers():
    mplang_http = pytest.importorskip("mplang_http")
    with mplang_http.LocalCluster(2) as cluster, mp.connect("http", cluster.spec) as host:
        yield host


@pytest.fixture(params=["simulator", "http"])
def host(request):
    return request.getfixturevalue({"simulator": "sim", "http": "workers"}[request.param])


def put(host, data, party="P0"):
    with mp.with_ctx(host):
        return mp.put(party, data)


class Stream:
    """What exports Arrow data and is of no library that is known, as polars."""

    def __init__(self, table):
        self.table = table
        self.columns = table.columns

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "data",
    [
        FRAME,
        pa.Table.from_pandas(FRAME),
        pa.concat_tables([pa.Table.from_pandas(FRAME)] * 2).slice(3),
        Stream(pa.Table.from_pandas(FRAME)),
    ],
    ids=["pandas", "arrow", "a slice", "a stream"],
)
def test_a_frame_goes_to_one_party_and_comes_back_as_arrow(host, data):
    value = put(host, data)
    assert str(value.pmask) == "{0}"
    found = mp.fetch(host, value)
    assert isinstance(found, pa.Table)
    assert found.to_pylist() == ROWS


def test_polars(host):
    polars = pytest.importorskip("polars")
    assert mp.fetch(host, put(host, polars.from_pandas(FRAME))).to_pylist() == ROWS


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view(), pa.large_string()], ids=str)
def test_categories_of_any_layout_become_their_values(sim, kind):
    """Those of polars are views."""
    words = pa.DictionaryArray.from_arrays(
        pa.array([1, None, 0], pa.uint32()), pa.array(["a", "b"], kind)
    )
    found = mp.fetch(sim, put(sim, pa.table({"a": pa.chunked_array([words, words[:1]])})))
    assert found.to_pydict() == {"a": ["b", None, "a", "b"]}


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.string_view(), pa.large_binary(), pa.binary_view(), pa.date64()]
)
def test_the_table_of_an_engine_with_its_own_layouts_becomes_plain_as_its_error_says(kind):
    found = pa.table({"a": pa.array([], kind)})
    with pytest.raises(TypeError, match=r"column 'a' .*; mplang_tables\.arrow\.plain makes"):
        table_type(found)
    promised = table_type(arrow.plain(found))
    assert arrow.cast(found, promised).schema == arrow_schema(promised)


def test_a_value_of_a_plugin_is_put(host):
    crypto = pytest.importorskip("mplang_crypto")
    public = mp.fetch(host, mp.evaluate(host, lambda: mp.device("P0")(crypto.keypair)()[1]))
    again = mp.fetch(host, put(host, public, "P1"))
    assert type(again) is type(public)


def test_an_argument_that_only_looks_like_a_table_is_none(sim):
    class Config:
        columns = ("x", "y")
        schema = "public"

    def program(x, config):
        return mp.device("P0")(lambda x, config: x * len(config.columns))(x, config)

    assert mp.fetch(sim, mp.evaluate(sim, program, put(sim, 4), Config())) == 8


@pytest.mark.parametrize("mode", ["standard", "launch"])
def test_a_program_takes_it_as_an_argument(host, mode):
    def adults(t):
        return mp.device("P0")(lambda t: t.filter(t.age >= 18).select("name", "age"))(t)

    found = mp.fetch(host, mp.evaluate(host, adults, put(host, FRAME), mode=mode))
    assert found.to_pylist() == [{"name": "Bo", "age": 44}, {"name": None, "age": 71}]


@pytest.mark.parametrize("mode", ["standard", "launch"])
def test_a_table_becomes_numbers_and_a_table_again(host, mode):
    """On workers, too, whose programs and values go as bytes."""

    def program(t):
        t = mp.device("P0")(encode)(t, column="sex", values=("f", "m"), others=2)
        t = mp.device("P0")(to_integers)(t, column="born", unit="s")
        cells = mp.device("P0")(to_masked)(t, rows=5)
        t = mp.device("P1")(from_padded)(mp.put("P1", cells), columns=("born", "sex"))
        t = mp.device("P1")(decode)(t, column="sex", values=("f", "m"))
        return mp.device("P1")(from_integers)(t, column="born", unit="s", type="timestamp[us]")

    frame = FRAME[["born", "sex"]].assign(born=FRAME.born.dt.as_unit("us"))
    found = mp.fetch(host, mp.evaluate(host, program, put(host, frame), mode=mode))
    assert found.to_pylist() == [{"born": row["born"], "sex": row["sex"]} for row in ROWS]


def test_a_table_moves_to_another_party(host):
    moved = mp.evaluate(host, lambda t: mp.put("P1", t), put(host, FRAME))
    assert str(moved.pmask) == "{1}"
    assert mp.fetch(host, moved).to_pylist() == ROWS


def test_a_constant_goes_to_all(host):
    with mp.with_ctx(host):
        value = mp.constant(FRAME)
    assert [found.to_pylist() for found in mp.fetch(host, value)] == [ROWS, ROWS]


def test_without_rows(host):
    assert mp.fetch(host, put(host, FRAME.iloc[:0])).num_rows == 0


def test_an_index_is_a_column_if_it_has_a_name(sim):
    some = FRAME[["age"]][FRAME.age > 18]
    assert mp.fetch(sim, put(sim, some)).to_pylist() == [{"age": 44}, {"age": 71}]
    both = pd.DataFrame({"n": [1]}, index=pd.MultiIndex.from_tuples([(7, 8)], names=["id", None]))
    assert mp.fetch(sim, put(sim, both)).to_pylist() == [{"n": 1, "id": 7}]
    named = some.rename_axis("id")
    assert mp.fetch(sim, put(sim, named)).to_pylist() == [
        {"age": 44, "id": 1},
        {"age": 71, "id": 2},
    ]


def test_later_changes_of_the_frame_do_not_reach_the_value(sim):
    frame = pd.DataFrame({"a": np.arange(3)})
    value = put(sim, frame)
    other = put(sim, pa.Table.from_pandas(frame))
    third = put(sim, pa.table({"a": frame["a"].to_numpy()}))
    frame.loc[0, "a"] = 99
    for each in (value, other, third):
        assert mp.fetch(sim, each).to_pylist() == [{"a": 0}, {"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (pd.DataFrame({"a": [1, "x"]}), "this is not a table: .*column a"),
        (pd.DataFrame({"a": [{"b": 1}]}), "column 'a' is of the type 'struct<b: int64>'"),
        (pd.DataFrame(), "1 to 4096 columns, got 0"),
        (pd.DataFrame([[1, 2]], columns=["a", "A"]), "two columns are called 'A'"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "this is not a table: Duplicate column names"),
        (pa.table({"a": pa.array([1], pa.duration("s"))}), "'a' is of the type 'duration"),
        (pa.table({"a": pa.array([1], pa.timestamp("s", "Europe/Rome"))}), "tz=Europe/Rome"),
        (pa.table({"a\0": [1]}), "not a name of a column"),
        (pa.table({"a" * 70_000: [1]}), "names of a table's columns have at most 65536 characters"),
        (pd.DataFrame({"a": [1]}, index=pd.Index([1], name="a")), "an index is called as a column"),
        (pd.DataFrame({"a": [None]}), "it is empty; give it a type, as by astype"),
        (pd.DataFrame({"a": pd.to_datetime(["2020"]).tz_localize("Europe/Rome")}), "tz_convert"),
        (pd.DataFrame({"a": np.array([2**63], object)}), "this is not a table"),
        (pd.Series(["x", "y"]), "Series is not a tensor.*strings and dates are columns of tables"),
    ],
)
def test_what_is_no_table_is_refused_with_its_column(host, data, text):
    with pytest.raises(TraceError, match=rf"test_put\.py:\d+: .*{text}"):
        put(host, data)


def test_what_has_a_schema_and_no_rows_is_no_table(sim):
    class LazyFrame:
        schema = "a: int64"

    with pytest.raises(TraceError, match="LazyFrame is not a tensor"):
        put(sim, LazyFrame())


@pytest.mark.parametrize(
    "program",
    [
        lambda: mp.put("P0", FRAME),
        lambda: mp.constant(FRAME),
        lambda: mp.device("P0")(lambda t: t)(FRAME),
    ],
)
def test_a_table_does_not_stand_in_a_program(sim, program):
    told = "stands in no program.*mp.put it at its party outside"
    with pytest.raises(TraceError, match=told) as caught:
        mp.evaluate(sim, program)
    assert caught.value.code == "T013"


def test_a_table_is_no_public_argument(sim):
    with pytest.raises(TraceError, match="stands in no program.*mp.put it at its party outside"):
        mp.evaluate(sim, lambda t: t, FRAME)


@pytest.mark.long("the README imports pandas, and has a program run on SPU")
def test_the_readme_runs(capsys):
    text = (pathlib.Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    namespace = {"__name__": "__main__"}
    for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        exec(compile(block, "README.md", "exec"), namespace)
    out = capsys.readouterr().out.split("\n")
    expected = re.findall(r"# (\[.*\])$", text, re.MULTILINE)
    assert len(expected) == 3
    assert out == [*expected, ""]


def examples_of(*modules):
    import doctest

    for module in modules:
        found = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
        assert found.attempted
        assert not found.failed


def test_examples_in_docstrings():
    from mplang_tables import arrow, columns, grid, literal_table, padded, table_view, units

    examples_of(arrow, columns, grid, literal_table, padded, table_view, units)


def test_examples_of_ops_of_which_one_seals():
    from mplang_tables import ops

    pytest.importorskip("mplang_spu")
    examples_of(ops)


def test_a_table_is_converted_and_copied_once(host, monkeypatch):
    from mplang_tables import arrow

    seen, normalize = [], arrow.normalize
    monkeypatch.setattr(arrow, "normalize", lambda data: seen.append(data) or normalize(data))
    put(host, FRAME)
    assert len(seen) == 1
