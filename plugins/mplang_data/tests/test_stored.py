"""Results that stay: stored, loaded in a later session, replaced and removed."""

from __future__ import annotations

import contextlib
import functools

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mplang_data.stored.entry import skeleton, unflatten
from mplang_tables import to_tensor
from mplang_testing.waiting import DEADLINE

import mplang_core as mp
from mplang_core import analysis
from mplang_core.errors import AdmissionError, PartyError, TraceError

NAMES = ["bank", "shop", "clinic"]
ROWS = {"age": [17.0, 44.0, 71.0]}


class Place:
    """Where sessions are opened one after the other, over the same sinks and data."""

    def __init__(self, folder, kind):
        self.folder, self.kind, self.workers = folder, kind, None
        pq.write_table(pa.table(ROWS), folder / "people.parquet")

    @contextlib.contextmanager
    def session(self):
        if self.kind != "workers":
            spec = mp.ClusterSpec([{"name": name} for name in NAMES])
            data = {"bank": {"people": ROWS}}
            options = {"mode": self.kind, "data": data, "sink": self.folder / "sinks"}
            with mp.Simulator(spec, timeout=DEADLINE, **options) as host:
                yield host
            return
        from mplang_http import LocalCluster

        source = f"parquet:{self.folder}/people.parquet"
        data = {"bank": {"people": {"source": source, "columns": {"age": "float64"}}}}
        options = {"data": data, "sink": self.folder, "mode": "production"}
        with LocalCluster(NAMES, **options) as workers, mp.connect("http", workers.spec) as host:
            yield host

    def file(self, party, name):
        owner = "local"
        (found,) = self.folder.glob(f"sinks/{party}/{owner}/{name}/current/value.*")
        return found


@pytest.fixture(params=["standard", "launch", "workers"])
def place(request, tmp_path):
    return Place(tmp_path, request.param)


def shared_ages():
    ages = mp.device("P0")(to_tensor)(mp.dataset("bank", "people"), rows=3)
    return mp.seal(mp.device("P0")(lambda x: x[:, 0])(ages))


def train():
    ages = shared_ages()
    mp.store({"w": ages, "b": [mp.device("SP0")(jnp.mean)(ages)]}, "model")
    mp.store(mp.dataset("bank", "people"), "copy")
    mp.store(mp.put("P1", np.float32([1, 2])), "numbers")


def score():
    model = mp.load("SP0", "model")
    return mp.reveal(mp.device("SP0")(lambda w, b: w - b)(model["w"], model["b"][0]))


def test_a_model_in_shares_outlives_its_session(place):
    with place.session() as host:
        mp.evaluate(host, train)
        assert sorted(host.catalogue.stored["shop"]) == ["model", "numbers"]
    with place.session() as host:
        found = mp.evaluate(host, score)
        np.testing.assert_allclose(mp.fetch(host, found)[0], [-27, 0, 27], atol=1e-3)
        (told,) = {label.data_sets for label in found.value.labels.values()}
        assert told == ("0/people.age",)
        rows = analysis.disclosure(
            mp.compile(lambda x: mp.put("P1", x), found.type, cluster_spec=host.cluster_spec),
            labels=analysis.labels_of(found),
        ).rows
        assert {row.data for row in rows} == {("0/people.age",)}


def test_plain_results_are_files_of_their_owner(place):
    with place.session() as host:
        mp.evaluate(host, train)
        copy, numbers = mp.evaluate(
            host, lambda: (mp.load("bank", "copy"), mp.load("P1", "numbers"))
        )
        assert mp.fetch(host, copy).to_pydict() == ROWS
        np.testing.assert_array_equal(mp.fetch(host, numbers), np.float32([1, 2]))
    assert pq.read_table(place.file("bank", "copy")).to_pydict() == ROWS
    np.testing.assert_array_equal(np.load(place.file("shop", "numbers")), [1, 2])


def test_values_are_replaced_and_removed(place):
    def put(number):
        return mp.compile(lambda: mp.store(mp.put("P2", number), "count"))

    with place.session() as host:
        for number in (1, 2, 3.5):
            mp.evaluate(host, put(number))
        assert mp.fetch(host, mp.evaluate(host, lambda: mp.load("P2", "count"))) == 3.5
        mp.evaluate(host, lambda: mp.remove("P2", "count"))
        mp.evaluate(host, lambda: mp.remove("P2", "count"))  # nothing is there any more
        with pytest.raises(TraceError, match="test_stored.py.*nothing is known to be stored"):
            mp.evaluate(host, lambda: mp.load("P2", "count"))
        kind = mp.TensorType("f64")
        with pytest.raises((AdmissionError, PartyError), match="nothing is stored as 'count' at c"):
            mp.evaluate(host, lambda: mp.load("P2", "count", type=kind))
    assert not list(place.folder.glob("sinks/clinic/local/*"))


@pytest.mark.once  # each run goes on where the last one was
def test_a_long_training_is_resumed_where_it_was(place):
    def step(w):
        return w * 0.5

    def begin():
        mp.store(mp.seal(np.float64([64.0, 32.0])), "weights")

    def go_on():
        weights = mp.device("SP0")(step)(mp.load("SP0", "weights"))
        mp.store(weights, "weights")

    with place.session() as host:
        mp.evaluate(host, begin)
        mp.evaluate(host, go_on)
    with place.session() as host:
        mp.evaluate(host, go_on)
        weights = mp.fetch(host, mp.evaluate(host, lambda: mp.reveal(mp.load("SP0", "weights"))))
    np.testing.assert_allclose(weights[0], [16, 8], atol=1e-3)


@pytest.mark.once
def test_stored_shares_keep_their_field(tmp_path):
    """Those of ``field: auto`` are of FM128, as loading and storing programs are; others stay."""
    x = np.int32([1, 5, 9])

    def above(name):
        loaded = mp.load("SP0", name)
        more = mp.device("SP0")(lambda x, y: x > y)(loaded, mp.seal(mp.put("P1", np.int32(4))))
        return mp.reveal(more, to="P0")

    def stored(name):
        mp.store(mp.seal(mp.put("P0", x)), name)

    def session(field):
        spu = {"kind": "SPU", "members": [0, 1, 2], "config": {"field": field}}
        simple = mp.ClusterSpec.simple(3)
        spec = mp.ClusterSpec(simple.nodes, {**simple.devices, "SP0": spu})
        return mp.Simulator(spec, timeout=DEADLINE, sink=tmp_path)

    for field in ("auto", "FM64"):
        with session(field) as host:
            mp.evaluate(host, functools.partial(stored, field))
    with session("auto") as host:
        assert list(mp.fetch(host, mp.evaluate(host, lambda: above("auto")))) == [0, 1, 1]
        revealed = mp.evaluate(host, lambda: mp.reveal(mp.load("SP0", "FM64"), to="P0"))
        assert list(mp.fetch(host, revealed)) == [1, 5, 9]
        with pytest.raises(TraceError, match='test_stored.*"FM64", 18>, shared in another way'):
            mp.evaluate(host, lambda: above("FM64"))
    with session("FM128") as host:  # as those of auto are
        assert list(mp.fetch(host, mp.evaluate(host, lambda: above("auto")))) == [0, 1, 1]


def test_a_loop_stores_at_each_turn(place):
    world = mp.Mask.all(len(NAMES))

    def program():
        def step(i):
            mp.store(i, "turn")
            return mp.simp.pcall_static(world, lambda i: i + 1, i)

        start = mp.constant(np.int64(0))
        return mp.while_loop(lambda i: mp.simp.pcall_static(world, lambda i: i < 5, i), step, start)

    with place.session() as host:
        mp.evaluate(host, program)
        assert mp.fetch(host, mp.evaluate(host, lambda: mp.load("P1", "turn"))) == 4


VALUES = {
    "bool": np.array([True, False]),
    "scalar": np.float32(1.5),
    "empty": np.zeros((0, 3), np.int16),
    "complex": np.array([1 + 2j]),
    "bfloat16": np.array([1.5, -2], ml_dtypes.bfloat16),
    "cube": np.arange(24, dtype=np.uint8).reshape(2, 3, 4),
}
TABLES = {
    "nulls": pa.table({"x": pa.array([1, None]), "s": pa.array(["ä", None])}),
    "no-rows": pa.table({"x": pa.array([], pa.float32())}),
    "moments": pa.table({"t": pa.array([0, 1], pa.timestamp("us"))}),
    "seconds": pa.table({"t": pa.array([0, 1], pa.timestamp("s"))}),
}


def test_all_kinds_of_values_come_back_as_they_were(place):
    with place.session() as host:
        with mp.with_ctx(host):
            put = {name: mp.put("P0", value) for name, value in {**VALUES, **TABLES}.items()}

        def program(**given):
            for name, value in given.items():
                mp.store(value, f"v-{name}")
            mp.store(given, "everything")

        mp.evaluate(host, program, **put)
    with place.session() as host:
        for name, value in VALUES.items():
            found = mp.fetch(host, mp.evaluate(host, lambda name=name: mp.load("P0", f"v-{name}")))
            assert found.dtype == value.dtype
            np.testing.assert_array_equal(found, value)
        everything = mp.fetch(host, mp.evaluate(host, lambda: mp.load("P0", "everything")))
        assert everything.keys() == put.keys()
        for name, table in TABLES.items():
            assert everything[name].equals(table)


@pytest.mark.once  # each run makes another key
def test_keys_are_stored_encrypted(place):
    from mplang_crypto import decrypt, encrypt, keygen

    def make():
        key = mp.device("P0")(keygen)()
        mp.store(key, "key")
        return mp.device("P0")(encrypt)(mp.put("P0", np.int64([7])), key)

    with place.session() as host:
        sealed = mp.evaluate(host, lambda: mp.keep(make()))
        opened = mp.evaluate(
            host, lambda sealed: mp.device("P0")(decrypt)(sealed, mp.load("P0", "key")), sealed
        )
        assert mp.fetch(host, opened) == [7]
    assert place.file("bank", "key").suffix == ".sealed"


@pytest.mark.parametrize("wrong", ["../x", "", "a/b", ".hidden", "a" * 64, 7, None])
def test_a_name_is_no_path(wrong):
    cluster = mp.ClusterSpec.simple(1)
    for use in (
        lambda: mp.store(mp.put("P0", 1), wrong),
        lambda: mp.load("P0", wrong, type=mp.TensorType("i64")),
        lambda: mp.remove("P0", wrong),
    ):
        with pytest.raises(TraceError, match="test_stored.py.*not a name of a data set"):
            mp.trace(mp.TraceContext(cluster), use)


def deep(depth):
    return [deep(depth - 1)] if depth else mp.put("P0", 1)


@pytest.mark.parametrize(
    ("use", "told"),
    [
        (lambda: mp.store(3, "x"), "got int"),
        (lambda: mp.store(None, "x"), "got NoneType"),
        (lambda: mp.store([], "x"), "1 to 64 values"),
        (lambda: mp.store({1: mp.put("P0", 1)}, "x"), "1 is not a name"),
        (lambda: mp.store([mp.put("P0", 1), mp.put("P1", 1)], "x"), "at different parties"),
        (lambda: mp.load("P9", "x"), "no device or party 'P9'"),
        (lambda: mp.load("P0", "x"), "nothing is known to be stored there"),
        (lambda: mp.load("P0", "x", type="f64"), "got str"),
        (lambda: mp.load([], "x"), "named by a text"),
        (lambda: mp.remove(None, "x"), "named by a text"),
        (lambda: mp.store([mp.seal(1.5), mp.constant(1)], "x"), "plain values under another one"),
        (lambda: mp.store(deep(20), "x"), "nested more than 16 deep"),
    ],
)
def test_wrong_uses_are_told_with_their_line(use, told):
    with pytest.raises(TraceError, match=f"test_stored.py.*{told}"):
        mp.trace(mp.TraceContext(mp.ClusterSpec.simple(2)), use)


def test_what_a_program_loads_was_there_before_it():
    def program():
        mp.store(mp.put("P0", 1), "x")
        return mp.load("P0", "x", type=mp.TensorType("i64"))

    with pytest.raises(TraceError, match="this program has stored 'x' at .*test_stored.py"):
        mp.trace(mp.TraceContext(mp.ClusterSpec.simple(1)), program)


def test_shares_are_no_values_of_a_party(place):
    with place.session() as host:
        mp.evaluate(host, lambda: mp.store(mp.seal([1.5]), "secret"))
        with pytest.raises(TraceError, match="not a value of P0"):
            mp.evaluate(host, lambda: mp.load("P0", "secret"))


def test_nests_are_put_together_again():
    nest = {"w": [1, (2, {"x": 3})], "b": ()}
    text, leaves = skeleton(nest, lambda each: isinstance(each, int))
    assert leaves == [1, 2, 3]
    assert unflatten(text, ["a", "b", "c"]) == {"w": ["a", ("b", {"x": "c"})], "b": ()}


def test_whether_a_store_fails_is_disclosed_as_a_sink_takes_so_many_bytes():
    """A table has as many as its data say, so that a full sink tells about them."""
    kind = mp.MPType(mp.TableType((("age", "double"),)), mp.Mask.of(0))

    def program(people):
        mp.store(people, "people")

    spec = mp.ClusterSpec.simple(2)
    table = analysis.disclosure(mp.compile(program, kind, cluster_spec=spec))
    assert [(row.what, row.discloses) for row in table.of(0)] == [("failure", (0,))]
