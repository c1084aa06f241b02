"""Import path tests: workers import nothing from their working directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from mplang_http import LocalCluster
from mplang_worker.base.config import WorkerConfig
from mplang_worker.cli.worker import run_worker

import mplang_core as mp
from mplang_core.errors import ConfigError

SHADOWED = (
    *("importlib_metadata", "numpy", "msgspec", "jax", "jaxlib", "spu", "uvloop", "yaml", "pluggy"),
    *("mplang_jax", "mplang_spu", "mplang_http", "mplang_core", "zlib", "ssl", "hatchling"),
)


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """Change to a directory whose modules create a file when they are imported."""
    for name in SHADOWED:
        mark = tmp_path / f"{name} was imported"
        (tmp_path / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')\nraise ImportError('no')\n")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".py"] == []


def test_front_and_engine_import_nothing_from_there(hostile, tmp_path_factory):
    with (
        LocalCluster(2, tls=str(tmp_path_factory.mktemp("certificates"))) as workers,
        mp.connect("http", workers.spec, tls=workers.tls) as host,
    ):
        x = np.float32([1, 2])

        def program():
            return mp.reveal(mp.device("SP0")(jnp.add)(mp.put("P0", x), mp.put("P1", x)))

        for found in mp.fetch(host, mp.evaluate(host, program)):
            np.testing.assert_allclose(found, 2 * x, atol=1e-3)


def test_paths_of_a_local_cluster_are_relative_to_it(tmp_path, monkeypatch):
    """They were relative to the root, so that ``csv:people.csv`` was not found."""
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("pay\n1.0\n3.0\n")
    Path("all.cedar").write_text("permit (principal, action, resource);")
    people = {"source": "csv:people.csv", "columns": {"pay": "float64"}}
    gate = {"policy": "all.cedar", "log": "bank.db"}

    def mean():
        return mp.device("P0")(lambda t: t.agg(mean=t.pay.mean()))(mp.dataset("bank", "people"))

    with (
        LocalCluster(["bank"], data={"bank": {"people": people}}, gates={"bank": gate}) as workers,
        mp.connect("http", workers.spec) as host,
    ):
        assert mp.fetch(host, mp.evaluate(host, mean)).to_pylist() == [{"mean": 2.0}]
    assert Path("bank.db").exists()


def start(*command: str, config: Path) -> subprocess.CompletedProcess[str]:
    """Start a worker that exits at once, as its certificate is missing."""
    config.write_text(
        "name: alice\ncoordinators: [host]\ntls: nowhere/alice\npeers: {}\nplugins: {}\n"
    )
    return subprocess.run(
        [*command, "worker", "--config", str(config)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_command_imports_nothing_from_there(hostile, tmp_path_factory):
    config = tmp_path_factory.mktemp("config") / "alice.yaml"
    mplang = str(Path(sys.executable).with_name("mplang"))
    for command in ([mplang], [sys.executable, "-P", "-m", "mplang_cli.cli"]):
        told = start(*command, config=config)
        assert told.returncode == 1
        assert "nowhere" in told.stderr, told.stderr


def test_a_start_that_would_import_from_there_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = start(sys.executable, "-m", "mplang_cli.cli", config=tmp_path / "alice.yaml")
    assert told.returncode == 1
    assert "imports nothing from its working directory" in told.stderr
    assert "Traceback" not in told.stderr


def test_modules_to_import_have_to_be_installed(tmp_path, monkeypatch):
    (tmp_path / "ops_of_mine.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", os.getcwd())])
    with pytest.raises(ConfigError, match="no module 'ops_of_mine' is installed; a worker imports"):
        run_worker(WorkerConfig(name="alice", imports=("ops_of_mine",)))
