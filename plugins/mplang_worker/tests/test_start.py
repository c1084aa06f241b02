"""Start of a worker: its port answers before the warm process has imported what engines need."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import types
from pathlib import Path

import pytest
from http_raw import RawWorker
from mplang_http import LocalCluster
from mplang_testing.waiting import wait_until

import mplang_core as mp
from mplang_core.errors import RunError

HEAVY = ("/jaxlib/", "/spu/", "/duckdb/", "/pyarrow/", "/scipy/")
SLOW = """
import os
from mplang_testing.waiting import wait_until
wait_until(lambda: os.path.exists(os.environ["GO_ON"]))
"""


@pytest.fixture
def starting(tmp_path):
    """Return a worker that is starting, its process, and the file that lets its start go on."""
    (tmp_path / "slow_import.py").write_text(SLOW)
    kept = socket.socket()  # nobody else is given a port that is bound; the worker may listen there
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    port = kept.getsockname()[1]
    (tmp_path / "alice.yaml").write_text(f"{{name: alice, port: {port}, imports: [slow_import]}}")
    cluster = mp.ClusterSpec([{"name": "alice", "address": f"http://127.0.0.1:{port}"}])
    go_on = tmp_path / "go-on"
    with kept, subprocess.Popen(
        [sys.executable, "-P", "-m", "mplang_cli.cli", "worker", "-c", "alice.yaml"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path), "GO_ON": str(go_on)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        yield RawWorker(types.SimpleNamespace(spec=cluster)), process, go_on
        process.terminate()


def answers(worker: RawWorker) -> bool:
    try:
        return worker.ask("GET", "/health").status == 200
    except ConnectionError:
        return False


def test_the_front_answers_while_the_warm_process_imports(starting):
    worker, process, go_on = starting
    wait_until(lambda: answers(worker))
    found = worker.ask("GET", "/ready")
    assert (found.status, found.json) == (503, {"state": "starting"})
    mapped = Path(f"/proc/{process.pid}/maps").read_text()
    assert [name for name in HEAVY if name in mapped] == []
    go_on.touch()
    wait_until(lambda: worker.ask("GET", "/ready").status == 200)
    assert worker.ask("GET", "/ready").json == {"state": "ready"}


def cluster_that_is_late(folder, monkeypatch, slow: str, **options):
    (folder / "late_import.py").write_text(slow)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    with pytest.raises(RunError) as error:
        LocalCluster(["alice"], imports=("late_import",), start_timeout=4.0, **options)
    return str(error.value)


def test_a_local_cluster_that_gives_up_says_what_it_waited_for(tmp_path, monkeypatch):
    monkeypatch.setenv("GO_ON", str(tmp_path / "never"))
    said = "import logging\nlogging.getLogger('mplang').warning('a slow disk')\n"
    told = cluster_that_is_late(tmp_path, monkeypatch, said + SLOW, log=str(tmp_path))
    assert told.startswith("worker alice was not ready 4 s after its start")
    assert "LocalCluster(…, start_timeout=20)" in told
    assert f"the end of its log, {tmp_path / 'alice.log'}:" in told
    assert "a slow disk" in told.splitlines()[-1]


@pytest.mark.long("a process starts again and again, for four seconds")
def test_a_local_cluster_that_gives_up_says_where_its_log_is(tmp_path, monkeypatch):
    told = cluster_that_is_late(tmp_path, monkeypatch, "import os\nos._exit(7)\n")
    assert told.startswith("worker alice was not ready 4 s after its start")
    assert "on stderr; LocalCluster(…, log=FOLDER)" in told
