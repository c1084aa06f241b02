"""Cgroups of engines: all memory counts, and its excess is told by name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from http_raw import MB, RawWorker
from mplang_cli.doctor import examine
from mplang_http import LocalCluster
from mplang_testing.waiting import DEADLINE, wait_until
from mplang_worker.base.config import EngineConfig
from mplang_worker.process import cgroups
from mplang_worker.process.cgroups import Cgroups, engine_cgroups, why_not
from processes import engines_of, fork_server_of
from test_confinement import REFUSED, act, ended, needs_landlock
from two_coordinators import certificates, worker_of_two

import mplang_core as mp
from mplang_core.errors import PartyError

IMPOSSIBLE = why_not()
needs_cgroups = pytest.mark.skipif(bool(IMPOSSIBLE), reason=f"no cgroups: {IMPOSSIBLE}")
WRITE = "file = os.memfd_create('kept')\nfor _ in range({mb}): os.write(file, bytes(1 << 20))\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return certificates(tmp_path_factory.mktemp("certs"))


@pytest.fixture(scope="module")
def cluster(files):
    """Return the worker alice, with two coordinators, whose engines run any Python."""
    limits, quotas = {"memory": 256 * MB}, {"memory": 300 * MB}
    with worker_of_two(files, limits=limits, quotas=quotas) as made:
        yield made


@pytest.fixture
def host(cluster, files):
    with mp.connect("http", cluster.spec, tls=files["host"]) as made:
        yield made


@pytest.fixture
def other(cluster, files):
    """Return the other coordinator's engine, and check afterwards that it is unharmed."""
    before = engines_of(cluster.workers[0].pid)
    with mp.connect("http", cluster.spec, tls=files["other"]) as made:
        with mp.with_ctx(made):
            value = mp.put("P0", np.float64([98.6, 1.25]))
        (engine,) = set(engines_of(cluster.workers[0].pid)) - set(before)
        yield engine
        np.testing.assert_array_equal(mp.fetch(made, value), [98.6, 1.25])
        assert engine in engines_of(cluster.workers[0].pid)


def memory_cgroup(pid: int) -> Path:
    """Return the cgroup that has the memory of a process, in version 1."""
    lines = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    (path,) = (path for _, controllers, path in lines if controllers == "memory")
    return cgroups.ROOT / "memory" / path.lstrip("/")


def base_of(cluster) -> Path:
    """Return the cgroup of a worker."""
    front = cluster.workers[0].pid
    return memory_cgroup(front) / f"{cgroups.PREFIX}{front}"


# -- memory


@needs_cgroups
def test_a_memory_file_that_is_never_mapped_counts(host, other):
    found = ended(host, WRITE.format(mb=1500) + "threading.Event().wait()")
    assert "its engine was ended: it used more than 256 MB of memory (limits.memory)" in found
    assert act(host, "pass") == 0  # in a new one


@needs_cgroups
def test_memory_within_the_limit_is_usable(host, other):
    assert act(host, WRITE.format(mb=250) + "os.close(file)") == 0
    assert act(host, "import builtins; builtins.kept = np.ones(240 << 17)") == 0


@needs_cgroups
def test_memory_files_of_all_sessions_have_a_quota(cluster, files, host, other):
    """Each of two engines is within its limit; together they are not."""
    told = []
    with mp.connect("http", cluster.spec, tls=files["host"]) as second:
        for made in (host, second, host, second):  # the kernel ends either, whoever has more mapped
            for code in ("import builtins; builtins.x = np.ones(20 << 17)", WRITE.format(mb=250)):
                try:
                    act(made, code)
                except PartyError as error:  # of what ended it while the other one wrote, too
                    told.append(str(error))
    assert any("engines used more than 300 MB (quotas.memory)" in each for each in told), told


@needs_cgroups
def test_an_engine_that_is_killed_otherwise_is_told_so(cluster, host, other):
    act(host, "pass")
    (engine,) = set(engines_of(cluster.workers[0].pid)) - {other}
    os.kill(engine, signal.SIGKILL)
    assert "ended by SIGKILL; its values are lost" in ended(host, "pass")


# -- who can change them


@needs_cgroups
@needs_landlock
def test_engines_cannot_change_cgroups(cluster, host, other):
    group = memory_cgroup(other)
    assert group.parent.parent == base_of(cluster)
    act(host, "pass")
    (mine,) = set(engines_of(cluster.workers[0].pid)) - {other}
    for path in (memory_cgroup(mine), group, group.parent, base_of(cluster), cgroups.ROOT):
        assert act(host, f"os.listdir({str(path)!r})") == 0
        assert act(host, f"os.mkdir({str(path / 'new')!r})") in REFUSED, path
        assert act(host, f"os.rmdir({str(path)!r})") in REFUSED, path
        if path != cgroups.ROOT:
            for name in ("memory.limit_in_bytes", "cgroup.procs", "tasks", "memory.force_empty"):
                for prefix in ("", "/proc/self/root"):
                    code = f"os.open({prefix + str(path / name)!r}, os.O_WRONLY)"
                    assert act(host, code) in REFUSED, code


@needs_cgroups
def test_names_of_cgroups_tell_nothing(cluster, host, other):
    """Engines can list them, and a link's name is what reaches an engine's handshake."""
    names = [path.name for path in base_of(cluster).rglob("*/")]
    assert len([name for name in names if name.startswith("engine-")]) == 2
    assert not any("host" in name or "other" in name or len(name) > 30 for name in names)


@needs_cgroups
def test_an_engine_is_in_its_cgroup_before_it_is_ready(cluster, host, other):
    front = cluster.workers[0].pid
    for engine in engines_of(front):
        assert memory_cgroup(engine).parent.parent == base_of(cluster)
    assert memory_cgroup(fork_server_of(front)) == memory_cgroup(front)


# -- nothing is left behind


@pytest.mark.long("200 sessions, each of which starts an engine")
@needs_cgroups
def test_sessions_leave_no_cgroup():
    with LocalCluster(["alice"]) as made:
        worker, base = RawWorker(made), base_of(made)
        for _ in range(200):
            name = worker.open()
            assert [path.name[:6] for path in base.glob("*/*/")] == ["engine"]
            worker.ask("DELETE", f"/v1/sessions/{name}")
            wait_until(lambda: not list(base.glob("*/")))
        worker.open()
    wait_until(lambda: not base.exists())


@needs_cgroups
def test_what_a_killed_worker_left_is_removed_by_the_next():
    with LocalCluster(["alice"]) as made:
        RawWorker(made).open()
        base = base_of(made)
        made.signal(0, signal.SIGKILL)
        made.workers[0].wait(DEADLINE)
        assert base.exists()
        wait_until(lambda: not any(path.read_text() for path in base.glob("*/*/cgroup.procs")))
        with LocalCluster(["bob"]) as second:
            assert base_of(second).exists()
            assert not base.exists()


@needs_cgroups
def test_engines_start_while_others_of_their_coordinator_end():
    ended_process = subprocess.Popen([sys.executable, "-c", ""])
    ended_process.wait()

    def come_and_go(cgroups, number):
        for time in range(200):
            cgroups.place("host", f"link-{number}-{time}", ended_process.pid, 0).remove()

    with engine_cgroups(EngineConfig(name="alice"), 0) as made, ThreadPoolExecutor() as pool:
        list(pool.map(lambda number: come_and_go(made, number), range(4)))
        assert not list(made._base.glob("*/"))


# -- where none can be made


def test_without_cgroups_a_worker_runs_as_before(monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    with engine_cgroups(EngineConfig(name="alice"), 1) as made:
        assert made is None
    assert "is not delegated to this user" in why_not()
    assert not [record for record in caplog.records if record.levelname not in ("DEBUG", "INFO")]
    assert not list(tmp_path.iterdir())


def test_the_doctor_tells_what_is_not_held(monkeypatch, tmp_path):
    def row():
        (found,) = (row for row in examine(None) if "memory of engines" in str(row))
        return found

    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    assert row()["status"] == "failed"  # a protection that is missing is not well
    assert "that an engine writes and does not map" in row()["detail"]
    monkeypatch.setattr("mplang_worker.process.cgroups.why_not", lambda: "")
    assert (row()["status"], row()["detail"]) == ("ok", "cgroups")


# -- version 2, whose files are made here, as its controllers are taken by version 1 elsewhere


class Kernel:
    """Tree of cgroups in a folder: files, moves of processes, and what the kernel refuses."""

    CONTENT: ClassVar = {
        "cgroup.procs": "", "cgroup.controllers": "cpu memory pids", "cgroup.subtree_control": "",
        "memory.max": "max", "memory.events": "low 0\noom 0\noom_kill 0",
        "memory.events.local": "low 0\noom 0\noom_kill 0", "memory.swap.max": "max",
        "memory.oom.group": "0", "pids.max": "max",
    }  # fmt: skip

    def __init__(self, root: Path, monkeypatch) -> None:
        self.root, self.own = root, root / "unit"
        self.written: list[tuple[str, str]] = []
        self._mkdir, self._rmdir = os.mkdir, os.rmdir
        (root / "membership").write_text("1:name=systemd:/unit\n0::/unit\n")
        monkeypatch.setattr(cgroups, "ROOT", root)
        monkeypatch.setattr(cgroups, "MEMBERSHIP", root / "membership")
        monkeypatch.setattr(cgroups, "TRIES", 2)
        monkeypatch.setattr(cgroups, "_write", self.write)
        monkeypatch.setattr(os, "mkdir", self.mkdir)
        monkeypatch.setattr(os, "rmdir", self.rmdir)
        self.own.mkdir()
        (self.own / "cgroup.procs").write_text(f"{os.getpid()}\n77\n")

    def mkdir(self, path, mode=0o777, *, dir_fd=None):
        self._mkdir(path, mode)
        for name, text in self.CONTENT.items():
            Path(path, name).write_text(text)

    def rmdir(self, path, *, dir_fd=None):
        path = Path(path)
        if (path / "cgroup.procs").read_text() or list(path.glob("*/")):
            raise OSError(16, "busy")
        for name in self.CONTENT:
            (path / name).unlink()
        self._rmdir(path)

    def write(self, path, value):
        self.written.append((str(path.relative_to(self.root)), str(value)))
        if not path.exists():
            raise FileNotFoundError(path)
        procs = path.parent / "cgroup.procs"
        if path.name == "cgroup.subtree_control":
            if "+" in value and procs.read_text():
                raise OSError(16, "processes are in it")
            value = "" if "-" in value else value
        elif path.name == "cgroup.procs":
            if (path.parent / "cgroup.subtree_control").read_text():
                raise OSError(16, "it has limited children")
            for each in self.root.rglob("cgroup.procs"):
                pids = set(each.read_text().split()) - {str(value)}
                each.write_text("\n".join(sorted(pids)))
            value = procs.read_text() + f"\n{value}"
        path.write_text(str(value))

    def ends(self, pid):
        """End a process."""
        for each in self.root.rglob("cgroup.procs"):
            each.write_text("\n".join(set(each.read_text().split()) - {str(pid)}))


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    return Kernel(tmp_path, monkeypatch)


CONFIG = EngineConfig(
    name="alice", limits={"memory": 100 * MB, "threads": 50}, quotas={"memory": 150 * MB}
)


def test_version_2_makes_a_tree(kernel):
    with engine_cgroups(CONFIG, 77) as made:
        assert (kernel.own / "cgroup.subtree_control").read_text() == "+memory +pids"
        assert (kernel.own / "front/cgroup.procs").read_text().split() == [str(os.getpid()), "77"]
        kernel.written.clear()
        first = made.place("../host", "link", 100, 7 * MB)
        assert first.path.relative_to(kernel.own).parts[0].startswith("coordinator-")
        group, engine = first.path.parent.name, first.path.name
        assert kernel.written == [
            (f"unit/{group}/cgroup.subtree_control", "+memory +pids"),
            (f"unit/{group}/{engine}/memory.max", str(107 * MB)),
            (f"unit/{group}/{engine}/pids.max", "51"),
            (f"unit/{group}/{engine}/memory.oom.group", "1"),
            (f"unit/{group}/{engine}/memory.swap.max", "0"),
            (f"unit/{group}/{engine}/memory.memsw.limit_in_bytes", str(108 * MB)),  # not there
            (f"unit/{group}/memory.max", str(157 * MB)),
            (f"unit/{group}/{engine}/cgroup.procs", "100"),  # after all limits
        ]
        second = made.place("../host", "another", 101, 7 * MB)
        other = made.place("other", "link", 102, 7 * MB)
        assert second.path.parent == first.path.parent != other.path.parent
        assert (first.path.parent / "memory.max").read_text() == str(164 * MB)
        kernel.ends(100)
        first.remove()
        assert (second.path.parent / "memory.max").read_text() == str(157 * MB)
        kernel.ends(101)
        second.remove()
        assert not second.path.parent.exists()
        for pid in (102, 77):
            kernel.ends(pid)
    assert [path.name for path in kernel.own.glob("*/")] == []
    assert (kernel.own / "cgroup.procs").read_text().split() == [str(os.getpid())]


def test_version_2_tells_which_limit_was_exceeded(kernel):
    with engine_cgroups(CONFIG, 77) as made:
        engine = made.place("host", "link", 100, 0)
        assert engine.excess() == ""
        (engine.path / "memory.events").write_text("oom 1\noom_kill 1\n")
        assert engine.excess() == "the memory of the worker or the machine was used up"
        (engine.path.parent / "memory.events.local").write_text("oom 1\noom_kill 0\n")
        assert "(quotas.memory)" in engine.excess()
        (engine.path / "memory.events.local").write_text("oom 1\noom_kill 1\n")
        assert engine.excess() == "it used more than 100 MB of memory (limits.memory)"
        kernel.ends(100)


def test_version_2_is_left_alone_where_others_are(kernel):
    (kernel.own / "cgroup.procs").write_text(f"{os.getpid()}\n77\n78\n")
    with engine_cgroups(CONFIG, 77) as made:
        assert made is None
    assert kernel.written == []
    assert "other processes" in why_not(77)


def test_version_2_needs_the_memory_controller(kernel):
    (kernel.own / "cgroup.controllers").write_text("cpu pids")
    assert "no memory controller" in why_not(77)


def test_version_2_goes_back_where_the_kernel_refuses(kernel, monkeypatch):
    def refuse(path, sign="+"):
        if sign == "+":
            raise PermissionError(13, "refused")

    monkeypatch.setattr(cgroups, "_enable", refuse)
    with engine_cgroups(CONFIG, 77) as made:
        assert made is None
    assert not (kernel.own / "front").exists()
    assert len((kernel.own / "cgroup.procs").read_text().split()) == 2


def test_an_engine_that_cannot_be_limited_leaves_nothing(kernel, monkeypatch):
    with engine_cgroups(CONFIG, 77) as made:
        write = cgroups._write

        def refuse(path, value):
            if path.name == "cgroup.procs" and value == 100:
                raise PermissionError(13, "refused")
            write(path, value)

        monkeypatch.setattr(cgroups, "_write", refuse)
        with pytest.raises(PermissionError):
            made.place("host", "link", 100, 0)
        assert isinstance(made, Cgroups)
        assert not list(kernel.own.glob("coordinator-*"))
