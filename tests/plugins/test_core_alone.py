"""Wheels of core and simulator, and nothing else of mplang: what a plugin author begins with."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import venv

import pytest

ROOT = pathlib.Path(__file__).parents[2]
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST", "MPLANG"))}

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
for name in ("analysis", "artifact", "record", "parse"):
    try:
        getattr(mp, name)
    except mp.errors.PluginError as error:
        print(error)
assert not hasattr(mp, "analysis")
'''


def run(*command: object, env: dict[str, str] = CLEAN, cwd: pathlib.Path | None = None) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=env, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Make an environment with both wheels and what they ask for; return its interpreter."""
    home = tmp_path_factory.mktemp("alone")
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "install", "--target", home / "hatch", "hatchling")
    run(
        *(*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", home / "wheels"),
        *(ROOT, ROOT / "plugins" / "mplang_simulator"),
        env={**CLEAN, "PYTHONPATH": str(home / "hatch")},
    )
    venv.create(home / "env", with_pip=False)
    found = home / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(
        *(*pip, "--python", found, "install", "--no-compile"),
        *("--constraint", ROOT / "constraints.txt", *(home / "wheels").glob("*.whl")),
    )
    return found


def test_an_op_of_ones_own_is_traced_printed_and_run(python, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    text = run(python, "program.py", cwd=tmp_path)
    assert 'mine.scale(%2) {by = 3.0} : f64[2] at "program.py:' in text
    assert "standard [3. 3.]" in text
    assert "launch [3. 3.]" in text
    for name, package in {
        "analysis": "mplang-analysis",
        "artifact": "mplang-cli",
        "record": "mplang-trace",
        "parse": "mplang-cli",
    }.items():
        told = f"mp.{name} comes with a package of its own; try: pip install {package}"
        assert told in text


def test_nothing_but_the_packages_that_are_named_is_installed(python):
    listed = run(sys.executable, "-m", "pip", "--python", python, "list", "--format", "freeze")
    mine = {line.partition("==")[0].lower().replace("_", "-") for line in listed.split()}
    assert {name for name in mine if name.startswith("mplang")} == {
        "mplang-core",
        "mplang-simulator",
    }
    assert not {"rich", "typer", "jax", "pytest", "hypothesis"} & mine
