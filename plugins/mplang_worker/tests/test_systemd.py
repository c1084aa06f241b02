"""The systemd unit fits the worker, which runs under what the unit takes away."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import types
import urllib.request
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from http_raw import DOUBLE, RawWorker
from mplang_cli.cli import app
from mplang_testing.waiting import DEADLINE, wait_until
from mplang_worker.base.config import Timeouts
from mplang_worker.front.draining import SETTLE, TELL
from mplang_worker.front.service_manager import notify
from typer.testing import CliRunner

import mplang_core as mp
from mplang_core.errors import ConfigError

UNIT = Path(__file__).parents[3] / "deploy" / "mplang-worker@.service"
analyze = pytest.mark.needs(components=["systemd"])


@pytest.fixture(scope="module")
def unit():
    """Return the values of each setting of the unit, in their order."""
    found = defaultdict(list)
    for line in UNIT.read_text().splitlines():
        if line and line[0] not in "#[":
            name, _, value = line.partition("=")
            found[name].append(value)
    return found


def test_the_command_is_one_of_ours(unit, tmp_path):
    (command,) = unit["ExecStart"]
    program, *args = command.replace("/etc/mplang/%i", str(tmp_path / "alice")).split()
    assert Path(program).name == "mplang"
    (tmp_path / "alice.yaml").write_text("{name: alice, prot: 1}")
    result = CliRunner().invoke(app, [*args, "--log-format", "text"])
    assert isinstance(result.exception, ConfigError)  # of the file, not of the command
    assert "prot" in str(result.exception)


def test_systemd_waits_for_jobs_and_for_the_start(unit):
    assert float(unit["TimeoutStopSec"][0]) > Timeouts().drain + SETTLE + TELL + 5
    assert float(unit["TimeoutStartSec"][0]) > 60
    assert unit["KillMode"] == ["mixed"]
    assert unit["KillSignal"] == ["SIGTERM"]


def test_what_a_worker_needs_is_left_to_it(unit):
    families = unit["RestrictAddressFamilies"][0].split()
    assert {"AF_INET", "AF_INET6", "AF_UNIX"} == set(families)
    assert unit["MemoryDenyWriteExecute"] == ["no"]
    assert "ProtectProc" not in unit
    assert {"memory", "pids"} < set(unit["Delegate"][0].split())  # cgroups of engines
    assert "ProtectControlGroups" not in unit
    calls = " ".join(unit["SystemCallFilter"]).split()
    assert not any(call.startswith("~") for call in calls)
    for call in ("seccomp", "landlock_restrict_self", "memfd_create", "pidfd_open", "capset"):
        assert call in calls


def test_what_a_worker_writes_has_a_folder(unit):
    """Else no worker with a gate or a sink starts: all else is read-only."""
    assert unit["StateDirectory"] == ["mplang/%i"]
    assert unit["StateDirectoryMode"] == ["0700"]
    readme = UNIT.with_name("README.md").read_text()
    assert "log: /var/lib/mplang/alice/gate.db" in readme
    assert "folder: /var/lib/mplang/alice/results" in readme


@pytest.mark.long("starts a worker")
@pytest.mark.skipif(os.getuid() != 0, reason="makes a mount namespace")
def test_a_worker_with_gate_data_and_sink_starts_in_the_view_of_the_unit(tmp_path):
    """ProtectSystem=strict: the folder of its configuration is read-only, its state is not."""
    etc, state = tmp_path / "etc", tmp_path / "state"
    etc.mkdir()
    state.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (etc / "alice.cedar").write_text("permit (principal, action, resource);")
    (etc / "people.csv").write_text("age\n41\n")
    (etc / "sink.key").write_bytes(bytes(range(32)))
    (etc / "sink.key").chmod(0o400)
    data = {"people": {"source": "csv:people.csv", "columns": {"age": "int64"}}}
    fields = {
        "name": "alice", "host": "127.0.0.1", "port": port, "data": data,
        "gate": {"policy": "alice.cedar", "log": f"{state}/gate.db"},
        "sink": {"folder": f"{state}/results", "key_file": "sink.key"},
    }  # fmt: skip
    (etc / "alice.yaml").write_text(json.dumps(fields))
    view = f"mount --bind {etc} {etc} && mount -o remount,bind,ro {etc} && ! touch {etc}/x && exec "
    command = f"{sys.executable} -P -m mplang_cli.cli worker --config {etc}/alice.yaml"
    process = subprocess.Popen(["unshare", "-m", "bash", "-c", view + command])

    def status():
        assert process.poll() is None, "it has ended"
        url = f"http://127.0.0.1:{port}/ready"
        with contextlib.suppress(OSError), urllib.request.urlopen(url) as answer:
            return answer.status == 200
        return False

    try:
        wait_until(status)
        assert (state / "gate.db").exists()
        assert (state / "results").is_dir()
    finally:
        process.terminate()
        process.wait(DEADLINE)


def test_what_a_worker_does_not_need_is_taken(unit):
    for name in ("CapabilityBoundingSet", "AmbientCapabilities"):
        assert unit[name] == [""]
    assert unit["LimitCORE"] == ["0"]
    assert unit["ProtectSystem"] == ["strict"]
    for name in ("NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices"):
        assert unit[name] == ["yes"], name


@analyze
def test_systemd_takes_the_unit(tmp_path):
    copy = tmp_path / "mplang-worker@alice.service"
    copy.write_text(UNIT.read_text().replace("/opt/mplang/bin/mplang", sys.executable))
    command = ["systemd-analyze", "verify", "--man=no", str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    mine = [line for line in done.stderr.splitlines() if copy.name in line]
    assert mine == []


@analyze
def test_systemd_rates_the_unit_as_confined(tmp_path):
    command = ["systemd-analyze", "security", "--offline=yes", "--threshold=40", str(UNIT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if "Unknown option" in done.stderr or "unrecognized option" in done.stderr:
        pytest.skip("systemd is too old")
    assert done.returncode == 0, done.stdout + done.stderr


# not between fork and exec: libraries of the tests have threads that do not survive a fork
UNPRIVILEGED = """
import ctypes, os, resource, sys

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
os.umask(0o077)
libc = ctypes.CDLL(None, use_errno=True)
for capability in range(64):
    libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
if libc.prctl(38, 1, 0, 0, 0):  # PR_SET_NO_NEW_PRIVS
    raise OSError("no new privileges")
if libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), bytes(24)):
    raise OSError("capset")
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Does to a process what some of the unit's settings do, and becomes the command."""


def test_a_worker_runs_without_privileges_and_notifies(tmp_path):
    """No capabilities, no new privileges, no core dumps, a folder that cannot be written to."""
    (tmp_path / "alice.yaml").write_text("{name: alice, imports: [mplang_testing.dialect]}")
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.bind(f"\0mplang-{os.getpid()}")
    told.settimeout(60)
    tmp_path.chmod(0o500)
    worker = ["-P", "-m", "mplang_cli.cli", "worker", "-c", "alice.yaml"]
    process = subprocess.Popen(
        [sys.executable, "-c", UNPRIVILEGED, *worker],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "NOTIFY_SOCKET": f"@mplang-{os.getpid()}"},
    )  # fmt: skip
    try:
        printed = process.stdout.readline()
        assert printed, (process.wait(DEADLINE), process.stderr.read())
        line = json.loads(printed)
        assert told.recv(100) == b"READY=1"
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert "NoNewPrivs:\t1" in status
        assert "CapEff:\t0000000000000000" in status
        cluster = mp.ClusterSpec([{"name": "alice", "address": line["address"]}])
        worker = RawWorker(types.SimpleNamespace(spec=cluster))
        assert worker.run(DOUBLE, np.int64(4)).json["state"] == "done"
        process.send_signal(signal.SIGTERM)
        assert told.recv(100) == b"STOPPING=1"
        process.communicate(timeout=30)
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()
        told.close()


def test_without_a_service_manager_nobody_is_notified(monkeypatch, tmp_path):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    notify("READY=1")
