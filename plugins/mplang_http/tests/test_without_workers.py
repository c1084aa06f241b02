"""What an analyst has who installed no worker."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SERVED = ("starlette", "uvicorn", "uvloop", "fastapi", "typer", "duckdb", "cryptography")

CONNECT = f"""
import sys
import mplang_core as mp
from mplang_http import SimpHttpDriver, cluster_status
print(cluster_status(mp.ClusterSpec([dict(name="a", address="http://127.0.0.1:9")])))
assert not {SERVED} & {{name.partition(".")[0] for name in sys.modules}}, sys.modules
assert not [name for name in sys.modules if name.startswith("mplang_worker")]
""".replace(str(SERVED), repr(set(SERVED)))


def run(program: str) -> str:
    """Run a program as if ``mplang-worker`` was not installed; return what it prints."""
    environment = os.environ | {"MPLANG_DISABLE_PLUGINS": "mplang-worker"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_a_coordinator_imports_no_server_and_no_engine():
    assert "does not answer" in (told := run(CONNECT))
    assert "Error" not in told.replace("PartyError", "")


@pytest.mark.parametrize("name", ["LocalCluster", "WorkerConfig", "create_worker_app"])
def test_names_of_workers_say_what_to_install(name):
    told = run(f"from mplang_http import {name}")
    assert f"ModuleNotFoundError: {name} comes with" in told
    assert "pip install mplang-worker" in told


def test_names_of_workers_are_theirs():
    import mplang_http
    import mplang_worker

    assert all(
        getattr(mplang_http, name) is getattr(mplang_worker, name) for name in mplang_worker.__all__
    )


def test_a_name_that_is_not_there_is_an_attribute_error():
    import mplang_http

    assert not hasattr(mplang_http, "LocalClusters")
    assert "LocalCluster" in mplang_http.__all__
