"""A join tells nobody anything: neither its table of disclosures, nor its messages."""

from __future__ import annotations

import pytest
from mplang_simulator.threads import ThreadCommunicator
from secret_joining import HOWS, cluster, table

import mplang_core as mp

CIPHERTEXTS = 100_000  # bytes of those of CHEETAH, at least: how well they compress is chance
SETS = (
    (["a", "b", "c"], ["d", "e"]),
    (["a", "b", "c"], ["a", "b", "c"]),
    ([f"{i}" for i in range(8)], ["7", None]),
    ([], [None] * 8),
)


def program(how):
    """Return the sum of products of both columns."""
    sets = mp.dataset("bank", "t"), mp.dataset("shop", "t")
    both = mp.join(*sets, on="id", how=how, rows={"bank": 8, "shop": 8})
    return mp.reveal(mp.device("SP0")(lambda c: sum(x.sum() for x in c.values()))(both.columns))


@pytest.mark.parametrize("how", HOWS)
def test_no_row_and_no_size_is_disclosed(how):
    data = {"bank": {"t": table({"a": 1}, "x0")}, "shop": {"t": table({"a": 1}, "x1")}}
    with mp.Simulator(cluster("CHEETAH"), data=data) as sim:
        told = mp.analysis.disclosure(mp.compile(lambda: program(how)).trace(sim))
    for row in told.rows:
        if row.what in ("reveal", "result"):
            assert row.type.endswith("[]")
        elif row.form == "plain" and row.what == "move":
            assert not row.sources  # the salt
        assert row.what in ("move", "reveal", "result", "failure", "change")


@pytest.fixture
def sizes(monkeypatch):
    """Return the sizes of messages; which of the parties libspu has send is chance."""
    seen, send = [], ThreadCommunicator.send

    def recorded(comm, to_rank, key, data):
        is_bytes = isinstance(data, bytes | bytearray | memoryview)
        size = min(len(data), CIPHERTEXTS) if is_bytes else getattr(data, "shape", type(data))
        seen.append(str(size))
        send(comm, to_rank, key, data)

    monkeypatch.setattr(ThreadCommunicator, "send", recorded)
    return seen


@pytest.mark.parametrize(
    ("protocol", "how"),
    [
        ("ABY3", "inner"),
        ("ABY3", "left"),
        ("SEMI2K", "anti"),
        pytest.param("CHEETAH", "inner", marks=pytest.mark.long("it sorts nine times")),
    ],
)
def test_messages_depend_on_no_row(sizes, protocol, how):
    seen = []
    for sides in SETS:
        a, b = (
            table([(key, 7 * i) for i, key in enumerate(keys)], f"x{rank}", "string")
            for rank, keys in enumerate(sides)
        )
        spec = cluster(protocol, use_mplang_channel=True)
        with mp.Simulator(spec, data={"bank": {"t": a}, "shop": {"t": b}}) as sim:
            sizes.clear()
            mp.evaluate(sim, lambda: program(how))
            seen.append(sorted(sizes))
    assert all(each == seen[0] for each in seen)
    assert len(seen[0]) > 50


def test_rows_come_out_in_an_order_that_is_another_one_each_time():
    a = table({f"{i}": i for i in range(12)}, "x0")
    b = table({f"{i}": -i for i in range(12)}, "x1")
    with mp.Simulator(cluster(), data={"bank": {"t": a}, "shop": {"t": b}}) as sim:
        orders = {tuple(_order(sim)) for _ in range(3)}
    assert len(orders) == 3


def _order(sim):
    def columns():
        sets = mp.dataset("bank", "t"), mp.dataset("shop", "t")
        return mp.reveal(mp.join(*sets, on="id", rows={"bank": 12, "shop": 12}), to="bank")

    found = mp.fetch(sim, mp.evaluate(sim, columns))
    return found.columns["x0"].tolist()
