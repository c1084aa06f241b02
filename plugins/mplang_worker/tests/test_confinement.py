"""Code inside an engine: what it cannot reach, and what it is limited to."""

from __future__ import annotations

import errno
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from http_raw import MB
from intruder import run
from mplang_confinement import has_seccomp, landlock_version
from mplang_http import LocalCluster
from mplang_http.cli.status import cluster_status
from mplang_testing.waiting import DEADLINE, wait_until
from processes import engines_of, fork_server_of
from two_coordinators import certificates, worker_of_two

import mplang_core as mp
from mplang_core.errors import PartyError

REFUSED = (errno.EPERM, errno.EACCES)
pytestmark = pytest.mark.skipif(not has_seccomp(), reason="no system calls can be given up here")
PR_SET_NAME = 15  # of a thread; see prctl(2)
needs_landlock = pytest.mark.skipif(not landlock_version(), reason="the kernel has no Landlock")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("worker")


@pytest.fixture(scope="module")
def files(folder):
    return certificates(folder / "certs")


@pytest.fixture(scope="module")
def cluster(folder, files):
    """Return the worker alice, with two coordinators, whose engines run any Python."""
    limits = {"memory": 512 * MB, "threads": 300}
    with worker_of_two(files, log=str(folder), limits=limits, timeouts={"cancel": 1.0}) as made:
        yield made


@pytest.fixture
def host(cluster, files):
    """Return the host of the coordinator whose code runs."""
    with mp.connect("http", cluster.spec, tls=files["host"]) as made:
        yield made


@pytest.fixture
def other(cluster, files, host):
    """Return the process of the other coordinator's engine, and check its value afterwards."""
    front = cluster.workers[0].pid
    before = engines_of(front)
    with mp.connect("http", cluster.spec, tls=files["other"]) as made:
        with mp.with_ctx(made):
            value = mp.put("P0", np.float64([98.6, 1.25]))
        (engine,) = set(engines_of(front)) - set(before)
        yield engine
        np.testing.assert_array_equal(mp.fetch(made, value), [98.6, 1.25])
        assert engine in engines_of(front)


def act(host, code):
    """Run code in the engine of a host, and return the number of its error."""
    return int(mp.fetch(host, mp.evaluate(host, lambda x: mp.invoke(run, x, code=code), 0))[0])


def test_code_runs(host):
    assert act(host, "open('/proc/self/status').read()") == 0
    assert act(host, "os.listdir('/no/such/folder')") in (errno.ENOENT, *REFUSED)
    assert act(host, "threading.Thread(target=int).start()") == 0
    assert act(host, "os.kill(os.getpid(), 0)") == 0


@needs_landlock
def test_files_of_the_party(host, files, folder, cluster):
    secrets = [files["alice"].key, files["alice"].cert, str(folder / "alice.log")]
    secrets.append(str(cluster._path("alice")))
    for path in secrets:
        assert Path(path).exists()
        assert act(host, f"open({path!r}).read()") in REFUSED, path
        assert act(host, f"open({path!r}, 'a')") in REFUSED
    for path in ("/", "/tmp", "/root", "/home", str(folder)):
        assert act(host, f"os.listdir({path!r})") in REFUSED, path
    for path in (os.__file__, np.__file__, str(folder / "new"), "/tmp/new", "/dev/shm/new"):
        assert act(host, f"open({path!r}, 'a')") in REFUSED, path
    key = files["alice"].key
    for code in (
        f"os.unlink({key!r})",
        f"os.chmod({key!r}, 0o666)",
        f"os.chown({key!r}, 0, 0)",
        f"os.utime({key!r})",
        f"os.setxattr({key!r}, 'user.x', b'x')",
    ):
        assert act(host, code) in REFUSED, code
    assert Path(key).stat().st_mode & 0o777 == 0o600
    assert act(host, f"os.symlink('/', {str(folder / 'link')!r})") in REFUSED


@pytest.mark.parametrize(
    "name", ["mem", "environ", "maps", "fd/0", "cwd/", "root/etc/shadow", "exe"]
)
def test_memory_of_other_processes(host, other, cluster, name):
    """Of the front, which has the key, of the warm process, and of the other's engine."""
    front = cluster.workers[0].pid
    for pid in (front, fork_server_of(front), other):
        path = f"/proc/{pid}/{name}"
        assert Path(path).exists()
        read = f"open({path!r}, 'rb').read(1)"
        if name in ("fd/0", "cwd/"):
            read = f"os.readlink({path!r})" if name == "fd/0" else f"os.listdir({path!r})"
        assert act(host, read) in REFUSED, path
        assert act(host, f"syscall(310, {pid}, None, 0, None, 0, 0)") in REFUSED
        assert act(host, f"syscall(101, 16, {pid}, 0, 0)") in REFUSED  # PTRACE_ATTACH


@pytest.mark.parametrize(
    "code",
    [
        "socket.create_connection(('127.0.0.1', 9))",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
        "socket.socket(socket.AF_UNIX).connect('/run/x')",
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
        "socket.create_server(('127.0.0.1', 0))",
        "syscall(425, 8, ctypes.create_string_buffer(256))",  # io_uring, which could connect
        "subprocess.run(['/bin/true'])",
        "os.fork()",
        "os.execv('/bin/true', ['true'])",
        "os.sched_setaffinity(0, [0])",
        "os.setpriority(0, 0, -5)",
        "os.unshare(0x10000000) if hasattr(os, 'unshare') else syscall(272, 0x10000000)",
        "os.chroot('/usr')",
        "import fcntl; fcntl.fcntl(0, 8, 1)",  # F_SETOWN: whom signals of a file go to
        "import fcntl; fcntl.fcntl(0, 10, 9)",  # F_SETSIG
        "import fcntl; fcntl.ioctl(0, 0x8901, b'1234')",  # FIOSETOWN
        "syscall(157, 1, 0, 0, 0, 0)",  # to outlive its parent
        "syscall(29, 0, 4096, 0o1600)",  # shared memory of System V
        "syscall(321, 0, 0, 0)",  # bpf
    ],
    ids=lambda code: code[:30],
)
def test_what_leads_out(host, code):
    assert act(host, code) in REFUSED


def test_signals(host, other, cluster):
    front = cluster.workers[0].pid
    for pid in (front, fork_server_of(front), other, 1, 0, -1, os.getpid()):
        for number in (0, 9):
            assert act(host, f"os.kill({pid}, {number})") in REFUSED
        assert act(host, f"syscall(234, {pid}, {pid}, 0)") in REFUSED  # tgkill
        assert act(host, f"syscall(434, {pid}, 0)") in REFUSED  # pidfd_open


def test_all_threads_are_confined(host, other):
    """Also those that a library begins at the fork, before the engine gives up anything."""
    for task in Path(f"/proc/{other}/task").iterdir():
        lines = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines())
        found = {name: lines[name].strip() for name in ("NoNewPrivs", "Seccomp", "CapEff")}
        assert found == {"NoNewPrivs": "1", "Seccomp": "2", "CapEff": "0" * 16}, task


def test_the_log_is_not_the_engines(host, other, folder):
    """It has a pipe to the front, which names the session, and takes no more than so much."""
    log = folder / "alice.log"
    lines = "for _ in range(200_000): os.write(2, b'2026-01-01 ERROR alice: forged\\n')"
    assert act(host, "os.write(2, b'before all\\n'); os.ftruncate(2, 0)") == errno.EINVAL
    assert act(host, lines) == 0
    text = log.read_text()
    assert f"{host.session[:8]}: before all\n" in text
    assert "\n2026-01-01 ERROR alice: forged" not in text
    assert f"\n{host.session[:8]}: 2026-01-01 ERROR alice: forged" in text
    assert text.count("forged") < 150_000
    wait_until(lambda: act(host, "os.write(2, b'after\\n')") or "left out" in log.read_text())


def test_environment_and_command_line_hold_no_secret(host, other, files):
    for pid in (other,):
        for name in ("environ", "cmdline"):
            assert b"PRIVATE" not in Path(f"/proc/{pid}/{name}").read_bytes()
    key = Path(files["alice"].key).read_bytes().splitlines()[1]
    reads = f"assert {key!r} not in open('/proc/self/environ', 'rb').read()"
    assert act(host, reads) in (0, *REFUSED)


# -- limits


def crashes(cluster, files):
    return cluster_status(cluster.spec, files["host"])[0]["crashes"]


def ended(host, code):
    with pytest.raises(PartyError) as caught:
        act(host, code)
    return str(caught.value)


@pytest.mark.parametrize(
    "code",
    [
        "kept = [np.ones(1 << 24) for _ in range(100)]",
        "import mmap; kept = mmap.mmap(-1, 4 << 30, mmap.MAP_PRIVATE); kept[:] = bytes(4 << 30)",
    ],
    ids=["arrays", "mapped"],
)
def test_memory_has_a_limit(host, other, code):
    assert "failed in intruder.run" in ended(host, f"try:\n  {code}\nexcept OSError: 1 / 0")
    assert "failed in intruder.run" in ended(
        host, "import resource; resource.setrlimit(resource.RLIMIT_DATA, (1 << 60, 1 << 60))"
    )


def test_memory_that_no_limit_of_the_kernel_counts(host, other, cluster, files):
    """Shared memory is not data of a process; the front sees it."""
    before = crashes(cluster, files)
    found = ended(
        host,
        "import mmap\n"
        "kept = mmap.mmap(-1, 1 << 30)\n"
        "for i in range(0, 1 << 30, 4096): kept[i] = 1\n"
        "threading.Event().wait()",
    )
    assert "its engine was ended: it used more than 512 MB of memory (limits.memory)" in found
    assert crashes(cluster, files) == before + 1


def test_threads_have_a_limit(host, other):
    many = """
threading.stack_size(1 << 16)
for _ in range(400):
    threading.Thread(target=threading.Event().wait).start()
threading.Event().wait()
"""
    assert "more than 300 threads (limits.threads)" in ended(host, many)


def test_an_engine_that_ends_itself(host, other, cluster, files):
    before = crashes(cluster, files)
    found = ended(host, "ctypes.string_at(0)")
    assert "the engine of worker alice ended by SIGSEGV; its values are lost" in found
    assert crashes(cluster, files) == before + 1
    assert act(host, "pass") == 0  # in a new one
    assert "ended by signal 40" in ended(host, "os.kill(os.getpid(), 40); signal.pause()")
    assert act(host, "pass") == 0


@pytest.mark.parametrize("code", ["while True: pass", "ctypes.PyDLL(None).pause()"])
def test_a_job_that_is_cancelled_ends(host, other, cluster, code):
    """Asked, then, after its grace, with its engine; also if it keeps Python's lock."""
    import threading

    act(host, "pass")
    (engine,) = set(engines_of(cluster.workers[0].pid)) - {other}
    main = threading.main_thread().ident
    tasks = Path(f"/proc/{engine}/task")

    def interrupt():
        wait_until(lambda: any(each.read_text() == "begun\n" for each in tasks.glob("*/comm")))
        signal.pthread_kill(main, signal.SIGINT)

    with ThreadPoolExecutor(1) as pool:
        interrupted = pool.submit(interrupt)
        with pytest.raises(KeyboardInterrupt):
            act(host, f"ctypes.CDLL(None).prctl({PR_SET_NAME}, b'begun')\n{code}")
        interrupted.result(DEADLINE)
    wait_until(lambda: not Path(f"/proc/{engine}").exists())
    assert act(host, "pass") == 0


def test_a_job_has_a_longest_time(files):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        with (
            LocalCluster(1, imports=("intruder",), timeouts={"job": 1.0}) as cluster,
            mp.connect("http", cluster.spec) as host,
        ):
            found = ended(host, "threading.Event().wait()")
    assert "took longer than a job may here, 1 s" in found


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(6, marks=pytest.mark.long("a kernel sleeps for 6 s")),
        pytest.param(60, marks=pytest.mark.slow("a kernel sleeps for 60 s")),
    ],
)
def test_a_kernel_that_keeps_the_lock_is_waited_for(cluster, files, seconds):
    """For longer than the coordinator's patience, which is about the front."""
    with mp.connect("http", cluster.spec, tls=files["host"], patience=1.0) as host:
        begin = time.monotonic()
        assert act(host, f"ctypes.PyDLL(None).poll(None, 0, {seconds * 1000})") == 0
        assert time.monotonic() - begin > seconds
        with mp.with_ctx(host):
            x = mp.put("P0", np.ones(1 << 20))
        assert np.sum(mp.fetch(host, x)) == 1 << 20


def test_cpu_time_has_a_limit():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        with (
            LocalCluster(
                1, imports=("intruder",), limits={"cpu": 1}, quotas={"cores": 1}
            ) as cluster,
            mp.connect("http", cluster.spec) as host,
        ):
            assert act(host, "assert len(os.sched_getaffinity(0)) == 1") == 0
            assert "ended by SIG" in ended(host, "while True: pass")
            assert act(host, "pass") == 0
