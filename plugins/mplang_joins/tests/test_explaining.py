"""An explanation says where parts run, what they tell and what they cost, before anything runs."""

from __future__ import annotations

import pyarrow as pa
import pytest
from across_parties import held, program_of
from secret_joining import cluster

import mplang_core as mp
from mplang_core.errors import TraceError

KEYS = 1500
TABLES = {
    "bank": {
        "people": held(
            pa.table({"id": [*range(KEYS)], "city": [i % 3 for i in range(KEYS)]}),
            {"id": KEYS}, ranges={"city": (0, 2)},
        )
    },
    "shop": {
        "sales": held(
            pa.table({"who": [*range(0, 2 * KEYS, 2)], "price": [7] * KEYS}), {"who": KEYS}
        )
    },
}  # fmt: skip
QUERY = "SELECT city, sum(price) AS a FROM {people} JOIN {sales} ON id = who GROUP BY city"


def explained(match):
    program = program_of(TABLES, QUERY, match=match)
    with mp.Simulator(cluster("ABY3", use_mplang_channel=True), data=TABLES) as sim:
        return program, mp.explain(sim, program)


@pytest.mark.parametrize("match", ["secret", "psi"])
def test_bytes_are_those_of_a_run(match):
    program, found = explained(match)
    with (
        mp.Simulator(cluster("ABY3", use_mplang_channel=True), data=TABLES) as sim,
        mp.record(sim) as recording,
    ):
        mp.evaluate(sim, program)
    names = [node.name for node in sim.cluster_spec.nodes]
    sent = {(names[a], names[b]): use.bytes for (a, b), use in recording.links().items()}
    assert found.bytes.keys() == sent.keys()
    assert sum(found.bytes.values()) == pytest.approx(sum(sent.values()), rel=0.25)
    assert found.seconds > 0


def test_it_says_where_parts_run_and_who_learns_what():
    _, found = explained("psi")
    steps = [(step.parties, step.what.partition(" ")[0]) for step in found.steps]
    assert steps == [
        (("bank",), "SELECT"), (("shop",), "SELECT"), (("bank", "shop"), "match"),
        (("bank",), "SELECT"), (("bank",), "shares"), (("shop",), "SELECT"),
        (("shop",), "shares"), (("bank", "shop", "lab"), "joins"),
    ]  # fmt: skip
    assert f"match keys, {KEYS} or fewer and {KEYS} or fewer" in str(found)
    assert "Who learns what" in str(found)
    assert found.to_dict()["steps"][0]["line"].startswith("across_parties.py:")


def test_a_program_without_data_sets_is_not_explained():
    with mp.Simulator(cluster()) as sim, pytest.raises(TraceError, match="reads no data set"):
        mp.explain(sim, lambda: mp.put("bank", 1))
