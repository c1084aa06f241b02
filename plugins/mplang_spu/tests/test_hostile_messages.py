"""A member of an SPU that sends wrong messages harms nothing but the run.

What libspu does with them is not in our hands: it may fail, crash, wait in vain or compute another
result. So it runs in processes apart; here they are those of a test, which sockets link, and in
``test_hostile_mpc.py`` those of live workers.
``make test-hostile`` has a thousand runs of each op and protocol, as many as 1,600 s allow.
"""

from __future__ import annotations

import functools
import os
import re
import time
from collections import Counter

import numpy as np
import pytest
from attacked_ops import OPS, X, Y, outcome
from hostile_members import hostile_simulator
from spu_links import cluster

import mplang_core as mp

RUNS = int(os.environ.get("MPLANG_HOSTILE_RUNS", "1"))  # of each op
SECONDS = 1600 if RUNS > 1 else 60  # of each part
PARTS = 4 if RUNS > 1 else 1  # side by side, as a message that was dropped is waited for
EVIL = 1

pytestmark = [
    pytest.mark.once,  # it has processes of its own
    pytest.mark.timeout(SECONDS + 180),
]


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(
    ("parties", "protocol", "ops"),
    [
        pytest.param(3, "ABY3", OPS if RUNS > 1 else ["sort", "divide", "product"], id="ABY3"),
        pytest.param(2, "CHEETAH", OPS if RUNS > 1 else ["compare"], id="CHEETAH"),
    ],
)
def test_wrong_messages_end_at_most_their_run(monkeypatch, parties, protocol, ops, part):
    told, crashed = Counter(), Counter()
    told_here = functools.partial(told_exactly, range(parties))
    spec, begun = cluster(parties, protocol=protocol, field="FM64"), time.monotonic()
    with hostile_simulator(monkeypatch, spec, EVIL) as (sim, ended):
        with mp.with_ctx(sim):
            x, y = mp.put("P0", X), mp.put("P1", Y)
        kept = mp.evaluate(sim, lambda x: mp.seal(x), x, mode="launch")
        for turn in range(part, RUNS, PARTS):
            for i, name in enumerate(ops):
                if time.monotonic() - begun > SECONDS:
                    break
                sim.seed = turn * len(OPS) + i
                told[name, outcome(sim, name, kept, y, told_here)] += 1
        found = mp.evaluate(sim, lambda x: mp.reveal(x, to="P0"), kept, mode="launch")
        np.testing.assert_allclose(mp.fetch(sim, found), X, atol=1e-3)
    for signals in ended:
        crashed.update(f"{'evil' if rank == EVIL else 'honest'} {s}" for rank, s in signals.items())
    assert told.total()
    wanted = len(range(part, RUNS, PARTS)) * len(ops)
    print(f"{protocol}: {told.total()} of {wanted} runs")
    for (name, what), count in sorted(told.items()):
        print(f"  {name}: {what} {count}")
    print(f"  processes that crashed: {dict(crashed)}")


WHY = (
    r"party {rank} waited 2 s for a message from party [{others}], which is not known to be at "
    r"work; timeout= of .*",
    r"party {rank} expected bytes of SPU from party [{others}], got \w+ \(empty, or no bytes\)",
    r"the members of this SPU do not fit together;.*\n.*",
    r"the MPC process of party {rank} ended by SIG[A-Z]+",
    r"libspu failed: .+",
)


def told_exactly(members, error):
    """Assert that an error names the op, its line, the member that failed, and why."""
    assert error.op == "spu.run_jax", error
    assert error.rank in members, error
    others = "".join(str(rank) for rank in members if rank != error.rank)
    head = rf"party {error.rank} failed in spu\.run_jax at attacked_ops\.py:\d+: "
    why = "|".join(WHY).format(rank=error.rank, others=others)
    assert re.fullmatch(f"{head}(?:{why})", str(error), re.DOTALL), error
