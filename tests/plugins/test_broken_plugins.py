"""Seven ways for a plugin to be broken, each as a distribution that pip installed.

For each: the others work, its record tells distribution, version and reason, and asking for what
it would bring is an error that says what to do.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest
from wheels import install, make_wheel

pytestmark = pytest.mark.needs("jax", "spu")

HOOK = "from mplang_core.plugins import hookimpl\n"
FEOP = """
import mplang_core as mp
from mplang_core.plugins import hookimpl, KernelSpec, Dialect

@mp.simple_op("{name}")
def op(x: mp.TensorType) -> mp.TensorType:
    '''An op.'''
    return x

@hookimpl
def mplang_feops():
    return [op]
"""
BACKEND = """
from mplang_core.plugins import hookimpl
from mplang_core.simp import BackendSpec

@hookimpl
def mplang_backends():
    return [BackendSpec("simulator", lambda cluster: None)]
"""
FRONTEND = {"mplang.frontends": ["brk"]}

BROKEN = {
    "raises-on-import": ("1 / 0", FRONTEND, (), "ZeroDivisionError"),
    "missing-dependency": ("import no_such_package", FRONTEND, (), "no_such_package"),
    "misspelt-hook": (
        HOOK + "@hookimpl\ndef mplang_feop():\n    return []",
        FRONTEND,
        (),
        "mplang_feop",
    ),
    "wrong-return": (
        HOOK + "@hookimpl\ndef mplang_feops():\n    return {'a': 1}",
        FRONTEND,
        (),
        "mplang_feops returns a list, got a dict",
    ),
    "duplicate-feop": (FEOP.format(name="jax.compile"), FRONTEND, (), "jax.compile"),
    "duplicate-backend": (BACKEND, {"mplang.backends": ["simulator"]}, (), "simulator"),
    "newer-core": ("1 / 0", FRONTEND, ("mplang-core>=99",), "needs mplang-core >=99"),
}

REPORT = """
import json
import mplang_core as mp
from mplang_core.plugins import plugin_manager as plugins

def attempt(what):
    try:
        return repr(what())[:60]
    except Exception as error:
        return f"{type(error).__name__}: {error}"

found = {
    "jax": attempt(lambda: mp.registry.get("jax.compile").__module__),
    "spu": attempt(lambda: mp.ClusterSpec.simple(2).device("SP0").kind.name),
    "broken": attempt(lambda: mp.registry.get("brk.op")),
    "simulator": attempt(lambda: mp.Simulator),
    "listed": [meta.name for meta in mp.registry.list_ops()],
    "records": [[r.distribution, r.version, r.status, r.reason] for r in plugins.records()],
}
print(json.dumps(found))
"""


def report(target: pathlib.Path, **environment: str) -> dict:
    env = {**os.environ, "PYTHONPATH": str(target), **environment}
    done = subprocess.run([sys.executable, "-c", REPORT], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> dict[str, pathlib.Path]:
    """Each broken plugin in a folder of its own."""
    folder = tmp_path_factory.mktemp("wheels")
    targets = {}
    for name, (source, points, requires, _) in BROKEN.items():
        wheel = make_wheel(
            folder, f"mplang-{name}", name.replace("-", "_"), source, points, requires, "1.2.3"
        )
        targets[name] = folder / name
        install(targets[name], wheel)
    return targets


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_is_named_and_the_others_work(installed, name):
    found = report(installed[name])
    assert found["jax"] == "'mplang_jax.frontend'"
    assert found["spu"] == "'SPU'"
    assert {"jax.compile", "spu.run_jax"} <= set(found["listed"])
    records = [r for r in found["records"] if r[0] == f"mplang-{name}"]
    assert [(version, status) for _, version, status, _ in records] == [("1.2.3", "failed")]
    assert BROKEN[name][3] in records[0][3]


@pytest.mark.parametrize("name", [name for name in BROKEN if name != "duplicate-backend"])
def test_asking_for_what_it_would_bring_says_what_to_do(installed, name):
    told = report(installed[name])["broken"]
    assert told.startswith("PluginLoadError: the plugin 'brk' of mplang-")
    assert "1.2.3 did not load" in told
    assert f"pip install --upgrade mplang-{name}" in told


def test_a_duplicate_backend_names_both_distributions(installed):
    told = report(installed["duplicate-backend"])["simulator"]
    assert told.startswith("PluginConflictError: two plugins are named 'simulator'")
    assert "mplang-duplicate-backend 1.2.3 and mplang-simulator" in told
    # one of them is left alone, and the other serves
    found = report(
        installed["duplicate-backend"], MPLANG_DISABLE_PLUGINS="mplang-duplicate-backend"
    )
    assert "Simulator" in found["simulator"]
    assert ["mplang-duplicate-backend", "1.2.3", "disabled"] in [r[:3] for r in found["records"]]


def test_what_is_not_asked_for_is_not_imported(installed):
    """A plugin for a newer core is refused by its metadata: its import would raise."""
    (record,) = [r for r in report(installed["newer-core"])["records"] if "newer" in r[0]]
    assert "ZeroDivisionError" not in record[3]


def test_two_distributions_of_one_family_are_a_conflict(tmp_path):
    wheels = [
        make_wheel(tmp_path, f"mplang-{name}", name, FEOP.format(name="brk.op"), FRONTEND)
        for name in ("one", "two")
    ]
    install(tmp_path / "both", *wheels)
    told = report(tmp_path / "both")["broken"]
    assert told.startswith("PluginConflictError: two plugins are named 'brk'")
    assert "mplang-one 1.0 and mplang-two 1.0" in told


def test_a_plugin_that_fails_half_way_leaves_nothing(tmp_path):
    source = FEOP.format(name="brk.op") + "\n@hookimpl\ndef mplang_kernels():\n    return [1]\n"
    install(tmp_path / "half", make_wheel(tmp_path, "mplang-half", "half", source, FRONTEND))
    found = report(tmp_path / "half")
    assert "brk.op" not in found["listed"]
    assert "mplang_kernels returns a list of KernelSpec, got a int in it" in found["broken"]


def test_strict_plugins_stop_at_the_first_failure(installed):
    env = {**os.environ, "PYTHONPATH": str(installed["raises-on-import"])}
    env["MPLANG_STRICT_PLUGINS"] = "1"
    source = "import mplang_core as mp; mp.registry.list_ops()"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, env=env)
    assert done.returncode != 0
    assert "PluginLoadError" in done.stderr


def test_a_good_plugin_from_outside_is_a_full_citizen(tmp_path):
    source = """
    import mplang_core as mp
    from mplang_core.plugins import KernelSpec, hookimpl

    @mp.simple_op("outside.triple")
    def triple(x: mp.TensorType) -> mp.TensorType:
        '''Triples.'''
        return x

    def kernel(ctx, x):
        return x * 3

    @hookimpl
    def mplang_feops():
        return [triple]

    @hookimpl
    def mplang_kernels():
        return [KernelSpec(["outside.triple"], kernel)]
    """
    points = {"mplang.frontends": ["outside"], "mplang.kernels": ["outside"]}
    wheel = make_wheel(tmp_path, "acme-outside", "acme_outside", source, points)
    install(tmp_path / "good", wheel)
    use = """
import mplang_core as mp
with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
    triple = mp.registry.get("outside.triple")
    print(mp.fetch(sim, mp.evaluate(sim, lambda: mp.device("P1")(triple)(mp.put("P1", 14)))))
print(mp.registry.feops.provider("outside.triple"))
"""
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "good")}
    done = subprocess.run([sys.executable, "-c", use], capture_output=True, text=True, env=env)
    assert done.stdout.split() == ["42", "acme-outside"], done.stderr


@pytest.mark.parametrize("name", BROKEN)
def test_the_command_names_it_its_version_and_the_reason(installed, name):
    env = {**os.environ, "PYTHONPATH": str(installed[name])}
    for command, column in (("plugins", "reason"), ("doctor", "detail")):
        done = subprocess.run(
            [sys.executable, "-m", "mplang_cli.cli", command, "--json"],
            capture_output=True,
            text=True,
            env=env,
        )
        rows = [row for row in json.loads(done.stdout) if f"mplang-{name}" in row.values()]
        assert any(BROKEN[name][3] in row[column] for row in rows), rows
        assert "1.2.3" in json.dumps(rows)
        assert done.returncode == (1 if command == "doctor" else 0)
