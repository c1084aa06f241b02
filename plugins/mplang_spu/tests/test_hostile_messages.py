"""A member of an SPU that sends wrong messages harms nothing but the run.

What libspu does with them is not in our hands: it may fail, crash, wait in vain or compute another
result. So it runs in processes apart; here they are those of a test, which sockets link.
``make test-hostile`` has a thousand runs of each op and protocol, as many as 1,600 s of each
protocol allow.
"""

from __future__ import annotations

import os
import time
from collections import Counter

import jax.numpy as jnp
import numpy as np
import pytest
from hostile_members import hostile_simulator
from spu_links import cluster

import mplang_core as mp
from mplang_core.errors import PartyError

RUNS = int(os.environ.get("MPLANG_HOSTILE_RUNS", "1"))  # of each op
SECONDS = 1600 if RUNS > 1 else 60  # of each protocol
EVIL = 1

pytestmark = [
    pytest.mark.once,  # it has processes of its own
    pytest.mark.timeout(SECONDS + 180),
]

OPS = {
    "compare": lambda x, y: x > y,
    "product": lambda x, y: (x * y).sum(),
    "sort": lambda x, y: jnp.sort(x + y),
    "argsort": lambda x, y: jnp.argsort(x),
    "matmul": lambda x, y: x.reshape(3, 4) @ y.reshape(4, 3),
    "divide": lambda x, y: x / (y + 1.5),
    "exp": lambda x, y: jnp.exp(x * 0.01) + y,
    "argmax": lambda x, y: jnp.argmax(x - y),
    "select": lambda x, y: jnp.where(x > y, x, y),
    "bools": lambda x, y: (x > 3) & (y > 3),
}
X = np.float32([5, 3, 11, 7, 0, 1, 9, 2, 4, 10, 8, 6])
Y = X[::-1] * 2


@pytest.mark.parametrize(
    ("parties", "protocol", "ops"),
    [
        pytest.param(3, "ABY3", OPS if RUNS > 1 else ["sort", "divide", "product"], id="ABY3"),
        pytest.param(2, "CHEETAH", OPS if RUNS > 1 else ["compare"], id="CHEETAH"),
    ],
)
def test_wrong_messages_end_at_most_their_run(monkeypatch, parties, protocol, ops):
    told, crashed = Counter(), Counter()
    spec, begun = cluster(parties, protocol=protocol, field="FM64"), time.monotonic()
    with hostile_simulator(monkeypatch, spec, EVIL) as (sim, ended):
        with mp.with_ctx(sim):
            x, y = mp.put("P0", X), mp.put("P1", Y)
        kept = mp.evaluate(sim, lambda x: mp.seal(x), x, mode="launch")
        for turn in range(RUNS):
            for i, name in enumerate(ops):
                if time.monotonic() - begun > SECONDS:
                    break
                sim.seed = turn * len(OPS) + i
                told[name, _outcome(sim, OPS[name], kept, y)] += 1
        found = mp.evaluate(sim, lambda x: mp.reveal(x, to="P0"), kept, mode="launch")
        np.testing.assert_allclose(mp.fetch(sim, found), X, atol=1e-3)
    for signals in ended:
        crashed.update(f"{'evil' if rank == EVIL else 'honest'} {s}" for rank, s in signals.items())
    assert told.total()
    print(f"{protocol}: {told.total()} runs")
    for (name, outcome), count in sorted(told.items()):
        print(f"  {name}: {outcome} {count}")
    print(f"  processes that crashed: {dict(crashed)}")


def _outcome(sim, fn, x, y):
    """Run an op; return whether it was right, wrong or failed, which the caller is told."""
    program = lambda x, y: mp.reveal(mp.device("SP0")(fn)(x, mp.seal(y)), to="P0")  # noqa: E731
    try:
        found = mp.fetch(sim, mp.evaluate(sim, program, x, y, mode="launch"))
    except PartyError as error:
        text = str(error)
        assert "spu.run_jax" in text or "spu.reconstruct" in text, text
        assert "party" in text, text
        return "failed"
    right = np.allclose(found, np.asarray(fn(X, Y)), atol=1e-2, rtol=1e-2)
    return "right" if right else "wrong"
