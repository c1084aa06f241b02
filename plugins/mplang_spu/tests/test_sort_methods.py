"""Methods of sorting: the rows of a stable sort by each, and messages that depend on no data."""

from __future__ import annotations

import numpy as np
import pytest
from jax import lax
from mplang_simulator.threads import ThreadCommunicator

import mplang_core as mp
from mplang_core.errors import ConfigError

MEMBERS = {"ABY3": 3, "CHEETAH": 2, "SEMI2K": 2}
METHODS = ("quick", "radix", "network")
ROWS = 24
CIPHERTEXTS = 100_000  # bytes of those of CHEETAH, at least: how well they compress is chance
DISTINCT = np.arange(ROWS, dtype=np.int64)[::-1] * 7 - 50
TIES = np.repeat(np.array([3, -4], np.int64), ROWS // 2)


def cluster(protocol, **config):
    """Return a cluster whose SPU sends by the parties' communicators, as on workers."""
    count = MEMBERS[protocol]
    members = [f"P{rank}" for rank in range(count)]
    config |= {"protocol": protocol, "field": "FM64", "use_mplang_channel": True}
    return mp.ClusterSpec.from_dict(
        {
            "nodes": [{"name": name} for name in members],
            "devices": {
                **{name: {"kind": "PPU", "members": [name]} for name in members},
                "SP0": {"kind": "SPU", "members": members, "config": config},
            },
        }
    )


def sort(sim, keys):
    """Return keys in order, and the numbers of their rows, as an SPU sorts them."""

    def program():
        x = mp.put("P0", keys)
        rows = mp.put("P1", np.arange(len(keys)))
        order = lambda x, rows: lax.sort((x, rows), num_keys=1)  # noqa: E731
        sealed = mp.seal(x, to="SP0"), mp.seal(rows, to="SP0")
        return mp.reveal(mp.device("SP0")(order)(*sealed), to="P0")

    return mp.fetch(sim, mp.evaluate(sim, program))


@pytest.mark.parametrize("keys", [DISTINCT, TIES], ids=["distinct", "ties"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("protocol", MEMBERS)
def test_each_method_gives_the_rows_of_a_sort(protocol, method, keys):
    with mp.Simulator(cluster(protocol, sort_method=method)) as sim:
        found, rows = sort(sim, keys)
    np.testing.assert_array_equal(found, np.sort(keys))
    np.testing.assert_array_equal(keys[rows], found)
    assert sorted(rows) == list(range(ROWS))


@pytest.fixture
def sizes(monkeypatch):
    """Return the sizes of the messages; which of the parties libspu has send is chance."""
    seen, send = [], ThreadCommunicator.send

    def recorded(comm, to_rank, key, data):
        if isinstance(data, bytes | bytearray | memoryview):  # what libspu sends
            seen.append(min(len(data), CIPHERTEXTS))
        send(comm, to_rank, key, data)

    monkeypatch.setattr(ThreadCommunicator, "send", recorded)
    return seen


@pytest.mark.parametrize(
    ("protocol", "method"),
    [
        ("ABY3", "radix"),
        ("SEMI2K", "radix"),
        pytest.param("CHEETAH", "network", marks=pytest.mark.long("it sorts six times")),
    ],
)
def test_messages_do_not_tell_how_many_rows_are_equal(sizes, protocol, method):
    seen = []
    for keys in (DISTINCT, TIES, np.zeros(ROWS, np.int64)):
        sizes.clear()
        with mp.Simulator(cluster(protocol, sort_method=method)) as sim:
            sort(sim, keys)
        seen.append(sorted(sizes))
    assert seen[0] == seen[1] == seen[2]


def test_a_method_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="sort_method"):
        cluster("ABY3", sort_method="bubble").device("SP0")
