"""Data sets in programs: read from each kind of source, on the simulator and on workers."""

from __future__ import annotations

import contextlib
import gc
from types import FunctionType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mplang_data.sources.npy_file import NpyFile
from mplang_tables import encode, to_padded, to_tensor
from mplang_testing.waiting import DEADLINE
from people import COLUMNS, PEOPLE

import mplang_core as mp
from mplang_core import analysis
from mplang_core.errors import TraceError

SOURCES = [
    "parquet:people.parquet",
    "parquet:part-*.parquet",
    "csv:people.csv",
    "arrow:people.arrow",
]


def summary():
    """Return a query of the data set, a tensor of two columns, and a padded one."""
    t = mp.dataset("bank", "people")
    by_sex = mp.device("PB")(
        lambda t: t.filter(t.age > 40).group_by("sex").agg(pay=t.pay.sum()).order_by("sex")
    )(t)
    coded = mp.device("PB")(encode)(t, column="sex", values=("f", "m"))
    coded = mp.device("PB")(lambda t: t[["age", "sex"]])(coded)
    both = mp.device("PB")(to_tensor)(coded, rows=2000)
    pay = mp.device("PB")(to_padded)(mp.dataset("bank", "people", ["pay"]), rows=3000)
    return by_sex, both, mp.device("PB")(lambda pay: pay.mean())(pay)


def expected():
    frame = PEOPLE.to_pandas().astype({"sex": str})
    by_sex = frame[frame.age > 40].groupby("sex", observed=True).pay.sum()
    codes = (frame.sex == "m").to_numpy(np.int64)
    return by_sex, np.stack([frame.age, codes], axis=1), frame.pay.mean()


CLUSTER = {
    "nodes": [{"name": "shop"}, {"name": "bank"}],
    "devices": {
        "PS": {"kind": "PPU", "members": ["shop"]},
        "PB": {"kind": "PPU", "members": ["bank"]},
    },
}


@contextlib.contextmanager
def on_simulator(data):
    with mp.Simulator(mp.ClusterSpec.from_dict(CLUSTER), data=data, timeout=DEADLINE) as host:
        yield host


@contextlib.contextmanager
def on_workers(data):
    from mplang_http import LocalCluster

    with LocalCluster(["shop", "bank"], data=data, mode="production") as workers:
        nodes = [node.model_dump() for node in workers.spec.nodes]
        spec = mp.ClusterSpec.from_dict({**CLUSTER, "nodes": nodes})
        with mp.connect("http", spec) as host:
            yield host


def people(folder, source, **fields):
    kind, _, name = source.partition(":")
    return {"source": f"{kind}:{folder / name}", "columns": COLUMNS, "match": ["id"], **fields}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("host", [on_simulator, on_workers])
def test_a_program_is_the_same_on_each_source_and_backend(folder, source, host):
    data = {"bank": {"people": people(folder, source, rows=2000)}}
    with host(data) as made:
        by_sex, both, mean = mp.fetch(made, mp.evaluate(made, summary))
    wanted = expected()
    assert by_sex.to_pydict() == {"sex": ["f", "m"], "pay": list(wanted[0])}
    np.testing.assert_array_equal(both, wanted[1])
    np.testing.assert_allclose(mean, wanted[2])


@pytest.mark.parametrize("host", [on_simulator, on_workers])
@pytest.mark.parametrize("order", ["<f8", ">f8"])
def test_an_array_is_a_tensor(tmp_path, host, order):
    """In the order of its elements and of their bytes, whatever those of the file are."""
    array = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "scan.npy", np.asfortranarray(array).astype(order))
    data = {"bank": {"scan": {"source": f"npy:{tmp_path}/scan.npy", "array": "f64[4, 3]"}}}

    def program():
        scan = mp.dataset("bank", "scan")
        return scan, mp.device("PS")(lambda x: x + 1)(mp.put("PS", scan))

    with host(data) as made:
        scan, moved = mp.fetch(made, mp.evaluate(made, program))
    np.testing.assert_array_equal(scan, array)
    np.testing.assert_array_equal(moved, array + 1)


def test_an_array_that_is_read_again_leaves_nothing_to_the_garbage_collector(tmp_path):
    np.save(tmp_path / "scan.npy", np.arange(12.0))
    kind = mp.TensorType(mp.DType.F64, (12,))

    def functions_of_parser():
        objects = gc.get_objects()
        return sum(type(each) is FunctionType and each.__module__ == "ast" for each in objects)

    gc.disable()
    try:
        with open(tmp_path / "scan.npy", "rb") as file:
            NpyFile().read([file.fileno()], kind)
            before = functions_of_parser()
            NpyFile().read([file.fileno()], kind)
        assert functions_of_parser() == before
    finally:
        gc.enable()


@pytest.mark.parametrize("source", SOURCES)
def test_what_is_fetched_is_a_table_of_each_source(folder, source):
    with on_simulator({"bank": {"people": people(folder, source)}}) as made:
        found = mp.fetch(made, mp.evaluate(made, lambda: mp.dataset("bank", "people", ["age"])))
    assert found.equals(PEOPLE.select(["age"]))


@pytest.mark.parametrize("kind", ["parquet", "arrow", "memory"])
def test_nan_is_the_greatest_number_of_sql_wherever_the_filter_is(tmp_path, kind):
    """As it is in DuckDB; Arrow, which reads for it, takes it for no number."""
    table = pa.table({"f": pa.array([1.0, float("nan"), None, 5.0, float("inf"), -0.0])})
    pq.write_table(table, tmp_path / "t.parquet")
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as file:
        file.write_table(table)
    given = {"source": f"{kind}:{tmp_path}/t.{kind}", "columns": {"f": "float64"}}

    def program():
        t = mp.dataset("bank", "t")
        filtered = mp.device("PB")(lambda t: t.filter(t.f > 2).agg(n=t.f.count()))(t)
        counted = mp.device("PB")(lambda t: t.agg(n=t.f.count(where=t.f > 2)))(t)
        kept = mp.device("PB")(lambda t: t.filter(t.f < 2))(t)
        return filtered, counted, kept

    with on_simulator({"bank": {"t": table if kind == "memory" else given}}) as made:
        filtered, counted, kept = mp.fetch(made, mp.evaluate(made, program))
    assert filtered.to_pydict() == counted.to_pydict() == {"n": [3]}
    assert str(kept.to_pydict()) == "{'f': [1.0, -0.0]}"


def test_a_party_is_found_before_a_device_of_another_one():
    nodes = [{"name": "a"}, {"name": "b"}]
    devices = {"b": {"kind": "PPU", "members": ["a"]}, "PB": {"kind": "PPU", "members": ["b"]}}
    spec = mp.ClusterSpec.from_dict({"nodes": nodes, "devices": devices})
    with (
        mp.Simulator(spec, data={n: {"p": {"x": [1]}} for n in "ab"}) as made,
        pytest.raises(TraceError, match="'b' is a party, and a device of another one"),
    ):
        mp.evaluate(made, lambda: mp.dataset("b", "p"))


def cluster():
    return mp.ClusterSpec.from_dict(CLUSTER)


@pytest.mark.parametrize("given", ["frame", "arrow", "columns"])
def test_a_simulator_takes_what_is_in_memory(given):
    data = {"frame": PEOPLE.to_pandas(), "arrow": PEOPLE, "columns": PEOPLE.to_pydict()}[given]
    with on_simulator({"bank": {"people": data}}) as host:
        found = mp.fetch(host, mp.evaluate(host, lambda: mp.dataset("bank", "people", ["age"])))
        assert found.column("age").to_pylist() == PEOPLE.column("age").to_pylist()
        assert host.catalogue["bank"]["people"].rows == 2000


def test_a_simulator_takes_the_path_of_a_file(folder):
    with on_simulator({"bank": {"people": folder / "people.csv"}}) as host:
        assert list(host.catalogue["bank"]["people"].columns) == ["id", "age", "pay", "sex"]
        found = mp.fetch(host, mp.evaluate(host, lambda: mp.dataset("bank", "people", ["pay"])))
        assert found.num_rows == 2000


def test_a_program_is_compiled_by_a_catalogue_file(folder, tmp_path):
    path = tmp_path / "catalogue.yaml"
    path.write_text("bank:\n  people:\n    columns: {age: int64, pay: float64, sex: string}\n")
    with mp.catalogue(path):
        compiled = mp.compile(summary, cluster_spec=cluster())
    program = compiled.trace(None).program  # by the catalogue that it was compiled with
    with on_simulator({"bank": {"people": people(folder, "csv:people.csv")}}) as host:
        traced = mp.CompiledFunction(summary, cluster()).trace(host)
        assert traced.program.digest == program.digest
        assert mp.fetch(host, mp.evaluate(host, compiled))[2] == expected()[2]


def test_a_published_bound_keeps_the_digest_while_rows_grow(tmp_path):
    """And the program gets the rows that are there."""
    digests, bound = set(), {"rows": {"at_most": 3}}
    source = {"source": f"csv:{tmp_path}/a.csv", "columns": {"age": "int64"}, **bound}

    def mean():
        t = mp.dataset("bank", "people")
        return mp.device("PB")(lambda ages: ages.mean())(mp.device("PB")(to_padded)(t, rows=3))

    for rows, wanted in (("1\n3\n", 2), ("1\n3\n8\n", 4)):
        (tmp_path / "a.csv").write_text("age\n" + rows)
        with on_simulator({"bank": {"people": source}}) as host:
            digests.add(mp.CompiledFunction(mean, None).trace(host).program.digest)
            assert mp.fetch(host, mp.evaluate(host, mean)) == wanted
    assert len(digests) == 1


@pytest.mark.parametrize("host", [on_simulator, on_workers])
def test_what_is_read_is_labelled_by_data_set_and_column(folder, host):
    data = {"bank": {"people": people(folder, "parquet:people.parquet")}}

    def first():
        return mp.keep(mp.dataset("bank", "people", ["age", "pay"]))

    def second(t):
        return mp.device("PB")(lambda t: t[["age"]])(t)

    with host(data) as made:
        kept = mp.evaluate(made, first)
        labels = kept.value.labels
        assert labels[1].data_sets == ("1/people.age", "1/people.pay")
        program = mp.CompiledFunction(second, None).trace(made, kept).program
        rows = analysis.disclosure(program, labels=[labels]).rows
        assert {row.data for row in rows} == {("1/people.age", "1/people.pay")}
        assert "1/people (age, pay)" in str(analysis.disclosure(program, labels=[labels]))


def test_equal_reads_are_one():
    def twice():
        a, b = (mp.dataset("bank", "people", ["age"]) for _ in range(2))
        return mp.device("PB")(lambda a, b: a.union(b))(a, b)

    with on_simulator({"bank": {"people": PEOPLE}}) as host:
        assert mp.fetch(host, mp.evaluate(host, twice)).num_rows == 4000


@pytest.mark.parametrize("types", [None, {"age": "int64", "pay": "double", "iban": "string"}])
def test_no_columns_but_those_to_match_on_are_no_others(types):
    """Whoever asks for ``[]`` gets none of those that may be read."""
    offered = {"columns": {"age": "int64", "pay": "double"}, "match": ["iban"]}

    def keys():
        return mp.dataset("bank", "people", [], match=["iban"], type=types)

    with mp.catalogue({"bank": {"people": offered}}):
        program = mp.compile(keys, cluster_spec=cluster()).trace(None).program
    (read,) = (op for op in program.graph.walk() if op.opcode.startswith("data."))
    assert [name for name, _ in read.outputs[0].type.columns] == ["iban"]
