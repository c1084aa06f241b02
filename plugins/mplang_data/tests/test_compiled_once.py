"""What was compiled is what runs, also where a program names data sets: it is traced once."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from mplang_testing.waiting import DEADLINE

import mplang_core as mp
from mplang_core.errors import TraceError

pytestmark = pytest.mark.once  # counts how often a program is traced

PEOPLE = {"pay": [40.0, 60.0], "age": [30, 40]}
SCHEMA = {"bank": {"people": {"columns": {"pay": "float64", "age": "int64"}}}}


def cluster(nodes=({"name": "shop"}, {"name": "bank"})):
    devices = {
        "PS": {"kind": "PPU", "members": ["shop"]},
        "PB": {"kind": "PPU", "members": ["bank"]},
    }
    return mp.ClusterSpec.from_dict({"nodes": list(nodes), "devices": devices})


@contextlib.contextmanager
def simulator(people=PEOPLE):
    data = {"bank": {"people": people}} if people else None
    with mp.Simulator(cluster(), data=data, timeout=DEADLINE) as host:
        yield host


@contextlib.contextmanager
def workers(tmp_path):
    from mplang_http import LocalCluster

    (tmp_path / "people.csv").write_text("pay,age\n40.0,30\n60.0,40\n")
    source = {"source": f"csv:{tmp_path}/people.csv", **SCHEMA["bank"]["people"]}
    with LocalCluster(["shop", "bank"], data={"bank": {"people": source}}) as made:
        spec = cluster([node.model_dump() for node in made.spec.nodes])
        with mp.connect("http", spec) as host:
            yield host


class Traced:
    """Program of a data set and an argument, which counts how often it is traced."""

    def __init__(self):
        self.times = 0

    def __call__(self, x):
        self.times += 1
        pay = mp.dataset("bank", "people", ["pay"])
        return mp.device("PB")(lambda t: t.pay.sum().as_table())(pay), x

    @property
    def __name__(self):
        return "program"


def total(results):
    """Return the only number of the first result, a table."""
    (column,) = mp.fetch(results[0].ctx, results[0]).to_pydict().values()
    return column[0]


def ran(host, monkeypatch):
    """Return the digests of the programs that a host runs from now on."""
    digests = []
    run = host.evaluate

    def evaluate(program, inputs):
        digests.append(program.digest)
        return run(program, inputs)

    monkeypatch.setattr(host, "evaluate", evaluate)
    return digests


@pytest.mark.parametrize("people", [PEOPLE, None])
def test_a_program_that_names_no_data_set_is_traced_once(people, monkeypatch):
    traced = []

    def program(x):
        traced.append(x)
        return mp.put("PS", x)

    with simulator(people) as host:
        with mp.with_ctx(host):
            x = mp.put("PB", np.float64([1, 2]))
        compiled = mp.compile(program, x, cluster_spec=host.cluster_spec)
        reviewed, digests = compiled.program.digest, ran(host, monkeypatch)
        for _ in range(2):
            np.testing.assert_array_equal(mp.fetch(host, mp.evaluate(host, compiled, x)), [1, 2])
    assert len(traced) == 1
    assert digests == [reviewed] * 2
    assert mp.analysis.disclosure(compiled).sentences()
    assert compiled.program.digest == reviewed


def test_what_is_compiled_for_types_runs_for_values_of_them():
    traced = []
    kind = mp.MPType(mp.TensorType("f64", (2,)), mp.Mask.of(1))
    compiled = mp.compile(lambda x: traced.append(x) or x, kind, cluster_spec=cluster())
    with simulator() as host:
        with mp.with_ctx(host):
            x = mp.put("PB", np.float64([1, 2]))
        mp.evaluate(host, compiled, x)
        assert len(traced) == 1
        assert mp.analysis.costs(compiled)
        mp.evaluate(host, compiled, 7)  # of another type
        assert len(traced) == 2


@pytest.mark.parametrize("first", ["the host", "a catalogue"])
def test_a_program_of_a_data_set_is_traced_once(first, monkeypatch):
    program = Traced()
    compiled = mp.compile(program, cluster_spec=cluster())
    if first == "a catalogue":
        with mp.catalogue(SCHEMA):
            compiled.trace(None, 7)
    with simulator() as host:
        digests = ran(host, monkeypatch)
        for _ in range(2):
            assert total(mp.evaluate(host, compiled, 7)) == 100
    assert program.times == 1
    assert digests == [compiled.program.digest] * 2


def test_workers_run_what_was_compiled(tmp_path, monkeypatch):
    program = Traced()
    with workers(tmp_path) as host:
        with mp.catalogue(SCHEMA):
            compiled = mp.compile(program, 7, cluster_spec=host.cluster_spec)
        reviewed, digests = compiled.program.digest, ran(host, monkeypatch)
        for mode in ("standard", "launch"):
            assert total(mp.evaluate(host, compiled, 7, mode=mode)) == 100
    assert program.times == 1
    assert digests == [reviewed] * 2
    assert compiled.program.digest == reviewed
    assert mp.analysis.disclosure(compiled).sentences()


def test_a_data_set_without_a_schema_is_named_when_it_is_compiled():
    with pytest.raises(TraceError, match="'people' of bank: its schema is not known.*catalogue"):
        mp.compile(Traced(), 7, cluster_spec=cluster())
    compiled = mp.compile(Traced(), cluster_spec=cluster())
    with simulator() as host:
        reviewed = compiled.trace(host, 7).program
        mp.evaluate(host, compiled, 7)
    assert compiled.program is reviewed


def test_another_schema_at_the_host_is_an_error_and_no_other_program():
    program = Traced()
    compiled = mp.compile(program, cluster_spec=cluster())
    with simulator() as host:
        mp.evaluate(host, compiled, 7)
    with simulator({"pay": [40, 60]}) as host:
        with pytest.raises(TraceError, match=r'people.*"pay", "double".*"pay", "int64".*again'):
            mp.evaluate(host, compiled, 7)
        assert total(mp.evaluate(host, mp.compile(program), 7)) == 100
    with simulator(None) as host, pytest.raises(TraceError, match="its schema is not known"):
        mp.evaluate(host, compiled, 7)
    assert program.times == 2


def test_what_a_program_does_not_read_may_differ():
    program = Traced()
    compiled = mp.compile(program, cluster_spec=cluster())
    for people in (PEOPLE, {**PEOPLE, "sex": ["f", "m"]}):
        with simulator(people) as host:
            mp.evaluate(host, compiled, 7)
            mp.evaluate(host, lambda: mp.store(mp.dataset("bank", "people"), "copy"))
            mp.evaluate(host, compiled, 7)  # what is stored meanwhile is in the catalogue, too
    assert program.times == 1


def test_what_was_stored_as_another_type_is_an_error():
    def twice():
        return mp.device("PB")(lambda x: x * 2)(mp.load("PB", "numbers"))

    compiled = mp.compile(twice, cluster_spec=cluster())
    with simulator() as host:
        mp.evaluate(host, lambda: mp.store(mp.put("PB", np.float64([1, 2])), "numbers"))
        mp.evaluate(host, compiled)
        mp.evaluate(host, lambda: mp.store(mp.put("PB", np.float64([3, 4])), "numbers"))
        np.testing.assert_array_equal(mp.fetch(host, mp.evaluate(host, compiled)), [6, 8])
        mp.evaluate(host, lambda: mp.store(mp.put("PB", np.float64([1, 2, 3])), "numbers"))
        with pytest.raises(TraceError, match=r"stored as 'numbers' on PB.*f64\[2\].*f64\[3\]"):
            mp.evaluate(host, compiled)


def test_a_function_called_on_a_host_knows_what_is_stored_now():
    """Its trace is cached at the host, whose catalogue changes with what programs store."""

    @mp.builtin_function
    def numbers():
        return mp.load("PB", "numbers")

    with simulator() as host:
        for size in (2, 3):
            mp.evaluate(host, lambda n=size: mp.store(mp.put("PB", np.arange(n)), "numbers"))
            with mp.with_ctx(host):
                assert mp.fetch(host, numbers()).shape == (size,)


def test_another_cluster_of_as_many_parties_gets_a_program_of_its_own():
    with_spu = mp.ClusterSpec.simple(2)
    plain = mp.ClusterSpec.from_dict(
        {
            "nodes": [{"name": "a"}, {"name": "b"}],
            "devices": {
                "P0": {"kind": "PPU", "members": ["b"]}  # the other party
            },
        }
    )
    compiled = mp.compile(lambda: mp.put("P0", 1))
    masks = []
    for each in (with_spu, plain):
        with mp.Simulator(each) as host:
            masks.append(mp.evaluate(host, compiled).pmask)
    assert list(map(list, masks)) == [[0], [1]]
