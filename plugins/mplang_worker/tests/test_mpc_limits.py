"""What counts the engine and the MPC process of a session together: memory, traffic and spans."""

from __future__ import annotations

import os
import random
from contextlib import closing
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from fault_testbed import FOREVER, FaultTestbed, works
from http_raw import MB
from intruder import run
from mplang_http import LocalCluster
from mplang_testing import dialect

import mplang_core as mp
from mplang_core.errors import PartyError

LIMIT, KEPT = 800, 700  # MB
NUMBERS = 1 << 23  # ABY3 has 16 bytes of each at a member: 128 MB, and a few times that at once


@pytest.fixture(scope="module")
def workers():
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        imports = ("intruder", "mplang_testing.dialect")
        with LocalCluster(3, imports=imports, limits={"memory": LIMIT * MB}) as cluster:
            yield cluster


@pytest.fixture
def host(workers):
    with mp.connect("http", workers.spec) as host:
        works(host)
        yield host


def test_traffic_and_spans_of_a_run_have_those_of_mpc_processes(workers, host):
    """Party 2 has no input: what its engine sends to party 1 has no bytes, and libspu's has."""
    with mp.record(host) as recording:
        works(host)
    sent = [s.facts["bytes"] for s in recording.spans if (s.kind, s.party) == ("send", 2)]
    assert any(sent)
    got = [s for s in recording.spans if (s.kind, s.party) == ("wait", 1)]
    assert any(s.facts["peer"] == 2 and s.facts["bytes"] for s in got)
    with closing(FaultTestbed(workers, host, random.Random(0)).clients()[2]) as client:
        (job,) = (
            each
            for each in client.request("GET", "v1", "sessions", host.session, "jobs")["jobs"]
            if each["run"] == f"{host.session}-1"
        )
    assert job["links"]["1"]["sent"] == recording.links()[2, 1].bytes > 0


def large(turns):
    """Return a program whose shares take much memory, all of it in MPC processes."""

    def program(x):
        a = mp.device("SP0")(lambda x: jnp.broadcast_to(x, (NUMBERS,)))(mp.seal(mp.put("P0", x)))

        def below(state):
            return mp.invoke(dialect.less, state[0], mp.constant(np.int64(turns)))

        def turn(state):
            i, a = state
            a = mp.device("SP0")(lambda a: a + a)(a)
            return mp.invoke(dialect.add, i, mp.constant(np.int64(1))), a

        _, a = mp.while_loop(below, turn, (mp.constant(np.int64(0)), a))
        return mp.reveal(mp.device("SP0")(lambda a: a[0])(a), to="P0")

    return program


def keep(host):
    """Have the engine of party 0 keep memory, which is within its limit."""
    code = f"import builtins; builtins.kept = np.ones({KEPT} << 17)"
    found = mp.evaluate(host, lambda: mp.invoke(run, mp.put("P0", 0), code=code))
    assert int(np.ravel(mp.fetch(host, found))[0]) == 0


@pytest.mark.long("moves some 100 MB of shares")
def test_memory_of_both_processes_has_one_limit(host):
    """Each alone is within it; what passes it together ends the session, with its name."""
    x = np.int64(3)
    assert int(np.ravel(mp.fetch(host, mp.evaluate(host, large(2), x)))[0]) == 12
    keep(host)
    works(host)
    with pytest.raises(PartyError) as caught:
        mp.evaluate(host, large(FOREVER), x)
    assert f"it used more than {LIMIT} MB of memory (limits.memory)" in str(caught.value)
