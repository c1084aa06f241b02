"""Programs on a ``GPU``: functions of arrays and of tables, and ways to PPU and SPU and back."""

from __future__ import annotations

import re
from pathlib import Path

import jax.numpy as jnp
import mplang_core as mp
import numpy as np
import pyarrow as pa
import pytest
from mplang_core.ext import plugin_manager
from mplang_http import LocalCluster
from mplang_tables import to_tensor

README = Path(__file__).parents[1] / "README.md"


def with_devices(nodes):
    """Return a cluster of two parties, each with a PPU and a GPU, and an SPU of both."""
    devices = {f"P{i}": {"kind": "PPU", "members": [i]} for i in range(2)}
    devices |= {f"G{i}": {"kind": "GPU", "members": [i]} for i in range(2)}
    devices["SP0"] = {
        "kind": "SPU",
        "members": [0, 1],
        "config": {"protocol": "SEMI2K"},  # for debugging, which is what tests are
    }
    return mp.ClusterSpec(nodes, devices)


@pytest.fixture(scope="module", params=["simulator", "http"])
def host(request):
    if request.param == "simulator":
        with mp.Simulator(with_devices([{}, {}])) as made:
            yield made
        return
    with LocalCluster(2, insecure=True) as workers:
        nodes = [{"name": node.name, "address": node.address} for node in workers.spec.nodes]
        with mp.connect("http", with_devices(nodes)) as made:
            yield made


@pytest.fixture(params=["standard", "launch"])
def mode(request):
    return request.param


def test_functions_of_arrays_and_of_tables_run_there(host, mode):
    def program(x, people):
        squares = mp.device("G0")(lambda x: jnp.sum(x * x))(mp.put("G0", x))
        adults = mp.device("G1")(lambda t: t.filter(t.age >= 18))(mp.put("G1", people))
        return squares, adults

    with mp.with_ctx(host):
        x = mp.put("G0", np.float32([3, 4]))
        people = mp.put("G1", pa.table({"name": ["Ann", "Bo"], "age": [17, 44]}))
    squares, adults = mp.fetch(host, mp.evaluate(host, program, x, people, mode=mode))
    assert squares == 25
    assert adults.to_pylist() == [{"name": "Bo", "age": 44}]


def test_values_go_to_an_spu_and_to_ppus_and_back(host, mode):
    def program(x, y):
        total = mp.device("SP0")(lambda x, y: x + y)(x, y)  # from two GPUs, without a word
        back = mp.reveal(total, to="G1")
        there = mp.put("P0", mp.device("G1")(lambda v: v * 2)(back))
        return mp.put("G0", there), mp.reveal(back)

    with mp.with_ctx(host):
        x, y = mp.put("G0", np.float32([1, 2])), mp.put("G1", np.float32([10, 20]))
    doubled, total = mp.fetch(host, mp.evaluate(host, program, x, y, mode=mode))
    np.testing.assert_allclose(doubled, [22, 44], atol=1e-3)
    np.testing.assert_allclose(total, [[11, 22]] * 2, atol=1e-3)


def test_ops_and_operators_run_there(host):
    def program(table):
        return mp.device("G0")(to_tensor)(table, rows=2) + mp.put("G0", 1)

    with mp.with_ctx(host):
        table = mp.put("G0", pa.table({"age": [1, 2]}))
    assert mp.fetch(host, mp.evaluate(host, program, table)).ravel().tolist() == [2, 3]


def test_nothing_leaves_a_party_without_a_word(host):
    def to_another():
        return mp.device("G1")(lambda x: x)(mp.put("G0", 1))

    with pytest.raises(mp.errors.DisclosureError, match=r"mp\.put\('G1', x\)"):
        mp.evaluate(host, to_another)

    def from_an_spu():
        return mp.put("G1", mp.seal(mp.put("G0", 1)))

    with pytest.raises(mp.errors.DisclosureError, match=r"mp\.reveal\(x, to='G1'\)"):
        mp.evaluate(host, from_an_spu)


def test_between_devices_of_one_party_nothing_is_sent():
    def program(x):
        there = mp.device("G0")(lambda x: x + 1)(x)  # from the PPU of the same party
        return mp.device("P0")(lambda x: x * 2)(there)

    kind = mp.MPType(mp.TensorType("f32", (2,)), mp.Mask.of(0))
    ctx = mp.TraceContext(with_devices([{}, {}]))
    traced = mp.trace(ctx, lambda x: program(mp.put("P0", x)), kind)
    assert {op.opcode for op in traced.program.graph.walk()} == {"simp.pcall_static", "jax.run"}


def test_two_devices_of_one_party_are_not_chosen_from():
    def program(x):
        return mp.put("P0", x) + mp.put("G0", x)

    kind = mp.MPType(mp.TensorType("f32", (2,)), mp.Mask.of(0))
    with pytest.raises(mp.errors.TraceError, match=r"P0, G0 may run it; name one.*'P0'"):
        mp.trace(mp.TraceContext(with_devices([{}, {}])), program, kind)


def test_a_data_set_is_read_where_a_party_has_a_gpu_alone():
    cluster = mp.ClusterSpec([{"name": "bank"}], {"G": {"kind": "GPU", "members": ["bank"]}})

    def program():
        ages = mp.device("G")(lambda t: t.filter(t.age > 20))(mp.dataset("bank", "people"))
        mp.store(ages, "grown")
        return ages

    with mp.Simulator(cluster, data={"bank": {"people": {"age": [17, 44]}}}) as sim:
        assert mp.fetch(sim, mp.evaluate(sim, program)).to_pylist() == [{"age": 44}]
        kept = mp.evaluate(sim, lambda: mp.load("bank", "grown"))
        assert mp.fetch(sim, kept).to_pylist() == [{"age": 44}]


def test_the_doctor_tells_what_it_runs_on():
    mp.registry.list_ops()
    record = next(each for each in plugin_manager.records() if each.distribution == "mplang-gpu")
    assert record.status == "loaded"
    import mplang_gpu

    (check,) = mplang_gpu.mplang_doctor()
    assert check.ok
    assert check.detail.startswith(("cpu: the processor", "gpu: an acc", "cuda: an acc"))


def test_the_readme_runs():
    namespace = {"__name__": "__main__"}
    for block in re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.M | re.S):
        exec(block, namespace)
