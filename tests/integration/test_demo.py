"""The demo, as a user runs it."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.needs("jax", "spu")

DEMO = pathlib.Path(__file__).parents[2] / "examples" / "vertical_lr.py"


def run_demo(tmp_path, *args):
    figures = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, str(DEMO), "--json", str(figures), *args], capture_output=True, text=True
    )
    return done, json.loads(figures.read_text()) if figures.exists() else None


SLOW = pytest.mark.slow("the demo trains for 20 epochs")
SHORT = ("--epochs", "2")


@pytest.mark.parametrize(
    ("args", "parties", "protocol"),
    [
        pytest.param((), 2, "CHEETAH", marks=SLOW),
        pytest.param(
            SHORT, 2, "CHEETAH", marks=pytest.mark.long("the demo trains for two epochs: 15 s")
        ),
        pytest.param(("--parties", "3", "--protocol", "ABY3"), 3, "ABY3", marks=SLOW),
        pytest.param(("--protocol", "SEMI2K"), 2, "SEMI2K", marks=SLOW),
        pytest.param(("--parties", "3", "--protocol", "SEMI2K"), 3, "SEMI2K", marks=SLOW),
    ],
)
def test_the_demo_is_as_good_as_plain_numpy(tmp_path, args, parties, protocol):
    done, figures = run_demo(tmp_path, *args)
    assert done.returncode == 0, done.stdout + done.stderr
    assert abs(figures["auc"] - figures["auc_plain"]) <= 0.005
    assert figures["auc"] > 0.98
    assert (figures["parties"], figures["protocol"]) == (parties, protocol)
    assert figures["seconds"] > 0
    assert "Placement of each step" in done.stdout
    assert "spu.run_jax" in done.stdout
    assert "Warning" not in done.stderr


@pytest.mark.needs("http")
@pytest.mark.parametrize("args", [SHORT, pytest.param((), marks=SLOW)])
def test_the_demo_runs_unchanged_on_workers_with_certificates_and_one_port_each(tmp_path, args):
    done, figures = run_demo(tmp_path, "--parties", "3", "--backend", "http", *args)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (figures["backend"], figures["protocol"]) == ("http", "ABY3")
    assert abs(figures["auc"] - figures["auc_plain"]) <= 0.005
    assert abs(figures["auc"] - figures["auc_simulator"]) <= 0.001
    assert "listens at" in done.stdout


def test_a_protocol_for_another_number_of_parties_is_told(tmp_path):
    done, figures = run_demo(tmp_path, "--parties", "2", "--protocol", "ABY3")
    assert done.returncode == 2
    assert figures is None
    assert "ABY3 takes 3 members, got 2" in done.stderr
    assert "Traceback" not in done.stderr
