"""Seven ways for a plugin to be broken, each as a distribution that is installed.

For each, beside other broken ones: the good ones work, its record tells distribution, version and
reason, and asking for what it would bring is an error that says what to do.
"""

from __future__ import annotations

import functools
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


def frontend(family: str) -> dict[str, list[str]]:
    return {"mplang.frontends": [family]}


MISSPELT = HOOK + "@hookimpl\ndef mplang_feop():\n    return []"
WRONG = HOOK + "@hookimpl\ndef mplang_feops():\n    return {'a': 1}"

BROKEN = {
    "raises-on-import": ("1 / 0", frontend("raises"), (), "ZeroDivisionError"),
    "missing-dependency": ("import no_such_package", frontend("lacks"), (), "no_such_package"),
    "misspelt-hook": (MISSPELT, frontend("misspelt"), (), "mplang_feop"),
    "wrong-return": (WRONG, frontend("wrong"), (), "mplang_feops returns a list, got a dict"),
    "duplicate-feop": (FEOP.format(name="jax.compile"), frontend("again"), (), "jax.compile"),
    "newer-core": ("1 / 0", frontend("newer"), ("mplang-core>=99",), "needs mplang-core >=99"),
    "duplicate-backend": (BACKEND, {"mplang.backends": ["simulator"]}, (), "simulator"),
}
"""Source, entry points, requirements and what is said, by name. The last one, for which nobody can
have a simulator, is installed by itself, the others together."""

FAMILIES = {
    name: points["mplang.frontends"][0]
    for name, (_, points, _, _) in BROKEN.items()
    if "mplang.frontends" in points
}

REPORT = """
import json, sys
import mplang_core as mp
from mplang_core.plugins import plugin_manager as plugins

def attempt(what):
    try:
        return repr(what())[:60]
    except Exception as error:
        return f"{type(error).__name__}: {error} ({getattr(error, 'code', '')})"

found = {
    "jax": attempt(lambda: mp.registry.get("jax.compile").__module__),
    "spu": attempt(lambda: mp.ClusterSpec.simple(2).device("SP0").kind.name),
    "broken": {name: attempt(lambda: mp.registry.get(f"{name}.op")) for name in sys.argv[1:]},
    "simulator": attempt(lambda: mp.Simulator),
    "listed": [meta.name for meta in mp.registry.list_ops()],
    "records": [[r.distribution, r.version, r.status, r.reason] for r in plugins.records()],
}
print(json.dumps(found))
"""


@functools.cache
def report(target: pathlib.Path, *families: str, disabled: str = "") -> dict:
    """Return what a process finds that has these plugins, too."""
    env = {**os.environ, "PYTHONPATH": str(target), "MPLANG_DISABLE_PLUGINS": disabled}
    command = [sys.executable, "-c", REPORT, *families]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> dict[str, pathlib.Path]:
    """Return the folder of each broken plugin."""
    folder = tmp_path_factory.mktemp("wheels")
    wheels = {
        name: make_wheel(
            folder, f"mplang-{name}", name.replace("-", "_"), source, points, requires, "1.2.3"
        )
        for name, (source, points, requires, _) in BROKEN.items()
    }
    alone = wheels.pop("duplicate-backend")
    install(folder / "alone", alone)
    install(folder / "together", *wheels.values())
    return {**dict.fromkeys(wheels, folder / "together"), "duplicate-backend": folder / "alone"}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_is_named_and_the_others_work(installed, name):
    found = report(installed[name], *FAMILIES.values())
    assert found["jax"] == "'mplang_jax.frontend'"
    assert found["spu"] == "'SPU'"
    assert {"jax.compile", "spu.run_jax"} <= set(found["listed"])
    records = [r for r in found["records"] if r[0] == f"mplang-{name}"]
    assert [(version, status) for _, version, status, _ in records] == [("1.2.3", "failed")]
    assert BROKEN[name][3] in records[0][3]


@pytest.mark.parametrize("name", FAMILIES)
def test_asking_for_what_it_would_bring_says_what_to_do(installed, name):
    told = report(installed[name], *FAMILIES.values())["broken"][FAMILIES[name]]
    assert told.startswith(f"PluginLoadError: the plugin {FAMILIES[name]!r} of mplang-{name}")
    assert "1.2.3 did not load" in told
    assert f"pip install --upgrade mplang-{name}" in told
    assert told.endswith(
        f"({ {'newer-core': 'P005', 'duplicate-feop': 'P004'}.get(name, 'P002') })"
    )


def test_a_duplicate_backend_names_both_distributions(installed):
    told = report(installed["duplicate-backend"], *FAMILIES.values())["simulator"]
    assert told.startswith("PluginConflictError: two plugins are named 'simulator'")
    assert "mplang-duplicate-backend 1.2.3 and mplang-simulator" in told
    # one of them is left alone, and the other serves
    found = report(installed["duplicate-backend"], disabled="mplang-duplicate-backend")
    assert "Simulator" in found["simulator"]
    assert ["mplang-duplicate-backend", "1.2.3", "disabled"] in [r[:3] for r in found["records"]]


def test_what_is_not_asked_for_is_not_imported(installed):
    """A plugin for a newer core is refused by its metadata: its import would raise."""
    found = report(installed["newer-core"], *FAMILIES.values())
    (record,) = [r for r in found["records"] if "newer" in r[0]]
    assert "ZeroDivisionError" not in record[3]


def test_two_distributions_of_one_family_are_a_conflict(tmp_path):
    wheels = [
        make_wheel(tmp_path, f"mplang-{name}", name, FEOP.format(name="brk.op"), frontend("brk"))
        for name in ("one", "two")
    ]
    install(tmp_path / "both", *wheels)
    told = report(tmp_path / "both", "brk")["broken"]["brk"]
    assert told.startswith("PluginConflictError: two plugins are named 'brk'")
    assert "mplang-one 1.0 and mplang-two 1.0" in told


def test_a_plugin_that_fails_half_way_leaves_nothing(tmp_path):
    source = FEOP.format(name="brk.op") + "\n@hookimpl\ndef mplang_kernels():\n    return [1]\n"
    wheel = make_wheel(tmp_path, "mplang-half", "half", source, frontend("brk"))
    install(tmp_path / "half", wheel)
    found = report(tmp_path / "half", "brk")
    assert "brk.op" not in found["listed"]
    assert "mplang_kernels returns a list of KernelSpec, got a int in it" in found["broken"]["brk"]


SQUATTERS = {
    "kernel": "@hookimpl\ndef mplang_kernels():\n    return [KernelSpec(['jax.run'], print)]",
    "codec": "@hookimpl\ndef mplang_dialects():\n    return [Dialect('sq', codecs={'tensor': 0})]",
    "op": "@hookimpl\ndef mplang_dialects():\n    return [Dialect('s', ops=[OpDef('jax.run', 0)])]",
}


@pytest.mark.parametrize("what", SQUATTERS)
def test_what_is_of_another_family_is_refused_whoever_loads_first(tmp_path, what):
    source = (
        "from mplang_core.ext import *\nfrom mplang_core.ext import Dialect, KernelSpec, OpDef\n"
    )
    source += f"from mplang_core.ext import hookimpl\n{SQUATTERS[what]}\n"
    points = {"mplang.frontends": ["sq"], "mplang.kernels": ["sq"]}
    install(tmp_path / "sq", make_wheel(tmp_path, "mplang-sq", "sq_module", source, points))
    use = """
import mplang_core as mp
try:
    mp.registry.get("sq.first")  # loaded before JAX is
except mp.errors.PluginLoadError as error:
    print(error)
with mp.Simulator(mp.ClusterSpec.simple(1)) as sim:
    print(mp.fetch(sim, mp.evaluate(sim, lambda: mp.put("P0", 20) + 1)))
try:
    mp.ClusterSpec([{}], {"D": {"kind": "SQ", "members": [0]}})
except mp.errors.ConfigError as error:
    print(error)
"""
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "sq")}
    done = subprocess.run([sys.executable, "-c", use], capture_output=True, text=True, env=env)
    refused, result, kind = done.stdout.splitlines()
    assert "a plugin adds to its own families only" in refused
    assert result == "21"
    assert (
        "no device kind 'SQ'; mplang-sq did not load" in kind
    )  # there is more to say than to install


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


@functools.cache
def rows_of(command: str, target: pathlib.Path) -> tuple[list[dict], int]:
    """Return what a command of the terminal prints, and its exit code."""
    env = {**os.environ, "PYTHONPATH": str(target)}
    line = [sys.executable, "-m", "mplang_cli.cli", command, "--json"]
    done = subprocess.run(line, capture_output=True, text=True, env=env)
    return json.loads(done.stdout), done.returncode


@pytest.mark.parametrize("name", BROKEN)
def test_the_command_names_it_its_version_and_the_reason(installed, name):
    for command, column in (("plugins", "reason"), ("doctor", "detail")):
        rows, code = rows_of(command, installed[name])
        mine = [row for row in rows if f"mplang-{name}" in row.values()]
        assert any(BROKEN[name][3] in row[column] for row in mine), rows
        assert "1.2.3" in json.dumps(mine)
        assert code == (1 if command == "doctor" else 0)
