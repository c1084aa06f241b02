"""Programs over each kind of link, and links that are kept as long as all are in step."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import spu.libspu as libspu
from brpc_processes import computes_also_after_a_failure, in_a_process
from mplang_simulator import ThreadCommunicator
from mplang_spu.config import ENV
from mplang_testing.waiting import DEADLINE
from spu_links import PROTOCOLS, X, check, cluster, device, links, program

import mplang_core as mp
from mplang_core.simp import WorkerInterpreter

pytestmark = [
    pytest.mark.once,  # it is about links, some at ports of their own
    pytest.mark.usefixtures("environment"),
]


# -- programs

FEW_CHEETAH = ("standard", "channels")  # the others take as long
TRANSFERS = "CHEETAH sets up oblivious transfers: 4 s"


@pytest.mark.parametrize(
    ("parties", "protocol", "mode", "way"),
    [
        pytest.param(
            *(*each, mode, way),
            marks=[pytest.mark.slow(TRANSFERS)]
            * (each[1] == "CHEETAH" and (mode, way) != FEW_CHEETAH),
        )
        for each in PROTOCOLS
        for mode in ("standard", "launch")
        for way in ("channels", "memory")
    ],
)
def test_each_way_computes(monkeypatch, parties, protocol, mode, way):
    unused = {"channels": ["create_mem", "create_brpc"], "memory": ["create_with_channels"]}[way]
    for name in unused:
        monkeypatch.setattr(libspu.link, name, None)
    config = {"protocol": protocol, "use_mplang_channel": way == "channels"}
    with mp.Simulator(cluster(parties, **config), timeout=DEADLINE) as sim:
        for _ in range(2):
            check(sim, mode)


@pytest.mark.parametrize(
    ("parties", "protocol"),
    [
        (2, "SEMI2K"),
        (3, "ABY3"),
        pytest.param(
            2,
            "CHEETAH",
            marks=pytest.mark.slow("CHEETAH sets up oblivious transfers, in new processes"),
        ),
    ],
)
def test_brpc_computes_also_after_a_failure(parties, protocol):
    in_a_process(computes_also_after_a_failure, parties, protocol)


# -- links are kept as long as all members are in step


WAYS = pytest.mark.parametrize("way", ["channels", "memory"])


@WAYS
def test_a_link_serves_many_runs(monkeypatch, way):
    spec = cluster(3, protocol="ABY3", use_mplang_channel=way == "channels")
    with mp.Simulator(spec, timeout=DEADLINE) as sim:
        check(sim, "standard")
        first = links(sim)
        assert first == [first[0]] * 3
        monkeypatch.setattr(libspu.link, "create_with_channels", None)
        monkeypatch.setattr(libspu.link, "create_mem", None)
        check(sim, "standard")
        assert links(sim) == first


def test_no_message_is_left_behind():
    spec = cluster(2, protocol="CHEETAH", use_mplang_channel=True)
    with mp.Simulator(spec, timeout=DEADLINE) as sim:
        kept = []
        for comm in sim._parties._comms:
            original = comm.forget

            def forget(place, comm=comm, original=original):
                original(place)
                run = comm._run(place)
                kept.append((len(run.inbox), sum(map(len, run.seen.values()))))

            comm.forget = forget
        check(sim)
        assert len(kept) == 4
        assert max(kept) < (1, 20)  # the messages of the shuffles around


@WAYS
def test_a_member_that_lost_its_link_has_all_make_a_new_one(way):
    spec = cluster(3, protocol="ABY3", use_mplang_channel=way == "channels")
    with mp.Simulator(spec, timeout=DEADLINE) as sim:
        check(sim)
        first = links(sim)
        sim._parties.workers[1].resources.clear()
        check(sim)
        assert links(sim)[0] == links(sim)[1] == links(sim)[2] != first[0]


@WAYS
def test_devices_that_share_members_take_turns_in_two_programs(monkeypatch, way):
    monkeypatch.setenv(ENV, "1" if way == "channels" else "0")
    devices = {
        "A": device([0, 1]),
        "B": device([1, 2], "CHEETAH"),
        "C": device([2, 0], "CHEETAH"),
        "D": device([0, 1, 2], "ABY3"),
        "E": device([0, 1], "CHEETAH"),  # of the same members as A
    }
    with mp.Simulator(cluster(3, devices), timeout=DEADLINE) as sim:

        def turns(names):
            values = {name: mp.seal(X, name) for name in names}
            for _ in range(3):
                for name in names:
                    values[name] = mp.device(name)(lambda v: v * v - v)(values[name])
            return tuple(mp.reveal(value) for value in values.values())

        expected = X
        for _ in range(3):
            expected = expected * expected - expected
        for names in ("ABCDE", "EDCBA"):
            for found in mp.fetch(sim, mp.evaluate(sim, lambda n=names: turns(n), mode="launch")):
                np.testing.assert_allclose(found[0], expected, rtol=0.01, atol=0.05)
        assert [len(names) for names in links(sim)] == [4, 4, 3]


@WAYS
@pytest.mark.parametrize("protocol", ["ABY3", "SEMI2K"])
def test_runs_at_the_same_time_have_links_of_their_own(protocol, way):
    """Each party runs four programs at once, each party starting them in another order."""
    spec = cluster(3, protocol=protocol, use_mplang_channel=way == "channels")
    traced = mp.trace(mp.TraceContext(spec), program).program
    comms = ThreadCommunicator.connected(3, timeout=DEADLINE)
    workers = [
        WorkerInterpreter(comm, session="s", insecure=True, timeout=DEADLINE) for comm in comms
    ]
    ran = [f"{protocol}-{way}-{i}" for i in range(4)]
    for comm in comms:
        for run in ran:
            comm.open(run)
    for _ in range(2):
        with ThreadPoolExecutor(12) as pool:
            jobs = [
                pool.submit(worker.evaluate, traced, [], run)
                for worker in workers
                for run in ran[worker.rank :] + ran[: worker.rank]
            ]
            for job in jobs:
                np.testing.assert_allclose(job.result()[0], X * 2 + 1, atol=1e-3)
        ran = [f"{run}-again" for run in ran]
        for comm in comms:
            for run in ran:
                comm.open(run)
