"""CLI tests: ``mplang keygen``, ``worker``, ``up``, ``status``, and ``run`` on workers."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mplang_cli import cli
from mplang_http import LocalCluster
from mplang_testing.waiting import wait_until
from mplang_worker.base.allowed_plugins import installed_plugins
from mplang_worker.cli.commands import MARK
from processes import children, descendants

PROGRAM = """
import mplang_core as mp

def give():
    return mp.pshfl_s(mp.put("P0", [1, 2]), 2, [0])
"""


def mplang(*args, cwd):
    command = [sys.executable, "-P", "-m", "mplang_cli.cli", *map(str, args)]
    env = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env=env, timeout=120, check=False
    )


def begin(*args, cwd):
    command = [sys.executable, "-P", "-m", "mplang_cli.cli", *map(str, args)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd
    )


def finish(process):
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err, err
    return out


@pytest.fixture
def here(outcome):
    """Return a function that runs the command in this process: its exit code and errors."""

    def run(*args):
        code, _, errors = outcome(*args)
        return code, errors

    return run


@pytest.fixture
def outcome(tmp_path, monkeypatch, capsys):
    """Return a function that runs the command in this process: its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*args):
        monkeypatch.setattr("sys.argv", ["mplang", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, *capsys.readouterr()

    return run


def test_a_function_that_is_run_may_name_the_data_sets_of_its_workers(tmp_path):
    np.save(tmp_path / "pay.npy", np.float64([1, 2]))
    (tmp_path / "prog.py").write_text(
        "import mplang_core as mp\n\ndef pay():\n    return mp.dataset('node0', 'pay')\n"
    )
    pay = {"source": f"npy:{tmp_path}/pay.npy", "array": "f64[2]"}
    with LocalCluster(1, data={"node0": {"pay": pay}}) as cluster:
        nodes = [{"name": node.name, "address": node.address} for node in cluster.spec.nodes]
        (tmp_path / "cluster.yaml").write_text(json.dumps({"nodes": nodes}))
        ran = mplang("run", "prog.py:pay", "--cluster", "cluster.yaml", "--json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)[0]["value"] == [1, 2]


@pytest.fixture
def program(tmp_path):
    (tmp_path / "prog.py").write_text(PROGRAM)
    return "prog.py:give"


def test_up_status_and_run_with_certificates(tmp_path, program, outcome):
    up = begin("up", "-n", 3, "--tls", "certs", cwd=tmp_path)
    try:
        assert up.stdout.readline() == "wrote cluster.yaml\n"
        assert up.stdout.readline() == (
            "mode: development; standard mode and eager calls run, too; --mode production refuses "
            "them\n"
        )
        assert up.stdout.readline() == (
            "try: mplang run prog.py:fn --cluster cluster.yaml --tls certs/host\n"
        )
        mine = ("--tls", "certs/host")
        code, told, errors = outcome("status", "--cluster", "cluster.yaml", *mine, "--json")
        assert code == 0, errors
        rows = json.loads(told)
        assert [(row["name"], row["mode"], row["state"]) for row in rows] == [
            (f"node{i}", "development", "ready") for i in range(3)
        ]
        done = mplang("run", program, "--cluster", "cluster.yaml", *mine, "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)[0]["value"] == [None, None, [1, 2]]
        code, _, errors = outcome("run", program, "--cluster", "cluster.yaml")
        assert code == 1
        assert "https" in errors
        assert "tls" in errors
    finally:
        finish(up)
    code, told, _ = outcome("status", "--cluster", "cluster.yaml", *mine)
    assert code == 1
    assert "lost" in told


@pytest.mark.parametrize(("option", "path"), [("--out", "cluster.yaml"), ("--tls", "certs")])
def test_a_second_up_leaves_the_files_of_the_first_alone(here, tmp_path, option, path):
    (tmp_path / "certs").mkdir()
    (tmp_path / "certs" / "ca.pem").write_text("of the first")
    (tmp_path / "cluster.yaml").write_text(f"{MARK}nodes: []\n")
    first = os.open(tmp_path / path, os.O_RDONLY)
    try:
        fcntl.flock(first, fcntl.LOCK_EX)  # as the first one does
        code, told = here("up", "-n", 1, "--tls", "certs")
    finally:
        os.close(first)
    assert code == 1
    assert f"{path} is in use by another mplang up" in told
    assert f"another one by {option}" in told
    assert (tmp_path / "cluster.yaml").read_text() == f"{MARK}nodes: []\n"
    assert (tmp_path / "certs" / "ca.pem").read_text() == "of the first"


def test_a_certificate_is_given_once(here, program):
    given = ("--cluster", 2, "--tls", "certs/a", "--option", "tls=certs/b")
    code, told = here("run", program, *given)
    assert code == 1
    assert "--tls certs/a and --option tls=certs/b are two; give one" in told


@pytest.mark.long("three workers and two commands; what is refused is in test_development.py")
def test_up_in_production_runs_whole_programs_only(tmp_path, program):
    up = begin("up", "-n", 3, "--mode", "production", cwd=tmp_path)
    try:
        assert up.stdout.readline() == "wrote cluster.yaml\n"
        assert up.stdout.readline().startswith("mode: production; ")
        up.stdout.readline()
        run = ("run", program, "--cluster", "cluster.yaml", "--json")
        done = mplang(*run, cwd=tmp_path)
        assert json.loads(done.stdout)[0]["value"] == [None, None, [1, 2]], done.stderr
        done = mplang(*run, "--mode", "standard", cwd=tmp_path)
        assert done.returncode == 1
        assert "prog.py" in done.stderr
        assert "in production are node0, node1, node2" in done.stderr
    finally:
        finish(up)


def lines_until(stream, text):
    """Return the lines of a stream until one that has a text in it."""
    found = []
    for line in stream:
        found.append(line)
        if text in line:
            return found
    raise AssertionError(f"{text!r} is not in {found}")


@pytest.mark.long("starts three workers, one of them twice, and runs two commands")
def test_up_starts_a_worker_that_died_again(tmp_path, program):
    """At its port, with its configuration; what it died of is told."""
    up = begin("up", "-n", 3, "--mode", "production", cwd=tmp_path)
    try:
        lines_until(up.stdout, "try: ")
        (server,) = children(up.pid)
        workers = children(server)
        os.kill(workers[1], signal.SIGKILL)
        lines_until(up.stdout, "node1 ended by SIGKILL; it is started again in 0 s")
        lines_until(up.stdout, "node1 is started again at http://127.0.0.1:")
        assert set(workers) - set(descendants(up.pid)) == {workers[1]}
        run = ("run", program, "--cluster", "cluster.yaml", "--json")
        done = mplang(*run, cwd=tmp_path)
        assert json.loads(done.stdout)[0]["value"] == [None, None, [1, 2]], done.stderr
        done = mplang(*run, "--mode", "standard", cwd=tmp_path)
        assert "in production are node0, node1, node2" in done.stderr
    finally:
        finish(up)


@pytest.mark.long("a worker starts, and again in vain")
def test_up_ends_if_a_worker_cannot_start(tmp_path):
    """As its configuration is wrong: with that error, and no loop."""
    up = begin("up", "-n", 1, "--tls", "certs", cwd=tmp_path)
    try:
        lines_until(up.stdout, "try: ")
        (tmp_path / "certs" / "node0.pem").write_text("damaged")
        (server,) = children(up.pid)
        os.kill(children(server)[0], signal.SIGKILL)
        _, errors = up.communicate(timeout=30)
        assert up.returncode == 1
        assert errors.startswith("mplang: ")
        assert "certs/node0.pem" in errors
    finally:
        up.kill()


def free_ports(count):
    """Return ports that nobody listens to."""
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [sock.getsockname()[1] for sock in socks]


@pytest.mark.long("two workers and two commands, a process each")
def test_two_workers_that_were_configured_by_hand(tmp_path):
    made = mplang("keygen", "certs", "alice", "bob", "analyst", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert oct((tmp_path / "certs" / "alice.key").stat().st_mode & 0o777) == "0o600"
    workers = []
    try:
        ports = dict(zip(("alice", "bob"), free_ports(2), strict=True))
        peers = ", ".join(f"{name}: 'https://127.0.0.1:{port}'" for name, port in ports.items())
        for name, port in ports.items():
            (tmp_path / f"{name}.yaml").write_text(
                f"name: {name}\ntls: certs/{name}\ncoordinators: [analyst]\n"
                f"port: {port}\npeers: {{{peers}}}\nplugins: {installed_plugins()}\n"
            )
            workers.append(begin("worker", "--config", f"{name}.yaml", cwd=tmp_path))
        ready = [json.loads(worker.stdout.readline()) for worker in workers]
        nodes = [f"- {{name: {line['party']}, address: '{line['address']}'}}" for line in ready]
        (tmp_path / "two.yaml").write_text("nodes:\n" + "\n".join(nodes) + "\n")
        (tmp_path / "prog.py").write_text(PROGRAM.replace("2, [0]", "1, [0]"))
        tls = ("--option", "tls=certs/analyst")
        args = ("prog.py:give", "--cluster", "two.yaml", *tls, "--json")
        done = mplang("run", *args, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)[0]["value"] == [None, [1, 2]]
    finally:
        for worker in workers:
            finish(worker)


OTHERS = f"coordinators: [c]\npeers: {{}}\nplugins: {installed_plugins()}\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name: alice\nhost: 0.0.0.0\n", "without tls a worker binds to loopback only"),
        ("name: ../alice\n", "'name'"),
        (f"name: alice\ntls: certs/nobody\n{OTHERS}", "cannot use the certificates"),
        ("name: alice\ntls: certs/alice\n", "coordinators names those who may submit"),
        ("name: alice\nprot: 1\n", "'prot'"),
        ("name: alice\nimports: [no_such_module]\n", "'imports': no module 'no_such_module'"),
    ],
)
def test_a_wrong_configuration_is_told_in_a_line(tmp_path, here, text, told):
    (tmp_path / "worker.yaml").write_text(text)
    code, errors = here("worker", "--config", "worker.yaml", "--log-format", "text")
    assert code == 1
    assert errors.startswith("mplang: ")
    assert told in errors
    code, errors = here("worker", "--config", "worker.yaml")
    assert code == 1
    (line,) = errors.splitlines()
    assert told in json.loads(line)["message"]
    assert json.loads(line)["level"] == "critical"


def test_a_file_that_is_no_yaml_is_told_without_a_traceback(tmp_path):
    (tmp_path / "worker.yaml").write_text("[")
    done = mplang("worker", "--config", "worker.yaml", "--log-format", "text", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("mplang: ")
    assert "cannot read" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_told(tmp_path, here, five_workers):
    port = five_workers.spec.nodes[0].address.rpartition(":")[2]
    (tmp_path / "worker.yaml").write_text(f"name: alice\nport: {port}\n")
    code, errors = here("worker", "--config", "worker.yaml")
    assert code == 1
    assert f"cannot listen on 127.0.0.1:{port}" in errors


def test_what_is_there_is_not_overwritten(tmp_path, here):
    (tmp_path / "cluster.yaml").write_text("nodes: [{name: mine}]\n")
    code, errors = here("up", "-n", 1)
    assert code == 1
    assert "cluster.yaml exists already" in errors
    assert here("keygen", "certs", "alice", "bob")[0] == 0
    before = (tmp_path / "certs" / "ca.pem").read_bytes()
    code, errors = here("keygen", "certs", "carol")
    assert code == 1
    assert "certificates of others" in errors
    assert (tmp_path / "certs" / "ca.pem").read_bytes() == before
    code, errors = here("keygen", "other", "a b")
    assert code == 1
    assert "got 'a b'" in errors


def test_the_certificate_of_another_is_told_at_once(tmp_path, here):
    assert here("keygen", "certs", "alice", "bob")[0] == 0
    (tmp_path / "alice.yaml").write_text(f"name: alice\ntls: certs/bob\n{OTHERS}")
    code, errors = here("worker", "--config", "alice.yaml")
    assert code == 1
    assert "is of 'bob', so peers would not accept this worker as alice" in errors


def test_the_wrong_scheme_is_told(tmp_path, here, five_workers):
    address = five_workers.spec.nodes[0].address.replace("http:", "https:")
    assert here("keygen", "certs", "host")[0] == 0
    (tmp_path / "c.yaml").write_text(f"nodes: [{{name: node0, address: '{address}'}}]\n")
    done = mplang("status", "--cluster", "c.yaml", "--tls", "certs/host", "--json", cwd=tmp_path)
    assert "its address begins with http://" in done.stdout


def test_an_option_that_no_backend_has_is_told(here, program):
    args = ("--cluster", 3, "--option", "tsl=x")
    code, errors = here("run", program, *args, "--backend", "http")
    assert code == 1
    assert "unexpected keyword argument 'tsl'; it takes" in errors


def test_workers_end_with_the_one_who_began_them(tmp_path):
    """The workers of a cluster exit when its parent process is killed."""
    up = begin("up", "-n", 1, cwd=tmp_path)
    up.stdout.readline()
    below = descendants(up.pid)
    assert len(below) >= 3  # of the cluster, front, of the front, and spare ones in time
    up.kill()
    up.communicate()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below))
