"""A plugin's library in a process of its own, which it declares: the worker has no line of it."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import numpy as np
import pytest
import toy_native
from fault_testbed import X, works
from log_reading import LogReader
from mplang_confinement import has_seccomp
from mplang_http import LocalCluster
from mplang_http.cli.status import cluster_status
from mplang_testing.waiting import NEVER, wait_until
from mplang_worker.base.allowed_plugins import installed_plugins
from processes import engine_of, mpc_processes_of

import mplang_core as mp
from mplang_core.errors import PartyError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("toy")


@pytest.fixture(scope="module")
def workers(folder):
    """Return workers with TLS, which are insecure, so that SPU's processes may use the network."""
    toy_native.install(folder)
    paths = [str(folder), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        with LocalCluster(
            2,
            tls=True,
            plugins={**installed_plugins(), "mplang-toy": "1.0"},
            insecure=True,
            imports=("toy_native", "mplang_testing.dialect"),
            timeouts={"cancel": 2.0},
            log=str(folder),
            log_level="info",
        ) as cluster:
            yield cluster


@pytest.fixture
def host(workers):
    """Return a host whose cluster has no device that needs a native service."""
    devices = {f"P{i}": {"kind": "PPU", "members": [f"node{i}"]} for i in range(2)}
    nodes = [{"name": node.name, "address": node.address} for node in workers.spec.nodes]
    spec = mp.ClusterSpec.from_dict({"nodes": nodes, "devices": devices})
    with mp.connect("http", spec, tls=workers.tls, patience=NEVER) as host:
        yield host


def each_ranks(op, **attrs):
    """Return a program that runs an op on 40 at party 0 and 2 at party 1."""

    def program():
        x = mp.pconv([mp.constant(np.int64(40), parties=0), mp.constant(np.int64(2), parties=1)])
        return mp.simp.pcall_static((0, 1), op, x, **attrs)

    return program


adds = each_ranks(toy_native.total)


def added(host):
    return list(map(int, mp.fetch(host, mp.evaluate(host, adds))))


def attempted(host, code, rank=0):
    """Return what code finds in the process of the service at one party."""

    def program():
        x = mp.constant(np.int64(0), parties=rank)
        return mp.simp.pcall_static((rank,), toy_native.attempt, x, code=code)

    return int(mp.fetch(host, mp.evaluate(host, program))[rank])


def services(workers, host):
    return [row["native"] for row in cluster_status(workers.spec, workers.tls)]


def test_a_simulator_runs_it_in_its_own_process():
    with mp.Simulator(mp.ClusterSpec.simple(2)) as sim:
        assert added(sim) == [42, 42]


def test_it_gets_its_process_with_the_first_program_that_needs_it(workers, host, folder):
    pids = [worker.pid for worker in workers.workers]
    assert mp.fetch(host, mp.evaluate(host, lambda: mp.constant(7)))
    assert [mpc_processes_of(pid) for pid in pids] == [[], []]
    assert services(workers, host) == ["", ""]
    assert added(host) == [42, 42]
    assert [len(mpc_processes_of(pid)) for pid in pids] == [1, 1]
    assert services(workers, host) == ["toy", "toy"]
    told = "the native service toy gets plain data of this party"
    LogReader(folder / "node0.log", begin=0).wait_for(told)


def test_its_messages_are_on_links_of_its_own_and_in_the_recording(host):
    with mp.record(host) as recording:
        assert added(host) == [42, 42]
    assert recording.links()[0, 1].bytes > 0
    assert [span.facts["bytes"] for span in recording.spans if span.kind == "send"] != []


def test_one_without_links_reaches_nobody(workers, host):
    with pytest.raises(PartyError, match="lost its link"):
        mp.evaluate(host, each_ranks(toy_native.alone))

    def alone():
        x = mp.constant(np.int64(7), parties=0)
        return mp.simp.pcall_static((0,), toy_native.alone, x)

    assert int(mp.fetch(host, mp.evaluate(host, alone))[0]) == 7


def test_one_that_no_worker_has_is_named_with_the_remedy(host):
    assert added(host) == [42, 42]
    with pytest.raises(PartyError) as caught:
        mp.evaluate(host, each_ranks(toy_native.missing))
    assert re.search(r"no native service 'toy_missing'; it has .*spu, .*toy,", str(caught.value))
    assert "Its owner has to install its package" in str(caught.value)
    assert added(host) == [42, 42]  # the session is as it was before


def test_one_that_does_not_start_harms_no_other(workers, host, folder):
    assert added(host) == [42, 42]
    with pytest.raises(PartyError, match="an MPC process does not start"):
        mp.evaluate(host, each_ranks(toy_native.broken))
    why = "a native service is a function or a NativeSpec, got 5"
    LogReader(folder / "node0.log", begin=0).wait_for(why)
    assert added(host) == [42, 42]


@pytest.fixture
def beside_spu(workers):
    """Return a host whose session has SPU's process and the plugin's, and these of each worker."""
    with mp.connect("http", workers.spec, tls=workers.tls, patience=NEVER) as host:
        before = [set(mpc_processes_of(worker.pid)) for worker in workers.workers]
        assert added(host) == [42, 42]
        pairs = zip(before, workers.workers, strict=True)
        processes = [(*spu, *set(mpc_processes_of(worker.pid)) - spu) for spu, worker in pairs]
        yield host, processes


def status(pid, *fields):
    """Return what the kernel says of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    told = dict(line.split(":", 1) for line in lines)
    return [told[field].strip() for field in fields]


@pytest.mark.skipif(not has_seccomp(), reason="no system calls can be given up here")
def test_it_is_confined_and_limited_as_that_of_spu(workers, beside_spu):
    host, processes = beside_spu
    for spu, toy in processes:
        limits = [Path(f"/proc/{pid}/limits").read_text() for pid in (spu, toy)]
        assert limits[0] == limits[1]
        fields = "Seccomp", "NoNewPrivs", "CapEff", "Uid"
        assert status(spu, *fields) == status(toy, *fields)
        assert status(toy, "Seccomp", "NoNewPrivs") == ["2", "1"]
    for what in (
        "__import__('socket').socket()",  # SPU's may have one, as it says so
        "os.execv('/bin/true', ['true'])",
        f"os.kill({engine_of(workers.workers[0].pid)}, 9)",
        f"open({str(workers.tls.key)!r})",
    ):
        code = f"try:\n    {what}\nexcept OSError as error:\n    found = error.errno"
        assert attempted(host, code) in (errno.EPERM, errno.EACCES), what


def test_what_ends_it_ends_no_engine_and_no_other_service(workers, beside_spu):
    host, processes = beside_spu
    x = mp.evaluate(host, lambda: mp.seal(mp.put("P0", X)))
    front = workers.workers[1].pid
    (spu, toy), engine = processes[1], engine_of(front)
    with pytest.raises(PartyError, match="the MPC process of worker node1 ended") as caught:
        attempted(host, "ctypes.string_at(0)", rank=1)
    assert (caught.value.rank, caught.value.code) == (1, "R017")
    assert added(host) == [42, 42]
    assert engine_of(front) == engine
    assert spu in mpc_processes_of(front)
    assert toy not in mpc_processes_of(front)
    np.testing.assert_allclose(mp.fetch(host, mp.evaluate(host, mp.reveal, x))[0], X, atol=1e-4)
    works(host)


def test_a_call_that_hangs_ends_once_its_run_was_aborted(workers, beside_spu):
    host, processes = beside_spu
    front = workers.workers[0].pid
    (spu, toy), engine = processes[0], engine_of(front)

    def program():
        x = mp.constant(np.int64(0), parties=0)
        y = mp.constant(np.int64(0), parties=1)
        hung = mp.simp.pcall_static((0,), toy_native.attempt, x, code="hang()")
        failed = mp.simp.pcall_static((1,), toy_native.attempt, y, code="1 / 0")
        return hung, failed

    with pytest.raises(PartyError):
        mp.evaluate(host, program)
    wait_until(lambda: toy not in mpc_processes_of(front), "another process takes its place")
    assert added(host) == [42, 42]
    assert engine_of(front) == engine
    assert spu in mpc_processes_of(front)


def test_one_that_waits_for_a_peer_ends_when_that_fails(host):
    """Party 0 waits for the number of party 1, which fails before it sends it."""

    def program():
        x = mp.pconv([mp.constant(np.int64(40), parties=0), mp.constant(np.int64(2), parties=1)])
        failed = mp.simp.pcall_static((1,), toy_native.attempt, x, code="1 / 0")
        both = mp.pconv([mp.constant(np.int64(40), parties=0), failed])
        return mp.simp.pcall_static((0, 1), toy_native.total, both)

    with pytest.raises(PartyError) as caught:
        mp.evaluate(host, program)
    assert caught.value.rank == 1
    assert added(host) == [42, 42]
