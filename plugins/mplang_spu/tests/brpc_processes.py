"""Programs over BRPC links, in processes of their own: its threads may end one, even later."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import pytest
from mplang_spu.link import LinkCommunicator
from mplang_testing.waiting import DEADLINE
from spu_links import addresses, at_all, check, cluster, fails

import mplang_core as mp
from mplang_core.errors import AdmissionError, PartyError


def in_a_process(work, *args):
    """Call a function of this module in a new process, and return its result."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *args).result(2 * DEADLINE)


def computes_also_after_a_failure(parties, protocol):
    config = {"protocol": protocol, "use_mplang_channel": False}
    spec = cluster(parties, brpc_addresses=addresses(parties), **config)
    with mp.Simulator(spec, timeout=DEADLINE) as sim:
        check(sim)
        with pytest.raises(PartyError):  # a failure leaves links that still listen
            mp.evaluate(sim, lambda: mp.simp.pcall_static((0,), fails, mp.constant(1)))
        check(sim)


def needs_an_insecure_worker(env):
    config = {"protocol": "ABY3", "use_mplang_channel": False}
    with mp.Simulator(cluster(3, brpc_addresses=addresses(3), **config), timeout=DEADLINE) as sim:
        check(sim)
        for chosen in ("", "0"):
            os.environ[env] = chosen
            for worker in sim._parties.workers:
                worker.insecure = False
            with pytest.raises(PartyError, match="BRPC links are neither") as error:
                check(sim)
            assert isinstance(error.value.__cause__, AdmissionError)


def gathers():
    names = addresses(2)
    for options in ({"mem_link": True}, {}):
        made = at_all(2, lambda i, o=options: LinkCommunicator(i, names, name=f"t{o}", **o))
        assert made[0].mode == ("memory" if options else "brpc")
        assert at_all(2, lambda i, m=made: m[i].lctx.all_gather(str(i))) == [["0", "1"]] * 2
        for one in made:
            one.close()
