"""Wheels of the core and the simulator, and nothing else: what a plugin author begins with."""

from __future__ import annotations

import pathlib
import sys

import pytest
from wheels import ROOT, make_environment, run

PROGRAM = '''
import numpy as np

import mplang_core as mp


@mp.simple_op("mine.scale")
def scale(x: mp.TensorType, *, by: float = 2.0) -> mp.TensorType:
    """Multiplies a tensor by a number."""
    return x


@mp.kernel("mine.scale")
def run(ctx, x, *, by):
    return x * by


def program(x):
    return mp.put("P1", mp.device("P0")(scale)(mp.put("P0", x), by=3.0))


cluster = mp.ClusterSpec.simple(2)
print(mp.compile(program, np.ones(2), cluster_spec=cluster).compiler_ir())
with mp.Simulator(cluster) as sim:
    for mode in ("standard", "launch"):
        print(mode, mp.fetch(sim, mp.evaluate(sim, program, np.ones(2), mode=mode)))
for name in ("artifact", "record", "parse"):
    try:
        getattr(mp, name)
    except mp.errors.PluginError as error:
        print(error)
assert not hasattr(mp, "artifact")
'''


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Make an environment with the wheels and what they ask for; return its interpreter."""
    projects = [
        ROOT,
        *(
            ROOT / "plugins" / name
            for name in ("mplang_analysis", "mplang_cache", "mplang_passes", "mplang_simulator")
        ),
    ]
    return make_environment(tmp_path_factory.mktemp("alone"), projects) / "python"


def test_an_op_of_ones_own_is_traced_printed_and_run(python, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    text = run(python, "program.py", cwd=tmp_path)
    assert 'mine.scale(%2) {by = 3.0} : f64[2] at "program.py:' in text
    assert "standard [3. 3.]" in text
    assert "launch [3. 3.]" in text
    for name, package in {
        "artifact": "mplang-cli",
        "record": "mplang-trace",
        "parse": "mplang-cli",
    }.items():
        told = f"mp.{name} comes with another package; try: pip install {package}"
        assert told in text


def test_nothing_but_the_packages_that_are_named_is_installed(python):
    listed = run(sys.executable, "-m", "pip", "--python", python, "list", "--format", "freeze")
    mine = {line.partition("==")[0].lower().replace("_", "-") for line in listed.split()}
    assert {name for name in mine if name.startswith("mplang")} == {
        "mplang-core",
        "mplang-core-stubs",
        "mplang-analysis",
        "mplang-cache",
        "mplang-passes",
        "mplang-simulator",
    }
    assert not {"rich", "typer", "jax", "pytest", "hypothesis"} & mine
