"""Failures within SPU over channels: all parties end at once, and the next run works."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import numpy as np
import pytest
from mplang_simulator import ThreadCommunicator
from mplang_spu.channel import MPLangChannel
from mplang_testing.waiting import DEADLINE, NEVER, in_time, pause, wait_until
from spu_links import X, check, cluster

import mplang_core as mp
from mplang_core.errors import CommError, PartyError
from mplang_core.simp import WorkerInterpreter

pytestmark = [
    pytest.mark.once,  # it is about links, some at ports of their own
    pytest.mark.usefixtures("environment"),
]


class Trouble(MPLangChannel):
    """Channel that fails at one party, some messages after the start of a job."""

    at: int
    after: int

    def _count(self):
        cls = type(self)
        if self._local_rank == cls.at:
            cls.after -= 1
            if cls.after == 0:
                pause(0.3, "work of SPU, for which the others wait")
                raise OSError("unplugged")

    def Send(self, tag, data):
        self._count()
        super().Send(tag, data)

    SendAsync = SendAsyncThrottled = Send

    def Recv(self, tag):
        self._count()
        return super().Recv(tag)


@pytest.mark.parametrize("mode", ["standard", "launch"])
@pytest.mark.parametrize("after", [1, 3, 40])
@pytest.mark.parametrize(
    ("parties", "protocol"),
    [
        (2, "SEMI2K"),
        (3, "ABY3"),
        pytest.param(
            2, "CHEETAH", marks=pytest.mark.slow("CHEETAH sets up oblivious transfers: 4 s")
        ),
        pytest.param(3, "SEMI2K", marks=pytest.mark.slow("six cases more")),
    ],
)
def test_a_party_that_fails_within_spu_ends_all_at_once(
    monkeypatch, parties, protocol, after, mode
):
    monkeypatch.setattr("mplang_spu.channel.MPLangChannel", Trouble)
    monkeypatch.setattr(Trouble, "at", parties - 1, raising=False)
    monkeypatch.setattr(Trouble, "after", 0, raising=False)
    running = set()
    evaluate = WorkerInterpreter.evaluate

    def watched(self, *args):
        running.add(threading.current_thread())
        try:
            return evaluate(self, *args)
        finally:
            running.remove(threading.current_thread())

    monkeypatch.setattr(WorkerInterpreter, "evaluate", watched)
    spec = cluster(parties, protocol=protocol, use_mplang_channel=True)
    with mp.Simulator(spec, timeout=NEVER) as sim:
        sealed = mp.evaluate(sim, lambda: mp.seal(X))
        compiled = mp.compile(
            lambda x: mp.reveal(mp.device("SP0")(lambda v: v > jnp.sort(v))(x)),
            sealed,
            cluster_spec=spec,
        )
        mp.evaluate(sim, compiled, sealed, mode=mode)
        Trouble.after = after
        failed = pytest.raises(PartyError, match=f"party {parties - 1} failed in spu.run_jax")
        with in_time(), failed:
            mp.evaluate(sim, compiled, sealed, mode=mode)
        assert Trouble.after <= 0
        wait_until(lambda: not running, "that all parties have ended")
        found = mp.fetch(sim, mp.evaluate(sim, compiled, sealed, mode=mode))
        np.testing.assert_array_equal(found[0], np.sort(X) < X)


def test_messages_that_come_twice_and_in_another_order_do_no_harm(monkeypatch):
    """Transports that retry, or use several routes, may duplicate and reorder."""
    send = ThreadCommunicator.send
    threads = ThreadPoolExecutor(8)

    def unruly(self, to_rank, key, data):
        def later():
            pause(hash(key) % 3 / 1000, "routes of different length")
            with contextlib.suppress(CommError):  # the run is over
                send(self, to_rank, key, data)

        if "|" in key:
            threads.submit(later)
            threads.submit(later)
        else:
            send(self, to_rank, key, data)

    monkeypatch.setattr(ThreadCommunicator, "send", unruly)
    spec = cluster(3, protocol="ABY3", use_mplang_channel=True)
    with mp.Simulator(spec, timeout=DEADLINE) as sim:
        for _ in range(2):
            check(sim)
    threads.shutdown()


def test_a_peer_that_sends_rubbish_is_named(monkeypatch):
    send = ThreadCommunicator.send

    def rubbish(self, to_rank, key, data):
        send(self, to_rank, key, 42 if "|" in key and self.rank == 2 else data)

    monkeypatch.setattr(ThreadCommunicator, "send", rubbish)
    spec = cluster(3, protocol="ABY3", use_mplang_channel=True)
    with (
        mp.Simulator(spec, timeout=DEADLINE) as sim,
        pytest.raises(PartyError, match=r"expected bytes of SPU from party 2, got int"),
    ):
        check(sim)


@pytest.mark.parametrize(
    "rubbish",
    [
        None,
        *(
            pytest.param(each, marks=pytest.mark.long("a party waits 2 s for another"))
            for each in (42, np.zeros(3), b"")
        ),
        b"\xff\xfe",
        b"channels|x" * 9,
    ],
)
def test_a_peer_that_lies_about_its_link_ends_the_run_in_time(monkeypatch, rubbish):
    send = ThreadCommunicator.send

    def lies(self, to_rank, key, data):
        send(self, to_rank, key, rubbish if key.endswith("?link") and self.rank == 1 else data)

    with mp.Simulator(cluster(2, protocol="SEMI2K"), timeout=DEADLINE) as sim:
        check(sim)
        for comm, worker in zip(sim._parties._comms, sim._parties.workers, strict=True):
            comm.timeout = worker.timeout = 2.0  # from here on, all fails
        monkeypatch.setattr(ThreadCommunicator, "send", lies)
        with pytest.raises(PartyError):
            check(sim)
