"""A plugin outside of this repository: written, installed by pip, and run, the core as it is.

The environment holds the wheels of the core, its tools, the simulator and the plugin, what these
depend on, and pytest with Hypothesis; nothing else.
"""

from __future__ import annotations

import json
import subprocess

import pytest
from mplang_cli.authoring import new_plugin
from wheels import CLEAN, ROOT, make_environment, run

TOOLS = ("analysis", "cache", "cli", "passes", "simulator", "testing", "trace")

PROGRAM = """
import json
import mplang_core as mp
from mplang_weather import summarize

def program(x):
    return mp.put("P2", mp.device("P1")(summarize)(mp.put("P1", x), digits=1))

with mp.Simulator(mp.ClusterSpec.simple(3)) as sim:
    found = {
        mode: repr(mp.fetch(sim, mp.evaluate(sim, program, [1, 2, 4], mode=mode)))
        for mode in ("standard", "launch")
    }
found["provenance"] = mp.introspect.describe("weather.summarize")["provenance"]
found["frontends"] = mp.introspect.list_frontends()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """Make an environment with two plugins; return its folder of programs, and theirs."""
    home = tmp_path_factory.mktemp("outside")
    plugin = new_plugin("weather", home).path
    compiler = new_plugin("formula", home, compiler=True).path
    tools = [ROOT / "plugins" / f"mplang_{name}" for name in TOOLS]
    bin = make_environment(home, [ROOT, *tools, plugin, compiler], "pytest", "hypothesis")
    return bin, plugin, compiler


def test_it_runs_in_a_program_of_three_parties(outside, tmp_path):
    bin, *_ = outside
    found = json.loads(run(bin / "python", "-c", PROGRAM, cwd=tmp_path))
    summary = "Summary(i64[3], least=1.0, mean=2.3, greatest=4.0)"
    assert (found["standard"], found["launch"]) == (summary, summary)
    assert found["provenance"] == {"distribution": "mplang-weather", "version": "0.1.0"}
    assert found["frontends"] == ["formula", "kit", "weather"]  # the kit's own, and these


def test_they_pass_their_own_tests_and_the_kit(outside):
    bin, *plugins = outside
    for plugin in plugins:
        told = run(bin / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=plugin)
        assert "passed" in told
        assert not {"skipped", "xfailed", "warning"} & set(told.split())


def test_the_command_tells_of_it(outside, tmp_path):
    bin, *_ = outside
    rows = json.loads(run(bin / "mplang", "plugins", "--json", cwd=tmp_path))
    assert {row["distribution"] for row in rows} == {
        *(f"mplang-{name}" for name in TOOLS),
        "mplang-weather",
        "mplang-formula",
    }
    assert {row["status"] for row in rows} == {"loaded"}
    run(bin / "mplang", "doctor", cwd=tmp_path)
    again = subprocess.run(
        [bin / "mplang", "new-plugin", "weather"], capture_output=True, text=True, env=CLEAN
    )
    assert "taken by mplang-weather 0.1.0, which is installed" in again.stderr
