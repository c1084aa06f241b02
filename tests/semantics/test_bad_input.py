"""What users get wrong, and the error of our own tree that tells them. JAX and SPU included."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import toy
from mplang_testing.waiting import DEADLINE, NEVER, in_time, wait_until

import mplang_core as mp
from mplang_core.errors import (
    ConfigError,
    DisclosureError,
    FeCapabilityError,
    FeConfigError,
    KernelError,
    MPLangError,
    PartyError,
    PluginLoadError,
    TraceError,
)

CLUSTER = mp.ClusterSpec.simple(2)


def trace(program, *args):
    return mp.trace(mp.TraceContext(CLUSTER), program, *args)


# -- descriptions


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"nodes": [{}], "devices": {"P0": {"kind": "PPU", "members": ["bob"]}}}, "no node 'bob'"),
        ({"nodes": [{}], "devices": {"P0": {"kind": "PPU", "members": [1]}}}, "no node 1"),
        ({"nodes": [{}], "devices": {"P0": {"kind": "XPU", "members": [0]}}}, "P0.kind.*'XPU'"),
        ({"nodes": [{}], "devices": {"P0": {"kind": "PPU", "members": []}}}, "P0.members"),
        (
            {"nodes": [{}, {}], "devices": {"P": {"kind": "PPU", "members": [0, 1]}}},
            "has 1 members",
        ),
        ({"nodes": [{}], "devices": {"P0": {"kind": "PPU", "member": [0]}}}, "P0.member"),
        ({"nodes": []}, "nodes"),
        ({"nodes": [{"rank": 1}]}, "ranks count from 0"),
        ({"nodes": [{"rank": -1}]}, "rank"),
        ({"nodes": [{"name": "a"}, {"name": "a"}]}, "names are unique"),
        ({"nodes": [{"nmae": "a"}]}, "nmae"),
        ({"nodes": [{}], "device": {}}, "device"),
        ({"nodes": 3}, "nodes"),
        ({"nodes": [3]}, "nodes"),
        (
            {"nodes": [{}], "devices": {"P0": {"kind": "PPU", "members": [0], "config": {"a": 1}}}},
            "a",
        ),
        (["nodes"], "expected a mapping"),
    ],
)
def test_a_wrong_cluster_names_the_field(description, message):
    with pytest.raises(ConfigError, match=message):
        mp.ClusterSpec.from_dict(description)


def test_a_wrong_file_names_the_file(tmp_path):
    (tmp_path / "c.yaml").write_text("nodes: [")
    with pytest.raises(ConfigError, match="c.yaml"):
        mp.ClusterSpec.from_yaml(tmp_path / "c.yaml")
    with pytest.raises(ConfigError, match="none.yaml"):
        mp.ClusterSpec.from_yaml(tmp_path / "none.yaml")


def test_a_cluster_from_a_file(tmp_path):
    (tmp_path / "c.yaml").write_text(
        "nodes:\n- {name: a, endpoint: 'localhost:1'}\n- {name: b}\n"
        "devices:\n  PB: {kind: PPU, members: [b]}\n"
    )
    cluster = mp.ClusterSpec.from_yaml(tmp_path / "c.yaml")
    assert cluster.nodes[0].address == "localhost:1"
    assert cluster.device("PB").mask == mp.Mask(0b10)


# -- devices


def test_an_unknown_device():
    with pytest.raises(ConfigError, match="no device 'P7'; this cluster has P0, P1, SP0"):
        trace(lambda: mp.device("P7")(lambda x: x)(mp.constant(1)))


def test_the_name_of_a_party_where_that_of_a_device_is_meant():
    cluster = mp.ClusterSpec([{"name": "bank"}, {"name": "shop"}])
    with pytest.raises(ConfigError, match="no device 'shop'; .*the device of party shop is P1"):
        cluster.device("shop")


def test_a_plain_value_of_one_party_at_another_without_put():
    def program():
        return mp.device("P1")(lambda x: x)(mp.put("P0", 1))

    with pytest.raises(DisclosureError, match=r"test_bad_input.py:\d+.*write mp.put\('P1', x\)"):
        trace(program)


def test_a_plain_value_of_parties_at_another_without_put():
    def program():
        return mp.device("P1")(lambda x: x)(mp.constant(1, parties=0))

    with pytest.raises(DisclosureError, match="would disclose it"):
        trace(program)


def test_plain_values_of_two_parties_and_no_protected_device():
    devices = {f"P{i}": {"kind": "PPU", "members": [i]} for i in range(2)}
    cluster = mp.ClusterSpec.from_dict({"nodes": [{}, {}], "devices": devices})
    with pytest.raises(DisclosureError, match="the arguments are on P0, P1"):
        mp.trace(mp.TraceContext(cluster), lambda: mp.put("P0", 1) + mp.put("P1", 2))


def test_no_device_can_be_inferred():
    with pytest.raises(TraceError, match="none can be inferred"):
        trace(lambda: mp.device()(lambda x: x)(mp.constant(1)))


def test_seal_on_a_plain_device():
    with pytest.raises(TraceError, match="holds values in plain"):
        trace(lambda: mp.seal(1, "P0"))


def test_seal_without_a_protected_device():
    with pytest.raises(TraceError, match="which device is to protect it"):
        mp.trace(mp.TraceContext(mp.ClusterSpec.simple(1)), lambda: mp.seal(1))


def test_put_of_what_is_no_tensor():
    with pytest.raises(TraceError, match=r"test_bad_input.py:\d+: it is not a literal"):
        trace(lambda: mp.put("P0", "text"))


def test_no_context():
    with pytest.raises(TraceError, match="no context to work in"):
        mp.constant(1)


# -- values of other contexts


def test_a_value_of_another_simulator(simulate):
    one, other = simulate(2), simulate(2)
    x = mp.evaluate(one, lambda: mp.constant(1))
    with pytest.raises(TraceError, match="belongs to another context"):
        mp.fetch(other, x)
    with pytest.raises(TraceError, match="belongs to another context"):
        mp.evaluate(other, lambda y: y, x)
    with pytest.raises(TraceError, match="belongs to another context"):
        mp.evaluate(other, lambda: mp.invoke(toy.scale, x))


def test_a_value_of_another_trace():
    outer = mp.TraceContext(CLUSTER)
    x = mp.constant(outer, 1)
    with pytest.raises(TraceError, match="belongs to another context"):
        trace(lambda: mp.invoke(toy.scale, x))


def test_fetch_of_what_is_no_value(simulate):
    with pytest.raises(TraceError, match="got Simulator, int"):
        mp.fetch(simulate(2), 3)


# -- arguments


def test_other_arguments_than_it_was_traced_for(simulate):
    sim = simulate(2)
    tfn = mp.trace(mp.TraceContext(sim.cluster_spec), lambda x: x, np.zeros(3))
    with pytest.raises(TraceError, match=r"traced as f64\[3\].*got f64\[4\]"):
        mp.evaluate(sim, tfn, np.zeros(4))
    with pytest.raises(TraceError, match="nested as"):
        mp.evaluate(sim, tfn, (np.zeros(3),))


def test_another_cluster_than_it_was_compiled_for(simulate):
    program = mp.compile(lambda x: x, 1, cluster_spec=CLUSTER)
    with pytest.raises(TraceError, match="compiled for another cluster"):
        mp.evaluate(simulate(3), program, 1)


def test_compile_without_a_cluster():
    with pytest.raises(TraceError, match="compile needs the cluster"):
        mp.compile(lambda x: x, 1)


def test_an_unknown_backend_or_mode(simulate):
    with pytest.raises(PluginLoadError, match="no backend 'pigeon'; there are: .*simulator"):
        mp.connect("pigeon", CLUSTER)
    with pytest.raises(PluginLoadError, match="no backend 'pigeon'"):
        mp.compile(lambda x: x, backend="pigeon")
    with pytest.raises(ValueError, match="standard.*launch"):
        mp.evaluate(simulate(2), lambda: mp.constant(1), mode="lunch")


# -- feops


def test_a_wrong_field_of_a_feop():
    with pytest.raises(FeConfigError, match=r"'toy.x'.*'verison'"):
        mp.feop(name="toy.x", verison="1")
    with pytest.raises(FeConfigError, match="execution_model"):
        mp.feop(name="toy.x", execution_model="everywhere")
    with pytest.raises(FeConfigError, match="the name starts with the family"):
        mp.feop(name="toy.x", family="joy")


def test_an_unknown_feop():
    with pytest.raises(PluginLoadError, match="no plugin for the family 'quantum' is installed"):
        mp.registry.get("quantum.entangle")
    with pytest.raises(PluginLoadError, match="did you mean 'toy.scale'"):
        mp.registry.get("toy.scales")


def test_a_literal_where_a_value_is_due():
    with pytest.raises(TypeError, match="multi-party values by position"):
        trace(lambda: toy.add(mp.constant(1), 2))


@pytest.mark.parametrize("attrs", [{"by": "x"}, {"bye": 1}, {"by": True}])
def test_a_wrong_attribute(attrs):
    with pytest.raises(TypeError, match="attribute"):
        trace(lambda: mp.invoke(toy.scale, mp.constant(1), **attrs))


def test_a_function_that_no_frontend_takes(simulate):
    table = mp.MPType(mp.TableType((("id", "int64"),)), mp.Mask(0b1))
    with pytest.raises(FeCapabilityError, match="no frontend compiles"):
        trace(lambda x: mp.device("P0")(lambda t, n: t)(x, mp.put("P0", 1)), table)


# -- failures of a party


def failing(parties):
    def program():
        x = mp.simp.pcall_static(parties, toy.rank)
        y = mp.simp.pcall_static(parties, toy.fail_at, x, party=1)
        return mp.pshfl_s(y, [0, 2], [1, 1])

    return program


def test_a_kernel_that_raises_at_one_of_three(simulate, mode):
    sim = simulate(3, timeout=NEVER)
    with in_time(), pytest.raises(PartyError) as error:
        mp.evaluate(sim, failing((0, 1, 2)), mode=mode)
    assert error.value.rank == 1
    assert error.value.op == "toy.fail_at"
    assert error.value.location.startswith("test_bad_input.py:")
    assert "party 1 failed in toy.fail_at at test_bad_input.py" in str(error.value)
    assert "secret" not in str(error.value)
    assert isinstance(error.value.__cause__, RuntimeError)
    # and the simulator is as good as new
    assert mp.fetch(sim, mp.evaluate(sim, lambda: mp.constant(1), mode=mode)) == [1, 1, 1]


def test_after_a_failure_all_threads_end(simulate):
    before = set(threading.enumerate())
    sim = simulate(3, timeout=DEADLINE)
    for _ in range(3):
        with pytest.raises(PartyError):
            mp.evaluate(sim, failing((0, 1, 2)), mode="launch")
    sim.close()
    wait_until(lambda: not set(threading.enumerate()) - before, "that all threads have ended")


def test_a_kernel_that_breaks_its_promise(simulate, mode):
    program = lambda: mp.invoke(toy.lie, mp.constant(1))  # noqa: E731
    with pytest.raises(PartyError, match=r"expected i64\[\], got f64\[99\]") as error:
        mp.evaluate(simulate(2), program, mode=mode)
    assert error.value.op == "toy.lie"


def test_a_message_that_never_comes(simulate):
    """Only one party runs a shuffle: it must not wait for ever."""
    sim = simulate(2, timeout=0.2)

    @mp.kernel("toy.deaf")
    def _deaf(ctx):
        return ctx.interpreter.communicator.recv(1 - ctx.interpreter.rank, ctx.key)

    @mp.simple_op("toy.deaf")
    def deaf() -> mp.TensorType:
        """Waits in vain."""
        return mp.TensorType("i64")

    with pytest.raises(PartyError, match=r"waited 0\.2 s for a message"):
        mp.evaluate(sim, lambda: mp.simp.pcall_static((0,), deaf))


def test_an_op_without_a_kernel(simulate):
    @mp.simple_op("toy.idle")
    def idle() -> mp.TensorType:
        """Has no kernel."""
        return mp.TensorType("i64")

    with pytest.raises((PartyError, KernelError), match="no worker kernel for it"):
        mp.evaluate(simulate(2), lambda: mp.invoke(idle))


def test_a_closed_simulator(simulate):
    sim = simulate(2)
    sim.close()
    sim.close()
    with pytest.raises(MPLangError, match="closed"):
        mp.evaluate(sim, lambda: mp.constant(1))


def test_every_error_is_of_one_tree():
    classes = {name: kind for name, kind in vars(mp.errors).items() if isinstance(kind, type)}
    found = {n: kind for n, kind in classes.items() if kind.__module__ == mp.errors.__name__}
    assert len(found) > 25
    for name, kind in found.items():
        assert issubclass(kind, UserWarning if name.endswith("Warning") else MPLangError)


# -- plausible slips, each told in our own tree


@pytest.mark.parametrize(
    "slip",
    [
        lambda sim: mp.evaluate(sim, lambda x: x, np.array(["a"])),
        lambda sim: mp.evaluate(sim, lambda x: x, 2**70),
        lambda sim: mp.evaluate(sim, lambda x: x, [[1, 2], [3]]),
        lambda sim: mp.evaluate(sim, lambda: mp.constant()),
        lambda sim: mp.evaluate(sim, lambda: mp.constant(1, 2)),
        lambda sim: mp.evaluate(sim, lambda: mp.constant(1, parties="P0")),
        lambda sim: mp.evaluate(sim, lambda: mp.constant(1, parties=-1)),
        lambda sim: mp.evaluate(sim, lambda: mp.simp.pcall_static("P0", toy.rank)),
        lambda sim: mp.evaluate(sim, lambda: mp.pshfl_s(mp.constant(1), "x", 0)),
        lambda sim: mp.evaluate(sim, lambda: mp.pconv(5)),
        lambda sim: mp.evaluate(sim, lambda: mp.pconv(mp.constant(1))),
        lambda sim: mp.evaluate(sim, lambda: mp.pshfl(1, 2)),
        lambda sim: mp.evaluate(sim, lambda: mp.peval(toy.rank().pfunc, mp.constant(1))),
        lambda sim: mp.evaluate(sim, lambda: mp.peval(toy.rank().pfunc, [1.0])),
        lambda sim: mp.evaluate(sim, lambda: mp.invoke(toy.scale, 1)),
        lambda sim: mp.evaluate(sim, lambda: mp.invoke(toy.scale, mp.constant(1), by=2**70)),
        lambda sim: mp.evaluate(sim.cluster_spec, lambda: mp.constant(1)),
        lambda sim: mp.evaluate(sim, lambda: mp.constant(1), mode="zz"),
        lambda sim: mp.compile(5, cluster_spec=sim.cluster_spec),
        lambda sim: mp.Simulator(3),
        lambda sim: mp.Simulator(sim.cluster_spec, mode="zz"),
        lambda sim: mp.Simulator(sim.cluster_spec, timeout=0),
        lambda sim: mp.ClusterSpec.from_dict({"nodes": [{1: 2}]}),
        lambda sim: mp.parse('program "p" on {0} () { return } tensor<>'),
        lambda sim: mp.parse(None),
        lambda sim: mp.parse(b"program"),
        lambda sim: mp.fetch(sim, mp.evaluate),
    ],
)
def test_slips_are_told_in_our_own_tree(simulate, slip):
    with pytest.raises(MPLangError):
        slip(simulate(2))
